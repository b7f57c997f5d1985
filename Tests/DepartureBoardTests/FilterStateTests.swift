import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The filter` {
  private var row: BoardRow {
    var row = BoardRow(flight: .sample(0))
    row.details = .complete
    row.status = .cancelled
    return row
  }

  @Test(arguments: [
    "", "  ", "ua 15", "UA15", "ewr", "hnl", "united", "boeing 767", "honolulu", "newark",
    "CANCELLED", "boeing ua hono", "boeing\thono\u{A0}ua\n",
  ])
  func `a filter matches a row that contains every word, regardless of case`(text: String) {
    #expect(FilterState(text).matches(row))
  }

  @Test(arguments: ["x", "ua x", "delta", "10:00x"])
  func `a filter excludes a row that lacks a word`(text: String) {
    #expect(!FilterState(text).matches(row))
  }

  @Test func `a filter applies typed text on request, and limits its length`() {
    var filter = FilterState()
    filter.apply(.type("x"))
    #expect(filter.typed == "x" && filter.text == "" && filter.matches(row))
    filter.apply(.apply("x"))
    #expect(!filter.matches(row))
    filter.apply(.erase)
    #expect(filter.typed == "" && filter.text == "x")
    filter.apply(.clear)
    #expect(filter == FilterState())
    for _ in 0..<100 { filter.apply(.type("x")) }
    #expect(filter.typed.count == FilterState.limit)
  }
}

@MainActor
@Suite(.fewAtOnce) struct `The input of the filter` {
  private let clock = ManualClock()
  private let page = Self.page("")

  private static func page(_ filter: String) -> BoardPage {
    Board(flights: []) { _ in RowDetails() }.page(filter: filter)
  }

  @Test(arguments: [
    ("a b~", "a b~"), ("ab\u{7F}c\u{8}d", "ad"), ("a\u{15}b", "b"), ("a\u{1B}", ""),
    ("\u{1B}[A", ""), ("a\u{1B}[3~\u{1B}OP\u{1B}[1;5Cb\u{1B}xc", "abc"), ("\u{1B}[", ""),
    ("\r\n\t\u{0}\u{85}a\u{301}日😀é", ""),
  ])
  func `the input of a filter ignores other keys, and characters that occur in no row`(
    input: String,
    typed: String
  ) {
    FilterInput(page, clock: clock).take(input)
    #expect(page.state.typed == typed)
  }

  @Test
  func `the input of a filter shows letters at once, and applies them when typing has paused`()
    async
  {
    let input = FilterInput(page, clock: clock)
    var texts = page.subscription(toChangesOf: \.text).makeAsyncIterator()
    #expect(await texts.next()?.new == "")
    input.take("d")
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause / 2)
    input.take("elx\u{7F}")
    #expect(page.state.typed == "del")
    clock.advance(by: FilterInput.pause / 2)
    #expect(page.state.text == "")
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause / 2)
    // Only the whole word was applied.
    #expect(await texts.next()?.new == "del")
    withExtendedLifetime(input) {}
  }

  @Test func `the input of a filter is cleared by Escape without a pause`() async {
    let input = FilterInput(page, clock: clock)
    var texts = page.subscription(toChangesOf: \.text).makeAsyncIterator()
    #expect(await texts.next()?.new == "")
    input.take("d")
    await clock.sleepers(1)
    clock.advance(by: FilterInput.pause)
    #expect(await texts.next()?.new == "d")
    input.take("\u{1B}")
    // The thread that has just published "d" can keep the page busy, and processes the action then.
    #expect(await texts.next()?.new == "")
    #expect(page.state == FilterState())
  }

  @Test func `the input of a filter applies a letter that is typed while the page is busy`() async {
    let input = FilterInput(page, clock: clock)
    let isTyped = Mutex(false)
    let text = page.select { board in
      if board.page.text == "x", !isTyped.withLock({ exchange(&$0, with: true) }) {
        MainActor.assumeIsolated { input.take("d") }
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

  @Test func `the input of a filter begins with the filter of the page`() {
    let page = Self.page("del")
    let input = FilterInput(page, clock: clock)
    #expect(page.state.text == "del" && page.state.typed == "del")
    input.take("\u{7F}")
    #expect(page.state.typed == "de" && page.state.text == "del")
  }
}
