import Foundation
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized) struct `The cache of the program` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func run(_ arguments: String...) async throws -> Ending {
    let common = ["--plain", "--speed", "max", "--latency", "0", "--cache", folder.path]
    return try await Program(common + arguments).ending()
  }

  /// The lines of the board, without the summary.
  private func board(_ ending: Ending) -> [Substring] {
    Array(ending.lines.prefix { !$0.hasPrefix("flights  ") })
  }

  @Test func `the cache of the program serves the next run, which shows the same board`()
    async throws
  {
    let first = try await run()
    #expect(first.status == 0 && first.errors == "")
    #expect(first.count("fetches") == 755)
    #expect(first.count("from disk") == 0)
    #expect(folder.byteCount > 50_000)

    let second = try await run()
    #expect(second.status == 0 && second.errors == "")
    #expect(board(second) == board(first))
    for name in ["flights", "departed", "cancelled", "requests"] {
      #expect(second.count(name) == first.count(name))
    }
    // The departure airports and the weather are fetched again; missing values are also read from disk.
    #expect(second.count("fetches") == 80)
    #expect(second.sum("from disk") == 755 - 80)
    #expect(first.count("badges") == 15 && second.count("badges") == 0)
    #expect(second.count("origin requests") == second.sum("fetches", "revalidated"))
  }

  @Test func `the cache of the program has stale values while the origin is offline all day`()
    async throws
  {
    _ = try await run("--until", "07:00")
    let ending = try await run("--until", "07:00", "--offline-at", "00:00", "--online-at", "24:00")
    #expect(ending.status == 0)
    #expect(ending.count("origin requests") == 0)
    #expect(ending.sum("from disk") > 0)
    #expect(ending.sum("stale answers") > 0)
    #expect(!ending.output.contains("no answer"))
    #expect(ending.output.contains("(stale)"))
  }

  @Test func `the cache of the program is complete when a signal ends the program`() async throws {
    let program = try Program([
      "--plain", "--speed", "max", "--latency", "0", "--cache", folder.path,
    ])
    // At this speed the program has waited for all answers up to here.
    #expect(await program.someOutput() != "")
    program.send(SIGINT)
    let ending = await program.ending()
    #expect(ending.status == 128 + SIGINT)
    #expect(ending.errors == "")
    let next = try await run("--until", "04:30")
    #expect(next.sum("from disk") > 0)
  }

  @Test func `the cache of the program contains the written values after the program is killed`()
    async throws
  {
    let program = try Program([
      "--plain", "--speed", "max", "--latency", "0", "--cache", folder.path,
    ])
    // It is written during the day, not at its end, which is not reached until the output is read.
    #expect(await program.someOutput() != "")
    await Program.wait { [folder] in folder.hasLog }
    program.send(SIGKILL)
    #expect(await program.ending().status == -1)
    let next = try await run()
    #expect(next.status == 0 && next.errors == "")
    #expect(next.count("flights") == 930)
    #expect(next.sum("from disk") > 0)
    #expect(next.sum("fetches", "from disk") == 755)
  }

  @Test func `the program leaves no cache and no temporary files with --no-cache`() async throws {
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    let arguments = ["--plain", "--speed", "max", "--until", "05:30", "--no-cache"]
    let environment = ["TMPDIR": folder.path]
    let ending = try await Program(arguments, caches: folder.url, environment: environment).ending()
    #expect(ending.status == 0 && ending.sum("badges") > 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(folder.byteCount == 0 && !names.contains { $0.hasPrefix("DepartureBoard") })
  }

  @Test(arguments: ["cut", "garbled"])
  func `a damaged cache of the program has no effect on the board`(damage: String) async throws {
    let first = try await run("--until", "06:00")
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let file = folder.url.appending(path: name)
      guard let bytes = try? Data(contentsOf: file) else { continue }
      let damaged = damage == "cut" ? bytes.prefix(bytes.count / 2) : Data(bytes.map { $0 ^ 0x55 })
      try damaged.write(to: file)
    }
    let second = try await run("--until", "06:00")
    #expect(second.status == 0 && second.errors == "")
    #expect(board(second) == board(first))
    #expect(second.count("badges") == first.count("badges"))
  }

  @Test func `a cache of the program that cannot be used is reported in one line`() async throws {
    try Data("x".utf8).write(to: URL(filePath: folder.path.trimmingSuffix("/")))
    let ending = try await run()
    #expect(ending.status == 1)
    #expect(ending.output == "")
    #expect(ending.errors.hasPrefix("DepartureBoard: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }

  #if os(Linux)
  @Test func `the cache of the program is in the user's caches by default`() async throws {
    let arguments = ["--plain", "--speed", "max", "--until", "05:30"]
    let first = try await Program(arguments, caches: folder.url).ending()
    #expect(first.status == 0 && first.errors == "")
    #expect(folder.byteCount > 0)
    let second = try await Program(arguments, caches: folder.url).ending()
    #expect(second.sum("from disk") > 0)
  }

  @Test func `the program uses no cache if the user's caches are not available`() async throws {
    try Data("x".utf8).write(to: URL(filePath: folder.path.trimmingSuffix("/")))
    let arguments = ["--plain", "--speed", "max", "--until", "05:30"]
    let ending = try await Program(arguments, caches: folder.url).ending()
    #expect(ending.status == 0)
    #expect(ending.errors.hasPrefix("DepartureBoard: nothing will be kept: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
    #expect(ending.sum("flights") > 0)
  }
  #endif
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}

