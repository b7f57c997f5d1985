import Foundation
import LoopbackOrigin
import Plexus
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The timetable` {
  private let day: Day
  private let origin: LoopbackOrigin
  private let clock = DayClock(at: .at("09:00"))
  private let timetable: Timetable

  init() throws {
    day = try Day()
    origin = try LoopbackOrigin()
    try origin.serve(day)
    timetable = Timetable(client: OriginClient(origin.address, clock: clock))
  }

  private var shown: [Flight] { timetable.excerpt.current?.flights ?? [] }

  private var pages: Pages<Flight>? { timetable.departures.state.value }

  /// Runs a body while the timetable loads its pages.
  private func whileLoading(_ body: () async throws -> Void) async rethrows {
    let loading = Task { [timetable] in await timetable.follow() }
    defer { loading.cancel() }
    try await body()
  }

  /// Scrolls, and waits until the pages around the position are loaded.
  private func scroll(by count: Int) async {
    timetable.scroll(by: count)
    for await state in timetable.departures.subscription() {
      guard let pages = state.value, !state.isLoading else { continue }
      let before = pages.items.count - shown.count
      guard before >= 20 || pages.isCompleteAtStart else { continue }
      if shown.count >= 60 || pages.isComplete { break }
    }
  }

  @Test(arguments: [("00:00", 0, 3), ("09:00", 223, 5), ("23:50", 928, 2), ("24:00", 929, 2)])
  func `the timetable opens at the time of the day, with pages before and after it`(
    time: String,
    first: Flight.ID,
    pageCount: Int
  ) async {
    clock.advance(to: .at(time))
    #expect(timetable.excerpt.current == nil)
    await whileLoading {
      await scroll(by: 1)
      #expect(shown.first?.id == first)
      #expect(pages?.pageCount == pageCount && origin.pageCount == pageCount)
    }
  }

  @Test func `the timetable shows all departures in order, in a window of five pages`() async {
    await whileLoading {
      await scroll(by: 1)
      while shown.first?.id != 0 { await scroll(by: -10) }
      var seen: [Flight] = []
      while shown.count > 10 {
        seen += shown.prefix(10)
        await scroll(by: 10)
        #expect(pages.map { $0.pageCount <= Timetable.windowLength } == true)
      }
      #expect(seen + shown == day.flights)
      // Each page is fetched once, and the first one by the time, too.
      #expect(origin.pageCount == 48)
    }
  }

  @Test func `the timetable stops at both ends of the day`() async {
    await whileLoading {
      await scroll(by: 1)
      for _ in 0..<30 { await scroll(by: -10) }
      #expect(shown.first?.id == 0)
      for _ in 0..<94 { await scroll(by: 10) }
      #expect(shown.map(\.id) == [929])
    }
  }

  @Test func `the timetable tries a failed load again with the next key`() async throws {
    await origin.goOffline()
    try await whileLoading {
      timetable.scroll(by: 1)
      for await part in timetable.excerpt.subscribe() where part?.hasFailed == true { break }
      #expect(shown.isEmpty)
      try await origin.goOnline()
      await scroll(by: 1)
      #expect(shown.first?.id == 223)
      // The loaded pages stay.
      await origin.goOffline()
      for _ in 0..<5 { timetable.scroll(by: 10) }
      for await part in timetable.excerpt.subscribe() where part?.hasFailed == true { break }
      #expect(shown.first?.id == 273)
      try await origin.goOnline()
      await scroll(by: 0)
      #expect(shown.first?.id == 273 && timetable.excerpt.current?.hasFailed == false)
    }
  }

  @Test func `the timetable opens at another time after it was closed`() async {
    await whileLoading {
      await scroll(by: 1)
      timetable.close()
      #expect(timetable.excerpt.current == nil && pages == nil)
      clock.advance(to: .at("12:00"))
      await scroll(by: 1)
      #expect(shown.first?.scheduled == .at("12:00"))
    }
  }

  @Test func `the timetable takes the keys that scroll, and Escape while it is open`() {
    var isOpen: Bool { timetable.excerpt.current != nil }
    #expect(timetable.take("a\u{1B}") == "a\u{1B}" && !isOpen)
    for key in ["[A", "OA", "[B", "OB", "[5~", "[6~"] {
      #expect(timetable.take("\u{1B}\(key)") == "" && isOpen)
      #expect(timetable.take("\u{1B}") == "" && !isOpen)
    }
    #expect(timetable.take("\u{1B}[B\u{1B}[C") == "\u{1B}[C" && !isOpen)
    #expect(timetable.take("\u{1B}[Bua\r\n") == "ua\r\n" && !isOpen)
    #expect(timetable.take("x\u{1B}[B") == "x" && isOpen)
  }
}
