import Foundation
import Plexus
import Synchronization

/// A part of a row that runs in a separate process, to start without reusable memory or under valgrind.
enum Probe: Sendable {
  /// Runs a number of operations and returns the cost of each, if it measures that itself.
  typealias Body = @concurrent @Sendable (_ count: Int) async -> Double

  /// Returns the body of a probe.
  static func named(_ name: String) -> Body? {
    switch name {
    case "entries": { bytesOfAnEntry(count: $0, isBounded: false) }
    case "bounded entries": { bytesOfAnEntry(count: $0, isBounded: true) }
    default: crowdProbes[name] ?? countedProbes[name]
    }
  }

  /// Runs a probe in a separate process.
  ///
  /// - Parameters:
  ///   - name: The name of the probe.
  ///   - count: The number of operations.
  /// - Returns: The result of the probe.
  /// - Throws: A ``UsageError`` if the process printed no number.
  static func run(_ name: String, count: Int) throws -> Double {
    let (output, _) = try runProcess(try executable(), ["--probe", name, "\(count)"])
    guard let number = Double(output.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw UsageError("The probe \(name) said: \(output)")
    }
    return number
  }

  /// Counts the cost of one operation of a probe with valgrind.
  ///
  /// The probe runs twice with different numbers of operations, which cancels out the cost of the process.
  ///
  /// - Parameters:
  ///   - name: The name of the probe.
  ///   - tool: The tool of valgrind and its options.
  ///   - mark: The text before the number in the tool's report.
  ///   - count: The number of operations.
  /// - Returns: The number for one operation.
  /// - Throws: ``NotMeasurable`` without valgrind.
  static func count(
    _ name: String,
    by tool: [String],
    after mark: String,
    count: Int
  ) throws -> Double {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    guard
      let valgrind = folders.map({ "\($0)/valgrind" })
        .first(where: FileManager.default.isExecutableFile)
    else { throw NotMeasurable("valgrind is not installed") }
    func total(_ count: Int) throws -> Double {
      let program = try executable().path
      let (_, report) = try runProcess(
        URL(fileURLWithPath: valgrind),
        tool + [program, "--probe", name, "\(count)"]
      )
      guard let line = report.split(separator: "\n").last(where: { $0.contains(mark) }),
        let number = line.components(separatedBy: mark).last?.split(separator: " ").first,
        let total = Double(number.replacingOccurrences(of: ",", with: ""))
      else { throw NotMeasurable("valgrind said nothing of \(mark)") }
      return total
    }
    let few = count / 4
    return try (total(count) - total(few)) / Double(count - few)
  }

  private static func executable() throws -> URL {
    guard let url = Bundle.main.executableURL else { throw NotMeasurable("no path to the program") }
    return url
  }
}

/// Runs a process to its end and returns its standard output and standard error.
func runProcess(_ program: URL, _ arguments: [String]) throws -> (String, String) {
  let process = Process()
  process.executableURL = program
  process.arguments = arguments
  let report = FileManager.default.temporaryDirectory
    .appending(path: "plexus-report-\(UInt64.random(in: 0 ... .max))")
  _ = FileManager.default.createFile(atPath: report.path, contents: nil)
  defer { try? FileManager.default.removeItem(at: report) }
  process.standardError = try FileHandle(forWritingTo: report)
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  return (text, (try? String(contentsOf: report, encoding: .utf8)) ?? "")
}
