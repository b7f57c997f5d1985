import Foundation
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized) struct `The program in a hostile world` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private static let short = ["--plain", "--speed", "max", "--until", "06:00", "--latency", "0"]

  /// Arguments of a short run with a cache.
  private func run(_ arguments: String...) async throws -> Ending {
    try await Program(Self.short + ["--cache", folder.path] + arguments).ending()
  }

  // MARK: - Standard streams

  @Test(arguments: [">&-", ">&- 2>&- <&-"])
  func `reports that its output is closed, and does not write it elsewhere`(
    redirection: String
  ) async throws {
    let arguments = Self.short + ["--cache", folder.path]
    let ending = try await Program(arguments, shell: "exec \"$0\" \"$@\" \(redirection)").ending()
    #expect(ending.status == 74)
    if redirection == ">&-" {
      #expect(ending.errors.hasPrefix("DepartureBoard: the output cannot be written: "))
      #expect(ending.errors.count { $0 == "\n" } == 1)
    }
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let content = (try? Data(contentsOf: folder.url.appending(path: name))) ?? Data()
      #expect(!content.contains(Data("departed ".utf8)))
      #expect(!content.contains(Data("DepartureBoard: ".utf8)))
    }
    #expect(try await run().status == 0)
  }

  @Test(arguments: ["2>&-", "<&-", "2>&- <&-"])
  func `works without the other streams`(redirection: String) async throws {
    let ending = try await Program(Self.short, shell: "exec \"$0\" \"$@\" \(redirection)").ending()
    #expect(ending.status == 0)
    #expect(ending.sum("flights") > 0)
  }

  #if os(Linux)
  @Test(arguments: [short, ["--help"]])
  func `reports that its output is full`(arguments: [String]) async throws {
    let ending = try await Program(arguments, shell: "exec \"$0\" \"$@\" > /dev/full").ending()
    #expect(ending.status == 74)
    #expect(ending.errors.contains("No space left on device"))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }
  #endif

  @Test func `reports that its output may not grow`() async throws {
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    let ending = try await Program(
      ["--help"],
      shell: "ulimit -f 1; exec \"$0\" \"$@\" > '\(folder.path)output'"
    ).ending()
    #expect(ending.status == 74)
    #expect(ending.errors.hasPrefix("DepartureBoard: the output cannot be written: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func `ends although its output is not read`(signal: Int32) async throws {
    let arguments = ["--plain", "--speed", "max", "--latency", "0", "--cache", folder.path]
    let program = try Program(arguments, isClogged: true)
    // Output is written before any file.
    await Program.wait { [folder] in folder.byteCount >= 2000 }
    program.send(signal)
    let ending = await program.ending(readsOutput: false)
    #expect(ending.status == 128 + signal)
    #expect(ending.errors == "")
  }

  // MARK: - Signals

  @Test func `ends when a signal arrives while it starts`() async throws {
    for attempt in 0..<5 {
      let path = folder.url.appending(path: "\(attempt)").path(percentEncoded: false)
      let program = try Program(["--plain", "--speed", "1", "--cache", path])
      await Program.wait { access(path, F_OK) == 0 }
      program.send(SIGINT)
      #expect(await program.ending().status == 130)
    }
  }

  @Test func `restores the terminal on SIGQUIT`() async throws {
    let terminal = try PseudoTerminal(columns: 60, rows: 20)
    let program = try Program(["--speed", "10000", "--latency", "0"], terminal: terminal.device)
    var output = try await terminal.read(untilFrame: { _ in true })
    program.send(SIGQUIT)
    output += await terminal.read(until: "origin 404")
    #expect(await program.ending(readsOutput: false).status == 131)
    #expect(output.contains("\u{1B}[?1049l"))
    #expect(terminal.echoes)
  }

  @Test func `ignores a signal that was ignored when it started`() async throws {
    let program = try Program(
      ["--plain", "--speed", "10000", "--latency", "0"],
      shell: "trap '' HUP; exec \"$0\" \"$@\""
    )
    #expect(await program.someOutput() != "")
    program.send(SIGHUP)
    // The program continues; these reads and the content of the pipe are less than the output of a day.
    for _ in 0..<40 { #expect(await program.someOutput() != "") }
    program.send(SIGTERM)
    #expect(await program.ending().status == 143)
  }

  // MARK: - Terminals

  /// Returns the output of the first two hours of the day on a terminal.
  private func output(_ environment: [String: String]) async throws -> String {
    let terminal = try PseudoTerminal(columns: 100, rows: 20)
    // The program waits for all answers, so at least the last frame shows badges.
    let program = try Program(
      ["--speed", "max", "--latency", "0", "--until", "06:00"],
      terminal: terminal.device,
      environment: environment
    )
    let output = await terminal.readToEnd()
    #expect(await program.ending(readsOutput: false).status == 0)
    return output
  }

  @Test func `shows badges in the colors of the terminal`() async throws {
    #expect(try await output(["COLORTERM": "truecolor"]).contains(";48;2;"))
    #expect(try await output([:]).contains(";48;5;"))
    #expect(try await output(["TERM": "vt220"]).contains("[30;4"))
    let plain = try await output(["NO_COLOR": "1", "COLORTERM": "truecolor"])
    #expect(plain.contains("\u{1B}[?1049h") && plain.contains(/US|UA|B6/))
    #expect(plain.firstMatch(of: /\u{1B}\[[0-9;]*[34][0-9][;m]/) == nil)
  }

  @Test func `prints plain lines to a terminal that cannot draw`() async throws {
    let output = try await output(["TERM": "dumb"])
    #expect(output.contains("departed 04:58"))
    #expect(!output.contains("\u{1B}"))
  }

  @Test func `shows a filter with control characters without interpreting them`() async throws {
    let terminal = try PseudoTerminal(columns: 60, rows: 20)
    let program = try Program(
      ["--speed", "3000", "--latency", "0", "--filter", "x\u{1B}[2Jy\n日\u{7}"],
      terminal: terminal.device
    )
    let output = await terminal.read(until: "\u{FFFD}\u{FFFD}\u{FFFD}")
    program.send(SIGINT)
    _ = await terminal.read(until: "origin 404")
    #expect(await program.ending(readsOutput: false).status == 130)
    #expect(output.contains("x\u{FFFD}[2Jy\u{FFFD}\u{FFFD}\u{FFFD}"))
    #expect(!output.contains("\u{1B}[2J") && !output.contains("\u{7}"))
  }

  // MARK: - Files

  @Test(arguments: ["empty", "cut", "garbled", "long", "foreign"])
  func `shows the same board with damaged files`(damage: String) async throws {
    let first = try await run()
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    var damaged = 0
    for name in names {
      let file = folder.url.appending(path: name)
      guard let bytes = try? Data(contentsOf: file) else { continue }
      damaged += 1
      try Self.damage(bytes, damage).write(to: file)
    }
    // Five maps and some badges.
    #expect(damaged > 8)
    let second = try await run()
    #expect(second.status == 0 && second.errors == "")
    #expect(Self.board(second) == Self.board(first))
    #expect(!Self.board(second).isEmpty)
    // A file with appended bytes keeps its values.
    if damage != "long" { #expect(second.count("badges") == first.count("badges")) }
    let third = try await run()
    #expect(Self.board(third) == Self.board(first))
    #expect(third.count("badges") == 0)
    #expect(third.sum("from disk") > 0)
  }

  private static func damage(_ bytes: Data, _ kind: String) -> Data {
    switch kind {
    case "empty": Data()
    case "cut": bytes.prefix(bytes.count / 2)
    case "garbled": Data(bytes.map { $0 ^ 0x55 })
    case "long": bytes + bytes
    default: Data("<html><body>Sign in to the airport's network</body></html>".utf8)
    }
  }

  /// The lines of the board, without the summary.
  private static func board(_ ending: Ending) -> [Substring] {
    Array(ending.lines.prefix { !$0.hasPrefix("flights  ") })
  }

  @Test func `omits badges if they cannot be stored`() async throws {
    let first = try await run()
    let media = folder.url.appending(path: "media")
    try FileManager.default.removeItem(at: media)
    try Data("x".utf8).write(to: media)
    let second = try await run()
    #expect(second.status == 0 && second.errors == "")
    #expect(Self.board(second) == Self.board(first))
    #expect(try Data(contentsOf: media) == Data("x".utf8))
  }

  @Test func `leaves no badges without a cache`() async throws {
    let caches = try TemporaryFolder()
    try FileManager.default.createDirectory(at: caches.url, withIntermediateDirectories: true)
    let ending = try await Program(
      Self.short + ["--no-cache"],
      caches: caches.url,
      environment: ["TMPDIR": caches.path]
    ).ending()
    #expect(ending.status == 0)
    #expect(ending.sum("badges") > 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: caches.path)
    #expect(!names.contains { $0.hasPrefix("DepartureBoard") })
  }

  @Test func `continues when its files may not grow`() async throws {
    let ending = try await Program(
      Self.short + ["--cache", folder.path],
      shell: "ulimit -f 4; exec \"$0\" \"$@\""
    ).ending()
    #expect(ending.status == 0)
    #expect(ending.errors.hasPrefix("DepartureBoard: not everything could be kept: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
    let fresh = try await Program(Self.short).ending()
    #expect(Self.board(ending) == Self.board(fresh))
    let next = try await run()
    #expect(next.status == 0 && next.errors == "")
    #expect(Self.board(next) == Self.board(fresh))
  }

  @Test(arguments: [["/dev/null"], ["/dev/null/\nx"], [String(repeating: "x", count: 5000)]])
  func `reports in one line that a folder cannot be used`(path: [String]) async throws {
    let ending = try await Program(["--plain", "--speed", "max", "--cache"] + path).ending()
    #expect(ending.status == 1)
    #expect(ending.output == "")
    #expect(ending.errors.hasPrefix("DepartureBoard: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }

  // MARK: - Command lines

  @Test(arguments: [
    ["a\nb"], ["--speed", "\u{1B}[2J"], ["--\u{7}"], ["--until", "0\r\n9"], ["\u{202E}x"],
  ])
  func `quotes invalid arguments without interpreting control characters`(
    arguments: [String]
  ) async throws {
    let ending = try await Program(arguments).ending()
    #expect(ending.status == 64)
    #expect(ending.errors.count { $0.isNewline } == 1)
    #expect(ending.errors.dropLast().unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) })
  }

  @Test(arguments: [
    ["--speed", "100000"], ["--speed", "1e5", "--filter", ""], ["--speed", "99999.9"],
  ])
  func `supports the highest speeds`(arguments: [String]) async throws {
    let ending = try await Program(["--plain", "--latency", "0"] + arguments).ending()
    #expect(ending.status == 0)
    #expect(ending.count("flights") == 930)
    #expect(ending.count("departed") == 458)
    #expect(ending.count("cancelled") == 472)
    #expect(ending.sum("failures") == 0)
  }

  @Test func `supports a day that ends before it begins`() async throws {
    let ending = try await Program.run("--plain", "--until", "00:00", "--offline-at=23:00")
    #expect(ending.status == 64)
    let empty = try await Program.run("--plain", "--until", "00:00", "--speed", "max")
    #expect(empty.status == 0)
    #expect(empty.sum("departed", "cancelled", "failures") == 0)
  }
}
