import Foundation
import Plexus
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The drawn board` {
  private func board(_ count: Int, _ details: RowDetails = .complete) -> BoardState {
    var state = BoardState(flights: (0..<count).map { .sample($0) })
    for id in 0..<count { state.apply(.flight(FlightChange(id, .scheduled))) }
    state.apply(.clock(.at("09:30")))
    state.answerAll(details)
    state.apply(.report(CacheStatistics(hits: 4650, fetches: 9, revalidations: 4), isLast: false))
    return state
  }

  private func draw(
    _ state: BoardState,
    _ columns: Int,
    _ rows: Int = 24,
    _ filter: FilterState = FilterState()
  ) -> [String] {
    BoardRenderer(columns: columns, rows: rows).lines(state, filter).map(\.text)
  }

  private func drawRow(_ details: RowDetails, _ columns: Int) throws -> String {
    try #require(draw(board(1, details), columns).first { $0.hasPrefix(" 10:00") })
  }

  @Test func `a drawn board fits into every window`() {
    var details = RowDetails.stale
    details.airline = .answered(
      Airline(name: String(repeating: "very long ", count: 30)),
      isStale: false
    )
    for state in [board(0), board(3, details), board(40, .unanswered)] {
      for columns in stride(from: 1, through: 181, by: 3) {
        for rows in [-1, 0, 1, 2, 3, 5, 8, 11, 12, 13, 24, 60] {
          let lines = draw(state, columns, rows, FilterState(rows % 2 == 0 ? "boeing 767" : ""))
          #expect(lines.count <= max(0, rows))
          #expect(lines.allSatisfy { $0.count <= columns })
        }
      }
    }
  }

  @Test func `a drawn board has the columns of titles and rows in the same places`() throws {
    let lines = draw(board(1), 150)
    let titles = try #require(lines.first { $0.contains("AIRLINE") })
    let row = try #require(lines.first { $0.hasPrefix(" 10:00") })
    for (title, text) in [
      ("TIME", "10:00"), ("FLIGHT", "UA 15"), ("FROM", "EWR"), ("AIRPORT", "Newark Liberty"),
      ("TO ", "HNL"), ("DESTINATION", "Honolulu"), ("AIRLINE", "United Air Lines"),
      ("AIRCRAFT", "Boeing 767-424ER"), ("WEATHER", "35°F 10mph 10mi"), ("STATUS", "on time"),
    ] {
      #expect(column(of: title, in: titles) == column(of: text, in: row), "\(title)")
    }
  }

  private func column(of text: String, in line: String) -> Int? {
    line.firstRange(of: text).map { line.distance(from: line.startIndex, to: $0.lowerBound) }
  }

  @Test func `a drawn board keeps the time, the destination and the status in narrow windows`()
    throws
  {
    #expect(try drawRow(.complete, 28).hasPrefix(" 10:00  HNL  on time"))
    #expect(try drawRow(.complete, 36).contains("UA 15"))
  }

  @Test func `a drawn board marks stale values in every window without moving them`() throws {
    let stale = try drawRow(.stale, 150)
    #expect(stale.contains(" ~EWR") && stale.contains(" ~Newark") && stale.contains(" ~35°F"))
    #expect(try drawRow(.stale, 60).contains(" ~EWR"))
    #expect(stale.map { $0 == "~" ? " " : $0 } == Array(try drawRow(.complete, 150)))
    #expect(draw(board(1, .stale), 80).last?.contains("~ stale") == true)
    #expect(draw(board(1), 80).last?.contains("~") == false)
  }

  @Test func `a drawn board distinguishes pending, missing and unanswered values`() throws {
    #expect(try drawRow(RowDetails(), 80).contains("HNL  … "))
    #expect(try drawRow(.unanswered, 80).contains("HNL  ? "))
    let absent = RowDetails(destination: .answered(nil, isStale: false))
    #expect(try drawRow(absent, 80).contains("HNL  — "))
  }

  @Test(arguments: [150, 80, 40, 20])
  func `a drawn board shows counts and the origin in its header`(columns: Int) {
    var state = board(2)
    state.apply(.origin(isOnline: false))
    let text = draw(state, columns).joined(separator: "\n")
    for counter in [
      "requests 4650", "fetches   5", "joins   0", "hits 4650", "stale hits   0", "flights   2",
      "revalidated   4", "origin offline",
    ] {
      #expect(text.contains(counter))
    }
    #expect(!text.contains("changes"))
    state.apply(.heard(FlightChange(0, .cancelled)))
    #expect(draw(state, 80).joined().contains("changes from boards   1"))
  }

  @Test func `a drawn board shows the code of an airline on its badge, without extra width`() throws
  {
    var details = RowDetails.complete
    details.badge = try Badge(Data("208\n".utf8))
    #expect(draw(board(2, details), 80) == draw(board(2), 80))
    let lines = BoardRenderer(columns: 80, rows: 24).lines(board(1, details))
    let colored = BoardRenderer.frame(lines, inColor: true)
    #expect(colored.contains("\u{1B}[38;5;16;48;5;208mUA\u{1B}[0m 15 "))
    let plain = BoardRenderer.frame(lines, inColor: false)
    #expect(plain.contains("UA 15 "))
    details.badge = try Badge(Data("208\n".utf8), variant: .sixteenColors)
    let few = BoardRenderer(columns: 80, rows: 24).lines(board(1, details))
    #expect(BoardRenderer.frame(few, inColor: true).contains("\u{1B}[30;101mUA\u{1B}[0m 15 "))
    #expect(plain.firstMatch(of: /\u{1B}\[[0-9;]*[34][0-9][;m]/) == nil)
  }

  @Test func `a drawn board shows the rows that match the filter, and counts the whole day`() {
    var state = board(40)
    state.apply(.flight(FlightChange(1, .cancelled)))
    let all = draw(state, 80)
    #expect(all.count { $0.hasPrefix(" 10:00") } == 17)
    #expect(all.last?.contains("type to filter") == true && all.last?.hasSuffix("23 more ") == true)
    let lines = draw(state, 80, 24, FilterState("CANCEL hnl"))
    #expect(lines.count { $0.hasPrefix(" 10:00") } == 1)
    #expect(lines.last == " filter: CANCEL hnl_  1 flight")
    #expect(lines.contains { $0.contains("flights  40") })
    #expect(draw(state, 80, 24, FilterState("xyz")).last == " filter: xyz_  0 flights")
    var typed = FilterState()
    typed.apply(.type("x"))
    #expect(draw(board(3), 80, 24, typed).last == " filter: x_ ")
  }

  @Test func `a drawn board shows the timetable in place of its rows`() {
    var state = board(2)
    state.apply(.flight(FlightChange(1, .cancelled)))
    var part = Timetable.Excerpt(flights: [.sample(1), .sample(9, at: "12:30")])
    func draw(_ columns: Int, _ rows: Int = 24) -> [String] {
      BoardRenderer(columns: columns, rows: rows).lines(state, FilterState("x"), part).map(\.text)
    }
    let lines = draw(150)
    #expect(lines.contains(" 10:00  UA 15    EWR   HNL  cancelled     "))
    #expect(lines.contains(" 12:30  UA 15    EWR   HNL  on time       "))
    #expect(lines.last == " ↑ earlier   ↓ later   Escape: the board")
    part.isLoading = true
    #expect(draw(150).last?.hasSuffix("… asking") == true)
    (part.isLoading, part.hasFailed) = (false, true)
    #expect(draw(150).last?.hasSuffix("? no answer") == true)
    part.flights = (0..<60).map { .sample($0) }
    for columns in [1, 20, 42, 80] {
      for rows in [0, 1, 5, 12, 24, 50] {
        #expect(draw(columns, rows).count <= rows)
        #expect(draw(columns, rows).allSatisfy { $0.count <= columns })
      }
    }
  }

  @Test func `a drawn board shows flights rather than a frame in a low window`() {
    let lines = draw(board(40), 80, 6)
    #expect(lines.count == 6)
    #expect(lines.count { $0.hasPrefix(" 10:00") } == 5)
    #expect(lines.first?.contains("09:30") == true)
  }

  @Test func `a drawn board shows the status in words and colors, and the local time of landing`() {
    var state = board(3)
    state.apply(.flight(FlightChange(0, .delayed(until: .at("11:00")))))
    state.apply(.flight(FlightChange(1, .departed(at: .at("10:05")))))
    state.apply(.flight(FlightChange(2, .cancelled)))
    let lines = BoardRenderer(columns: 150, rows: 24).lines(state)
    let frame = BoardRenderer.frame(lines, inColor: true)
    for code in ["33mdelayed 11:00", "32mdeparted 10:05", "31mcancelled "] {
      #expect(frame.contains("\u{1B}[\(code)"))
    }
    #expect(lines.contains { $0.text.hasSuffix("departed 10:05  16:05") })
  }

  @Test func `a drawn board is written over the last frame without clearing it first`() {
    #expect(
      BoardRenderer.frame([[Span("a", .bad)], [Span("b")]], inColor: true)
        == "\u{1B}[?2026h\u{1B}[H\u{1B}[31ma\u{1B}[0m\u{1B}[K\r\nb\u{1B}[K\u{1B}[J\u{1B}[?2026l"
    )
  }

  @Test(arguments: [(5, "abc  "), (3, "abc"), (2, "a…"), (1, "…")])
  func `a drawn board has texts of a fixed width`(columns: Int, text: String) {
    #expect("abc".fitted(to: columns) == text)
  }
}

@Suite(.fewAtOnce) struct `A plain line` {
  private func line(_ details: RowDetails, _ status: FlightChange.Status) -> String {
    PlainReport.line(BoardRow(flight: .sample(0), status: status, details: details))
  }

  @Test func `a plain line contains all details of a flight`() {
    #expect(
      line(.complete, .departed(at: .at("10:05")))
        == "10:00  UA 15    EWR-HNL  departed 10:05  United Air Lines, Boeing 767-424ER, "
        + "Newark Liberty to Honolulu, 35°F 10mph 10mi, lands 16:05"
    )
  }

  @Test func `a plain line describes stale, unknown and unanswered values in words`() {
    #expect(
      line(.stale, .cancelled)
        == "10:00  UA 15    EWR-HNL  cancelled       United Air Lines, Boeing 767-424ER, "
        + "Newark Liberty (stale) to Honolulu, 35°F 10mph 10mi (stale)"
    )
    #expect(line(.unanswered, .cancelled).contains("no answer to no answer"))
    let absent = RowDetails(
      aircraft: .answered(nil, isStale: false),
      destination: .answered(nil, isStale: true)
    )
    #expect(line(absent, .cancelled).contains("unknown aircraft, not asked to HNL (stale), "))
  }
}
