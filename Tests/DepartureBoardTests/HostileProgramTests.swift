import Foundation
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized) struct `The program in a hostile world` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private static let short = ["--plain", "--speed", "max", "--until", "05:00", "--latency", "0"]

  @Test func `the program reports that its output is closed, and does not write it elsewhere`()
    async throws
  {
    let arguments = Self.short + ["--cache", folder.path]
    let ending = try await Program(arguments, shell: "exec \"$0\" \"$@\" >&- <&-").ending()
    #expect(ending.status == 74)
    #expect(ending.errors.hasPrefix("DepartureBoard: the output cannot be written: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let content = (try? Data(contentsOf: folder.url.appending(path: name))) ?? Data()
      #expect(!content.contains(Data("departed ".utf8)))
    }
  }

  #if os(Linux)
  @Test func `the program reports that the disk of its output is full`() async throws {
    let ending = try await Program(["--help"], shell: "exec \"$0\" \"$@\" > /dev/full").ending()
    #expect(ending.status == 74)
    #expect(ending.errors.contains("No space left on device"))
    #expect(ending.errors.count { $0 == "\n" } == 1)
  }
  #endif

  @Test func `the program ends although its output is not read`() async throws {
    let arguments = ["--plain", "--speed", "max", "--latency", "0", "--cache", folder.path]
    let program = try Program(arguments, isClogged: true)
    // Output is written before any file.
    await Program.wait { [folder] in folder.byteCount >= 2000 }
    program.send(SIGINT)
    let ending = await program.ending(readsOutput: false)
    #expect(ending.status == 128 + SIGINT)
    #expect(ending.errors == "")
  }

  @Test func `the program continues when its files cannot grow`() async throws {
    let arguments = Self.short + ["--cache", folder.path]
    let ending = try await Program(arguments, shell: "ulimit -f 4; exec \"$0\" \"$@\"").ending()
    #expect(ending.status == 0)
    #expect(ending.errors.hasPrefix("DepartureBoard: not everything could be kept: "))
    #expect(ending.errors.count { $0 == "\n" } == 1)
    #expect(ending.output.contains("departed 04:58"))
  }

  @Test func `the program shows the control characters of a filter without interpreting them`()
    async throws
  {
    let terminal = try PseudoTerminal(columns: 60, rows: 20)
    let arguments = Self.short.filter { $0 != "--plain" } + ["--filter", "x\u{1B}[2Jy\n日\u{7}"]
    let program = try Program(arguments, terminal: terminal.device)
    let output = await terminal.readToEnd()
    #expect(await program.ending(readsOutput: false).status == 0)
    #expect(output.contains(#"x\u{1B}[2Jy\n\u{65E5}\u{07}"#))
    #expect(!output.contains("\u{1B}[2J") && !output.contains("\u{7}"))
  }

  @Test(arguments: [["--sped"], ["--online-at", "09:00"], ["a\nb"], ["--speed", "\u{1B}[2J"]])
  func `the program rejects invalid arguments in one line, without control characters`(
    arguments: [String]
  ) async throws {
    let ending = try await Program(arguments).ending()
    #expect(ending.status == 64)
    #expect(ending.output == "")
    #expect(ending.errors.hasPrefix("DepartureBoard: ") && ending.errors.hasSuffix("\n"))
    #expect(ending.errors.dropLast().unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) })
  }

  @Test func `the program supports the highest speed, and a day that ends before it begins`()
    async throws
  {
    let ending = try await Program.run("--plain", "--latency", "0", "--speed", "100000")
    #expect(ending.status == 0)
    #expect(ending.count("flights") == 930 && ending.count("cancelled") == 472)
    let empty = try await Program.run("--plain", "--until", "00:00", "--speed", "max")
    #expect(empty.status == 0)
    #expect(empty.sum("departed", "cancelled", "failures") == 0)
  }
}