@Suite(.fewAtOnce, .serialized) struct `The filter of the program` {
  @Test func `the filter of the program selects matching lines, and keeps the totals of the day`()
    async throws
  {
    let ending = try await Program.run(
      "--plain",
      "--speed",
      "max",
      "--latency",
      "0",
      "--filter",
      "delta CANCELLED"
    )
    #expect(ending.status == 0)
    #expect(ending.count("flights") == 930)
    #expect(ending.count("cancelled") == 472)
    #expect(ending.count("requests") == 4489)
    #expect(ending.count("fetches") == 755)
    let rows = ending.lines.prefix { !$0.hasPrefix("flights  ") }
    #expect(rows.count > 10 && rows.count < 472)
    #expect(rows.allSatisfy { $0.contains("Delta") && $0.contains("cancelled") })
  }

  @Test func `the filter of the program is typed on a terminal, erased and cleared`() async throws {
    let terminal = try PseudoTerminal(columns: 120, rows: 30)
    let program = try Program(["--speed", "3000", "--latency", "0"], terminal: terminal.device)
    // The program reads the keyboard once it has drawn its first frame.
    try await terminal.read(untilFrame: { _ in true })
    try terminal.type("deltas\u{7F}")
    // Typed letters are shown immediately, and the number of flights once typing has paused. That frame shows
    // only matching flights, possibly none.
    let output = try await terminal.read(untilFrame: { frame in
      frame.isFiltered(by: "delta") && !frame.flights.isEmpty
    })
    let frames = Frame.all(in: output).filter { $0.isFiltered(by: "delta") }
    #expect(frames.flatMap(\.flights).allSatisfy { $0.contains("Delta") })
    try terminal.type("\u{1B}")
    try await terminal.read(untilFrame: { $0.source.contains("type to filter") })
    program.send(SIGINT)
    _ = await terminal.read(until: "counted by the origin")
    #expect(await program.ending(readsOutput: false).status == 130)
    #expect(terminal.echoes)
  }
}

extension Frame {
  /// Whether typing has paused and the filter is applied.
  fileprivate func isFiltered(by text: String) -> Bool {
    source.contains("\u{1B}[1m\(text)\u{1B}[0m\u{1B}[2m_  ")
  }

  /// The lines of flights.
  fileprivate var flights: [String] {
    lines.filter { $0.prefixMatch(of: /\s\d\d:\d\d\s/) != nil }
  }
}
