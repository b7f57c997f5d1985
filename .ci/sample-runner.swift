// Runs the samples of the documentation, each in a process of its own, and compares what they print with what they say
// they print. Usage: Samples, or Samples NUMBER for one of them.
//
// A sample runs like a main program: on the main actor, and its variables live until its output is complete.

import Foundation
import Synchronization

/// A sample that is run.
struct RunnableSample: Sendable {
  let place: String
  /// The lines that it says it prints.
  let output: [String]
  let body: @Sendable () async throws -> Void
}

/// The output of the sample that runs in this process.
let output = Mutex("")

/// Replaces the function of the standard library in samples.
func print(_ items: Any..., separator: String = " ", terminator: String = "\n") {
  let text = items.map { "\($0)" }.joined(separator: separator) + terminator
  output.withLock { $0 += text }
}

/// The complete lines that the sample has printed.
func printedLines() -> [String] {
  output.withLock { $0.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init) }
}

func runningSample() -> RunnableSample? {
  CommandLine.arguments.dropFirst().first.flatMap { Int($0) }.map { runnableSamples[$0] }
}

/// Waits for the output of tasks and handlers, and for a moment for any that is too much.
func endOfSample() async {
  guard let sample = runningSample() else { return }
  while printedLines().count < sample.output.count { try? await Task.sleep(for: .milliseconds(5)) }
  try? await Task.sleep(for: .milliseconds(50))
  guard isExpected(printedLines(), sample.output) else { fail("does not print what it says") }
}

/// Returns whether lines are those that a sample says it prints; "…" at the end of one stands for a rest that varies.
func isExpected(_ lines: [String], _ output: [String]) -> Bool {
  lines.count == output.count
    && zip(lines, output).allSatisfy { $1.hasSuffix("…") ? $0.hasPrefix($1.dropLast()) : $0 == $1 }
}

/// Ends the process of a sample.
func fail(_ reason: String) -> Never {
  let lines = printedLines().map { "  \($0)" }.joined(separator: "\n")
  Swift.print("\(reason); it has printed:\n\(lines.isEmpty ? "  nothing" : lines)")
  exit(1)
}

/// Runs a sample in a process of its own and returns what is wrong with it.
func problem(of number: Int) async throws -> String? {
  let folder = FileManager.default.temporaryDirectory.appending(path: "sample-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  let process = Process()
  let pipe = Pipe()
  process.executableURL = Bundle.main.executableURL
  process.arguments = ["\(number)"]
  process.currentDirectoryURL = folder
  // Nothing that is stored reaches another sample.
  process.environment = ["HOME": folder.path, "TMPDIR": folder.path, "SWIFT_BACKTRACE": "enable=no"]
  process.standardOutput = pipe
  process.standardError = pipe
  try process.run()
  let text = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  guard process.terminationReason != .exit || process.terminationStatus != 0 else { return nil }
  let end = process.terminationReason == .exit ? "" : "ends by signal \(process.terminationStatus): "
  return "\(runnableSamples[number].place): \(end)\(String(decoding: text, as: UTF8.self))"
}

@main struct SampleRunner {
  @MainActor static func main() async throws {
    guard let sample = runningSample() else { return try await runAll() }
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 60)
      fail("has not ended, or not printed all that it says, within a minute")
    }
    do {
      try await sample.body()
    } catch {
      fail("throws \(error)")
    }
  }

  static func runAll() async throws {
    var problems: [String] = []
    try await withThrowingTaskGroup(of: String?.self) { group in
      for number in runnableSamples.indices {
        // Most samples only wait.
        if number >= 4, let problem = try await group.next() ?? nil { problems.append(problem) }
        group.addTask { @concurrent in try await problem(of: number) }
      }
      for try await problem in group { problems += [problem].compactMap { $0 } }
    }
    for problem in problems.sorted() { Swift.print(problem) }
    if !problems.isEmpty { exit(1) }
  }
}
