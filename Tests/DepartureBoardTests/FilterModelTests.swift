import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The filter` {
  private var row: BoardRow {
    var row = BoardRow(.sample(0, at: "10:00"))
    row.details = .complete
    row.status = .cancelled
    return row
  }

  @Test(arguments: [
    "", "  ", "ua 15", "UA15", "ewr", "hnl", "united", "boeing 767", "honolulu", "newark",
    "CANCELLED", "boeing ua hono", "boeing\thono\u{A0}ua\n",
  ])
  func `matches a row that contains every word, ignoring case`(text: String) {
    #expect(FilterState(text).matches(row))
  }

  @Test(arguments: ["x", "ua x", "delta", "10:00x"])
  func `excludes a row that lacks a word`(text: String) {
    #expect(!FilterState(text).matches(row))
  }

  @Test func `applies typed text on request`() {
    var filter = FilterState()
    #expect(filter.isEmpty && !filter.isPending)
    filter.apply(.type("x"))
    #expect(filter.typed == "x" && filter.text == "" && filter.isPending && !filter.isEmpty)
    #expect(filter.matches(row))
    filter.apply(.apply("x"))
    #expect(!filter.isPending && !filter.matches(row))
    filter.apply(.erase)
    #expect(filter.typed == "" && filter.isPending && !filter.isEmpty)
    filter.apply(.erase)
    filter.apply(.clear)
    #expect(filter == FilterState())
  }

  @Test func `has a maximum length`() {
    var filter = FilterState()
    for _ in 0..<100 { filter.apply(.type("x")) }
    #expect(filter.typed.count == FilterState.limit)
    let long = String(repeating: "long ", count: 20)
    filter = FilterState(long)
    filter.apply(.type("x"))
    #expect(filter.typed == long && filter.text == long)
  }
}

@Suite(.fewAtOnce) struct `The decoder of keys` {
  private func keys(_ text: String) -> [Key] {
    var decoder = KeyDecoder()
    return decoder.keys(in: text.utf8)
  }

  @Test func `decodes characters, Backspace and Escape`() {
    #expect(keys("aÉ ") == [.text("a"), .text("É"), .text(" ")])
    #expect(keys("\u{7F}\u{8}\u{15}") == [.backspace, .backspace, .escape])
    #expect(keys("a\u{1B}") == [.text("a"), .escape])
  }

  @Test(arguments: [
    "\u{1B}[A", "\u{1B}[3~", "\u{1B}OP", "\u{1B}[1;5C", "\u{1B}x", "\u{1B}[", "\u{1B}O",
  ])
  func `skips the sequences of arrow and similar keys`(sequence: String) {
    #expect(keys(sequence) == [])
    #expect(keys("a\(sequence)").first == .text("a"))
  }

  @Test func `continues after a sequence`() {
    #expect(keys("\u{1B}[Ab\u{1B}OPc") == [.text("b"), .text("c")])
  }

  @Test func `skips characters of width zero or two`() {
    #expect(keys("\r\n\t\u{0}\u{85}\u{301}日😀a") == [.text("a")])
  }

  @Test func `assembles a character from several reads`() {
    var decoder = KeyDecoder()
    #expect(decoder.keys(in: [0xC3]) == [])
    #expect(decoder.keys(in: [0xA9, 0x61]) == [.text("é"), .text("a")])
  }

  @Test func `survives any two bytes`() {
    for first in UInt8.min ... .max {
      for second in UInt8.min ... .max {
        var decoder = KeyDecoder()
        _ = decoder.keys(in: [first, second])
        _ = decoder.keys(in: [0x80, 0x80, 0x80])
        #expect(decoder.keys(in: Array("a".utf8)) == [.text("a")])
      }
    }
  }
}

@MainActor
@Suite(.fewAtOnce) struct `The input of the filter` {
  private let clock = ManualClock()
  private let page = Board(waitsForAnswers: false) { _ in RowDetails() }.page()

  @Test func `shows letters at once and applies them when typing has paused`() async {
    let input = FilterInput(nil, page, clock: clock)
    var texts = page.subscription(toChangesOf: \.text).makeAsyncIterator()
    #expect(await texts.next()?.new == "")
    input.take(Array("d".utf8))
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause / 2)
    input.take(Array("elx\u{7F}".utf8))
    #expect(page.state.typed == "del")
    clock.advance(by: FilterInput.pause / 2)
    #expect(page.state.text == "")
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause / 2)
    // Only the whole word was applied.
    #expect(await texts.next()?.new == "del")
    withExtendedLifetime(input) {}
  }

  @Test func `is cleared by Escape without a pause`() async {
    let input = FilterInput(nil, page, clock: clock)
    var texts = page.subscription(toChangesOf: \.text).makeAsyncIterator()
    #expect(await texts.next()?.new == "")
    input.take(Array("d".utf8))
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause)
    #expect(await texts.next()?.new == "d")
    input.take([0x1B])
    // The thread that has just published "d" can keep the page busy, and processes the action then.
    #expect(await texts.next()?.new == "")
    #expect(page.state == FilterState())
  }

  @Test func `applies a letter that is typed while the page is busy`() async {
    let input = FilterInput(nil, page, clock: clock)
    let isTyped = Mutex(false)
    let text = page.select { board in
      if board.page.text == "x", !isTyped.withLock({ exchange(&$0, with: true) }) {
        MainActor.assumeIsolated { input.take(Array("d".utf8)) }
      }
      return board.page.text
    }
    var texts = text.subscription(bufferingPolicy: .unbounded).makeAsyncIterator()
    #expect(await texts.next() == "")
    page.dispatch(.apply("x"))
    #expect(await texts.next() == "x")
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause)
    #expect(await texts.next() == "d")
  }

  @Test func `begins with the filter that the page has`() {
    let page = Board(waitsForAnswers: false) { _ in RowDetails() }.page(filter: "del")
    let input = FilterInput(nil, page, clock: clock)
    #expect(page.state.text == "del" && page.state.typed == "del")
    input.take([0x7F])
    #expect(page.state.typed == "de" && page.state.text == "del")
  }
}
