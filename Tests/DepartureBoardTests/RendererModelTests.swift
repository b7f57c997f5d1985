import Plexus
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The drawn board` {
  private func board(
    _ count: Int,
    _ details: RowDetails = .complete,
    at time: String = "09:30"
  ) -> BoardState {
    var state = BoardState()
    for id in 0..<count { state.apply(.flight(.scheduled(.sample(id, at: "10:00")))) }
    state.apply(.clock(.at(time)))
    state.answerAll(details)
    state.apply(.report(LookupTally(requests: 4650)))
    return state
  }

  private func draw(
    _ state: BoardState,
    _ columns: Int,
    _ rows: Int = 24,
    _ filter: FilterState = FilterState()
  ) -> [String] {
    BoardRenderer(size: ScreenSize(columns: columns, rows: rows)).lines(state, filter).map(\.text)
  }

  private func drawRow(_ details: RowDetails, _ columns: Int) -> String? {
    draw(board(1, details), columns).first { $0.hasPrefix(" 10:00") }
  }

  @Test func `shows everything if there is room`() throws {
    let row = try #require(drawRow(.complete, 150))
    for text in [
      "10:00", "UA 15", "EWR Newark Liberty", "HNL Honolulu", "United Air Lines",
      "Boeing 767-424ER", "35°F 10mph 10mi", "on time",
    ] {
      #expect(row.contains(text))
    }
  }

  @Test func `fits into every window`() {
    var details = RowDetails.stale
    details.airline = .known(
      Airline(carrier: "UA", name: String(repeating: "very long ", count: 30)),
      isStale: true
    )
    for state in [board(0), board(3, details), board(40), board(40, .unanswered)] {
      for columns in stride(from: 1, through: 181, by: 4) {
        for rows in [1, 2, 3, 5, 8, 11, 12, 13, 24, 60] {
          let filter = FilterState(rows % 2 == 0 ? "boeing 767" : "")
          let size = ScreenSize(columns: columns, rows: rows)
          let lines = BoardRenderer(size: size).lines(state, filter)
          #expect(lines.count <= rows)
          #expect(lines.allSatisfy { $0.width <= columns })
        }
      }
    }
  }

  @Test(arguments: [0, -1])
  func `is empty in a window without lines`(rows: Int) {
    #expect(draw(board(1), 80, rows).isEmpty)
  }

  @Test func `has the columns of titles and rows in the same places`() throws {
    let lines = draw(board(1), 150)
    let titles = try #require(lines.first { $0.contains("AIRLINE") })
    let row = try #require(lines.first { $0.hasPrefix(" 10:00") })
    for (title, text) in [
      ("TIME", "10:00"), ("FLIGHT", "UA 15"), ("FROM", "EWR"), ("TO", "HNL"),
      ("AIRLINE", "United"), ("AIRCRAFT", "Boeing"), ("WEATHER", "35°F"), ("STATUS", "on time"),
    ] {
      #expect(column(of: title, in: titles) == column(of: text, in: row), "\(title)")
    }
  }

  private func column(of text: String, in line: String) -> Int? {
    line.firstRange(of: text).map { line.distance(from: line.startIndex, to: $0.lowerBound) }
  }

  @Test func `keeps the time, the destination and the status in narrow windows`() throws {
    let row = try #require(drawRow(.complete, 28))
    #expect(row.hasPrefix(" 10:00  HNL  on time"))
    #expect(try #require(drawRow(.complete, 36)).contains("UA 15"))
  }

  @Test func `marks stale values in every window that shows them`() throws {
    #expect(try #require(drawRow(.stale, 150)).contains(" ~EWR Newark"))
    #expect(try #require(drawRow(.stale, 150)).contains(" ~35°F"))
    #expect(try #require(drawRow(.stale, 60)).contains(" ~EWR"))
    #expect(try #require(drawRow(.complete, 150)).contains("~") == false)
    #expect(draw(board(1, .stale), 80).last?.contains("~ stale") == true)
    #expect(draw(board(1), 80).last?.contains("~") == false)
  }

  @Test func `does not move marked values`() throws {
    let fresh = try #require(drawRow(.complete, 150))
    let stale = try #require(drawRow(.stale, 150))
    #expect(stale.map { $0 == "~" ? " " : $0 } == Array(fresh))
  }

  @Test func `distinguishes pending, missing and unanswered values`() throws {
    #expect(try #require(drawRow(RowDetails(), 150)).contains("HNL …"))
    #expect(try #require(drawRow(.unanswered, 150)).contains("HNL ?"))
    #expect(
      try #require(drawRow(RowDetails(destination: .absent(isStale: false)), 150)).contains("HNL —")
    )
  }

  @Test(arguments: [150, 80, 40, 20])
  func `shows counts in its header`(columns: Int) {
    let text = draw(board(2), columns).joined(separator: "\n")
    for counter in ["requests 4650", "fetches", "joins", "hits", "stale hits", "flights   2"] {
      #expect(text.contains(counter))
    }
  }

  @Test func `counts unchanged values`() {
    var state = board(1)
    state.apply(.report(LookupTally(statistics: CacheStatistics(fetches: 9, revalidations: 4))))
    for columns in [150, 80, 40] {
      let text = draw(state, columns).joined(separator: "\n")
      #expect(text.contains("revalidated   4"))
      #expect(text.contains("fetches   5"))
    }
  }

  @Test func `shows the code of an airline on its badge, without extra width`() throws {
    let (red, blue) = (Colour(red: 255, green: 0, blue: 0), Colour(red: 0, green: 0, blue: 255))
    var details = RowDetails.complete
    details.badge = Badge(Pixmap(width: 2, height: 1) { x, _ in x == 0 ? red : blue })
    for columns in stride(from: 1, through: 181, by: 3) {
      #expect(draw(board(2, details), columns) == draw(board(2), columns))
    }
    let lines = BoardRenderer(size: ScreenSize(columns: 80, rows: 24)).lines(board(1, details))
    let row = try #require(lines.first { $0.text.hasPrefix(" 10:00") })
    let index = try #require(row.spans.firstIndex { $0.style == .badge(red, isFaint: false) })
    #expect(row.spans[index].text == "U")
    #expect(row.spans[index + 1] == .init(text: "A", style: .badge(blue, isFaint: false)))
    #expect(row.spans[index + 2].text.hasPrefix(" 15"))
    #expect(row.spans.count { if case .badge = $0.style { true } else { false } } == 2)
  }

  @Test func `shows the plain code without a badge`() throws {
    let spans = BoardRenderer(size: ScreenSize(columns: 80, rows: 24)).lines(board(1)).flatMap(
      \.spans
    )
    #expect(!spans.contains { if case .badge = $0.style { true } else { false } })
    #expect(spans.contains { $0.text.contains("UA 15") })
  }

  @Test func `shows whether the origin is online`() {
    var state = board(1)
    #expect(draw(state, 80).contains { $0.contains("origin online") })
    state.apply(.origin(isOnline: false))
    #expect(draw(state, 80).contains { $0.contains("origin offline") })
  }

  @Test func `shows the number of flights that do not fit`() {
    let lines = draw(board(40), 80, 24)
    let shown = lines.count { $0.hasPrefix(" 10:00") }
    #expect(shown == 17)
    #expect(lines.count == 24)
    #expect(lines.last?.hasSuffix("\(40 - shown) more ") == true)
    #expect(draw(board(shown), 80, 24).last?.contains("more") == false)
  }

  @Test func `shows the rows that match the filter, and counts the whole day`() {
    var state = board(3)
    state.apply(.flight(.cancelled(1)))
    let lines = draw(state, 80, 24, FilterState("CANCEL hnl"))
    #expect(lines.count { $0.hasPrefix(" 10:00") } == 1)
    #expect(lines.last?.hasPrefix(" filter: CANCEL hnl_  1 flight  ") == true)
    #expect(lines.contains { $0.contains("flights   3") })
    let none = draw(state, 80, 24, FilterState("xyz"))
    #expect(none.last?.hasPrefix(" filter: xyz_  0 flights  ") == true)
    #expect(draw(state, 80, 24).last?.contains("type to filter") == true)
  }

  @Test func `shows typed text before it is applied`() {
    var filter = FilterState()
    filter.apply(.type("xyz"))
    let lines = draw(board(3), 80, 24, filter)
    #expect(lines.count { $0.hasPrefix(" 10:00") } == 3)
    #expect(lines.last?.contains(" filter: xyz_ ") == true)
    #expect(lines.last?.contains("flights") == false)
  }

  @Test func `shows flights rather than a frame in a low window`() {
    let lines = draw(board(40), 80, 6)
    #expect(lines.count == 6)
    #expect(lines.count { $0.hasPrefix(" 10:00") } == 5)
    #expect(lines.first?.contains("09:30") == true)
  }

  @Test func `shows when a flight lands by the clock there`() throws {
    var state = board(1)
    state.apply(.flight(.departed(0, at: .at("10:05"))))
    let row = try #require(draw(state, 150).first { $0.hasPrefix(" 10:00") })
    #expect(row.contains("departed 10:05"))
    #expect(row.hasSuffix("16:05"))
  }

  @Test func `shows the status in words and colors`() throws {
    var state = board(3)
    state.apply(.flight(.delayed(0, until: .at("11:00"))))
    state.apply(.flight(.departed(1, at: .at("10:00"))))
    state.apply(.flight(.cancelled(2)))
    let spans = BoardRenderer(size: ScreenSize(columns: 100, rows: 24))
      .lines(state).flatMap(\.spans)
    func style(_ text: String) -> Style? { spans.first { $0.text.hasPrefix(text) }?.style }
    #expect(style("delayed 11:00") == .warning)
    #expect(style("departed 10:00") == .good)
    #expect(
      style("cancelled ") == .bad
        || spans.contains { $0.text.hasPrefix("cancelled") && $0.style == .bad }
    )
  }
}

@Suite(.fewAtOnce) struct `A styled line` {
  @Test func `merges adjacent parts of the same style`() {
    var line = StyledLine("a", .faint)
    line.append("b", .faint)
    line.append("", .bad)
    line.append("c")
    #expect(line.spans == [.init(text: "ab", style: .faint), .init(text: "c", style: .plain)])
    #expect(line.text == "abc")
    #expect(line.width == 3)
  }

  @Test(arguments: [(0, ""), (1, "a"), (2, "ab"), (3, "abc"), (9, "abc")])
  func `is truncated if there is no room`(columns: Int, text: String) {
    var line = StyledLine("ab", .faint)
    line.append("c", .bad)
    #expect(line.clipped(to: columns).text == text)
  }

  @Test(arguments: [(10, "ab      cd"), (6, "ab  cd"), (5, "ab"), (1, "a")])
  func `spreads two ends or leaves the second one out`(columns: Int, text: String) {
    #expect(StyledLine.spread(StyledLine("ab"), StyledLine("cd"), over: columns).text == text)
  }

  @Test(arguments: [(5, "abc  "), (3, "abc"), (2, "a…"), (1, "a"), (0, "")])
  func `has texts of a fixed width`(columns: Int, text: String) {
    #expect("abc".fitted(to: columns) == text)
  }
}

@Suite(.fewAtOnce) struct `A frame for a terminal` {
  @Test func `is written over the last one without clearing it first`() {
    let frame = Ansi.frame([StyledLine("a", .bad), StyledLine("b")], colours: .eight)
    #expect(
      frame == "\u{1B}[?2026h\u{1B}[H\u{1B}[31ma\u{1B}[0m\u{1B}[K\r\nb\u{1B}[K\u{1B}[J\u{1B}[?2026l"
    )
  }

  @Test func `has no colors if they are disabled`() {
    let badge = Style.badge(Colour(red: 1, green: 2, blue: 3), isFaint: false)
    let styles: [Style] = [.plain, .good, .warning, .bad, badge]
    let frame = Ansi.frame(styles.map { StyledLine("x", $0) }, colours: .none)
    #expect(!frame.contains("m"))
    #expect(frame.count { $0 == "x" } == 5)
  }

  @Test func `has badges in the available colors`() {
    let line = StyledLine("UA", .badge(Colour(red: 1, green: 2, blue: 3), isFaint: true))
    let codes = [
      ColourDepth.full: "38;2;255;255;255;48;2;1;2;3", .cube: "38;5;231;48;5;16", .eight: "37;40",
    ]
    for (depth, code) in codes {
      #expect(Ansi.frame([line], colours: depth).contains("\u{1B}[\(code)mUA\u{1B}[0m"))
    }
    // Without colors it looks like the rest of its row.
    #expect(Ansi.frame([line], colours: .none).contains("\u{1B}[2mUA\u{1B}[0m"))
  }

  @Test func `restores the terminal`() {
    for mode in ["?1049", "?25", "?7"] {
      #expect(Ansi.enter.contains(mode) && Ansi.leave.contains(mode))
    }
  }
}

@Suite(.fewAtOnce) struct `A plain line` {
  private func row(_ details: RowDetails, _ status: BoardRow.Status) -> BoardRow {
    var row = BoardRow(.sample(0, at: "10:00"))
    row.details = details
    row.status = status
    return row
  }

  @Test func `contains all details of a flight without escape codes`() {
    #expect(
      PlainReport.line(row(.complete, .departed(at: .at("10:05"))))
        == "10:00  UA 15    EWR-HNL  departed 10:05  United Air Lines, Boeing 767-424ER, "
        + "Newark Liberty to Honolulu, 35°F 10mph 10mi, lands 16:05"
    )
  }

  @Test func `describes stale, unknown and unanswered values in words`() {
    #expect(
      PlainReport.line(row(.stale, .cancelled))
        == "10:00  UA 15    EWR-HNL  cancelled       United Air Lines, Boeing 767-424ER, "
        + "Newark Liberty (stale) to Honolulu, 35°F 10mph 10mi (stale)"
    )
    #expect(PlainReport.line(row(.unanswered, .cancelled)).contains("no answer to no answer"))
    let absent = RowDetails(aircraft: .absent(isStale: false), destination: .absent(isStale: true))
    #expect(PlainReport.line(row(absent, .cancelled)).contains("unknown aircraft, "))
    #expect(PlainReport.line(row(absent, .cancelled)).contains("to HNL (stale), "))
  }

  @Test func `reports when the origin goes offline and online`() {
    #expect(
      PlainReport.line(originIsOnline: false, at: .at("09:00")) == "09:00  the origin is offline"
    )
    #expect(
      PlainReport.line(originIsOnline: true, at: .at("09:30"))
        == "09:30  the origin is online again"
    )
  }
}
