import Foundation
import LoopbackOrigin
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized) struct `The program` {
  /// The last line of the summary.
  private static let end = "counted by the origin"

  @Test func `the program replays the whole day and counts its flights`() async throws {
    let ending = try await Program.run("--plain", "--speed", "max")
    #expect(ending.status == 0)
    #expect(ending.errors == "")
    #expect(ending.count("flights") == 930)
    #expect(ending.count("departed") == 458)
    #expect(ending.count("cancelled") == 472)
    // 930 flights, of which 161 have no aircraft to look up.
    #expect(ending.count("requests") == 930 * 5 - 161)
    #expect(ending.count("requests") == ending.sum("hits", "stale hits", "joins", "misses"))
    // 731 different keys, and eight more fetches of each of the three departure airports.
    #expect(ending.count("fetches") == 731 + 3 * 8)
    // The rows of an hour request its weather for an hour; every twenty minutes it is revalidated without change.
    #expect(ending.sum("revalidated") > 50)
    // The day has flights of fifteen airlines.
    #expect(ending.count("badges") == 15)
    #expect(ending.count("pages") == 0)
    #expect(ending.count("origin requests") == ending.sum("fetches", "revalidated", "badges"))
    #expect(ending.sum("failures", "stale hits", "stale answers", "from disk") == 0)
    #expect(ending.lines.count { $0.contains("cancelled   ") && $0.contains(":") } == 472)
    #expect(ending.lines.count { $0.contains("departed ") && $0.contains(":") } == 458)
    #expect(!ending.output.contains("no answer"))
    #expect(!ending.output.contains("\u{1B}"))
  }

  @Test func `the program shows stale values while the origin is offline, and recovers`()
    async throws
  {
    let ending = try await Program.run(
      "--speed",
      "max",
      "--offline-at",
      "09:00",
      "--online-at",
      "11:00",
      "--latency",
      "5"
    )
    #expect(ending.status == 0)
    #expect(ending.count("flights") == 930)
    #expect(ending.count("cancelled") == 472)
    #expect(ending.sum("stale hits") > 0)
    #expect(ending.sum("failures") > 0)
    #expect(ending.count("requests") == ending.sum("hits", "stale hits", "joins", "misses"))
    #expect(
      ending.count("origin requests")
        == ending.sum("fetches", "revalidated", "badges") - ending.sum("failures")
    )
    let lines = ending.lines
    let offline = try #require(lines.firstIndex { $0 == "09:00  the origin is offline" })
    let online = try #require(lines.firstIndex { $0 == "11:00  the origin is online again" })
    let stale = lines.indices.filter { lines[$0].contains("(stale)") }
    let unanswered = lines.indices.filter { lines[$0].contains("no answer") }
    #expect(!stale.isEmpty && !unanswered.isEmpty)
    for index in stale + unanswered {
      // Answers to requests during the outage are printed up to a quarter of an hour after it.
      #expect(index > offline && index < online + 40)
    }
  }

  @Test func `the program prints its help`() async throws {
    let ending = try await Program.run("--help")
    #expect(ending.status == 0)
    #expect(ending.output.contains("usage: DepartureBoard"))
    #expect(ending.lines.allSatisfy { $0.count <= 100 })
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func `the program prints the summary when a signal ends it`(
    signal: Int32
  ) async throws {
    let program = try Program(["--plain", "--speed", "10000"])
    #expect(await program.someOutput() != "")
    program.send(signal)
    let ending = await program.ending()
    #expect(ending.status == 128 + signal)
    #expect(ending.errors == "")
    #expect(ending.sum("flights") > 0 && ending.sum("flights") < 930)
    #expect(ending.sum("requests") > 0)
  }

  @Test func `the program does not wait for answers when it is interrupted`() async throws {
    // The first answers arrive after ten seconds. On a busy machine a run can take that long, but not every
    // time.
    for _ in 0..<5 {
      let terminal = try PseudoTerminal(columns: 60, rows: 20)
      let program = try Program(
        ["--speed", "max", "--latency", "10000"],
        terminal: terminal.device
      )
      try await terminal.read(untilFrame: { _ in true })
      let told = ContinuousClock.now
      program.send(SIGINT)
      _ = await terminal.read(until: Self.end)
      #expect(await program.ending(readsOutput: false).status == 130)
      if ContinuousClock.now - told < .seconds(8) { return }
    }
    Issue.record("it waits for answers")
  }

  @Test func `the program ends when its output is closed`() async throws {
    let program = try Program(["--plain", "--speed", "100000", "--latency", "0"])
    try program.closeOutput()
    let ending = await program.ending(readsOutput: false)
    #expect(ending.status == 74)
    #expect(ending.errors == "")
  }

  @Test func `the program reports that its port is in use`() async throws {
    let other = try LoopbackOrigin()
    let ending = try await Program.run("--plain", "--speed", "max", "--port", "\(other.port)")
    #expect(ending.status == 1)
    #expect(ending.output == "")
    #expect(ending.errors.contains("\(other.port)"))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }

  @Test func `the program uses the alternate screen of a terminal, and restores the main one`()
    async throws
  {
    let terminal = try PseudoTerminal(columns: 60, rows: 20)
    #expect(terminal.echoes)
    let program = try Program(["--speed", "10000", "--latency", "0"], terminal: terminal.device)
    var output = try await terminal.read(untilFrame: { frame in
      frame.lines.contains { $0.contains(/departed \d\d:\d\d/) }
    })
    #expect(!terminal.echoes)
    program.send(SIGINT)
    output += await terminal.read(until: Self.end)
    #expect(await program.ending(readsOutput: false).status == 130)
    #expect(terminal.echoes)
    let parts = output.components(separatedBy: "\u{1B}[?1049l")
    try #require(parts.count == 2)
    #expect(parts[0].hasPrefix("\u{1B}[?1049h\u{1B}[?25l"))
    #expect(parts[0].hasSuffix("\u{1B}[?25h"))
    #expect(parts[1].contains("flights  "))
    let frames = Frame.all(in: parts[0]).map(\.lines)
    #expect(frames.count > 1)
    for frame in frames {
      #expect(frame.count == 20)
      #expect(frame.allSatisfy { $0.count <= 60 })
    }
  }

  @Test func `the program begins with the filter that its last run had on a terminal`()
    async throws
  {
    let folder = try TemporaryFolder()
    for (keys, filter) in [("ua\u{7F}a", "ua"), ("\u{15}ewr", "ewr"), ("", "ewr")] {
      let terminal = try PseudoTerminal(columns: 60, rows: 20)
      let program = try Program(
        ["--speed", "100", "--latency", "0"],
        caches: folder.url,
        terminal: terminal.device
      )
      try await terminal.read(untilFrame: { _ in true })
      try terminal.type(keys)
      // The number of flights is shown once the filter is in effect.
      try await terminal.read(untilFrame: { frame in
        frame.lines.contains { $0.contains(" filter: \(filter)_  ") }
      })
      program.send(SIGINT)
      _ = await terminal.read(until: Self.end)
      #expect(await program.ending(readsOutput: false).status == 130)
    }
  }

  @Test func `the program shows the timetable of the day, and returns to the board`() async throws {
    let terminal = try PseudoTerminal(columns: 80, rows: 24)
    let program = try Program(["--speed", "1", "--latency", "0"], terminal: terminal.device)
    try await terminal.read(untilFrame: { $0.source.contains("type to filter") })
    try terminal.type("\u{1B}[B")
    // At four o'clock, the first departures follow; the board has those of the next hour only.
    try await terminal.read(untilFrame: { frame in
      frame.lines.contains { $0.contains("US 1117") } && !frame.source.contains("asking")
    })
    try terminal.type("\u{1B}[6~")
    try await terminal.read(untilFrame: { frame in
      frame.source.contains("Escape") && !frame.source.contains("US 1117")
        && frame.lines.contains { $0.hasPrefix(" 06:00") }
    })
    try terminal.type("\u{1B}")
    try await terminal.read(untilFrame: { $0.source.contains("type to filter") })
    program.send(SIGINT)
    let summary = await terminal.read(until: Self.end)
    #expect(summary.contains(#/pages +[34] /#))
    #expect(await program.ending(readsOutput: false).status == 130)
  }

  @Test func `the program fits its board into a window whose size changes`() async throws {
    let terminal = try PseudoTerminal(columns: 120, rows: 30)
    let program = try Program(["--speed", "3000", "--latency", "0"], terminal: terminal.device)
    let wide = try await terminal.read(untilFrame: { _ in true })
    #expect(Frame.all(in: wide).allSatisfy { $0.lines.count == 30 })
    try terminal.resize(columns: 33, rows: 9)
    // Frames of the old size may still be in the buffer; all frames after the first one that fits also fit.
    try await terminal.read(untilFrame: { $0.lines.count <= 9 })
    let output = try await terminal.read(untilFrame: { $0.source.contains("cancelled") })
    program.send(SIGTERM)
    _ = await terminal.read(until: Self.end)
    #expect(await program.ending(readsOutput: false).status == 143)
    let frames = Frame.all(in: output).map(\.lines)
    #expect(!frames.isEmpty)
    for frame in frames {
      #expect(frame.count <= 9)
      #expect(frame.allSatisfy { $0.count <= 33 })
    }
  }

  @Test(arguments: ["xterm", "dumb"])
  func `the program prints plain lines to a terminal on request, or if it cannot draw`(
    kind: String
  ) async throws {
    let terminal = try PseudoTerminal(columns: 60, rows: 20)
    let program = try Program(
      ["--speed", "max", "--until", "06:00", "--latency", "0"]
        + (kind == "dumb" ? [] : ["--plain"]),
      terminal: terminal.device,
      environment: ["TERM": kind]
    )
    let output = await terminal.read(until: Self.end)
    #expect(await program.ending(readsOutput: false).status == 0)
    #expect(!output.contains("\u{1B}"))
    #expect(output.contains("departed 04:58"))
  }
}
