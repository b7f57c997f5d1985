import Foundation

/// Measures the library beside its peers.
@main
struct Benchmarks {
  static func main() async {
    do {
      try await run()
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(error is UsageError ? 64 : 1)
    }
  }

  private static func run() async throws {
    var arguments = Array(CommandLine.arguments.dropFirst())
    guard !arguments.contains("--help") else { return print(usage) }
    if let isBounded = ["bytes-bounded": true, "bytes-unbounded": false][arguments.first ?? ""] {
      return printBytes(isBounded: isBounded)
    }
    if arguments.first == "media-peak" { return try await printMediaPeak(arguments) }
    let json = try value(of: "--json", in: &arguments)
    let repetitions = try value(of: "--repetitions", in: &arguments).map(number) ?? 5
    if arguments.first == "hit-ratios" {
      arguments.removeFirst()
      guard let traces = try value(of: "--traces", in: &arguments), arguments.isEmpty else {
        throw UsageError("hit-ratios takes --traces FOLDER, and nothing else.")
      }
      guard try await printHitRatios(in: traces) else { exit(1) }
      return
    }
    var rows = broadcastingComparisons() + eventComparisons() + requestingComparisons()
    rows += capacityComparisons()
    rows += storageComparisons() + timingComparisons() + stateComparisons()
    rows += mediaComparisons()
    if !arguments.isEmpty {
      rows.removeAll { row in !arguments.contains { row.name.hasPrefix($0) } }
    }
    guard !rows.isEmpty else {
      throw UsageError("No row begins with \(arguments.joined(separator: " or ")).")
    }

    print(line("row", "ours ns", "(min-max)", "peer ns", "(min-max)", "ratio", "goal", ""))
    var measurements: [Measurement] = []
    for row in rows {
      let measurement = try await row.measure(repetitions: repetitions)
      measurements.append(measurement)
      print(describe(measurement))
    }
    if let json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      try encoder.encode(measurements).write(to: URL(fileURLWithPath: json))
    }
  }

  private static let usage = """
    usage: PlexusBenchmarks [--repetitions N] [--json FILE] [ROW ...]
           PlexusBenchmarks hit-ratios --traces FOLDER

    Runs the rows whose names begin with one of those given, or all of them. Each is measured in
    turn with its peer, N times (5) after a run that does not count; medians are compared.

    hit-ratios replays the traces web07.txt and web12.txt of a folder, one number a line, through maps
    of limited capacity; its exit code is 1 if a goal is not reached. They are page views of an online
    shop, collected by Jens Wilke for cache2k.
    """

  private static func value(of option: String, in arguments: inout [String]) throws -> String? {
    guard let index = arguments.firstIndex(of: option) else { return nil }
    guard index + 1 < arguments.count else { throw UsageError("\(option) needs a value.") }
    defer { arguments.removeSubrange(index...index + 1) }
    return arguments[index + 1]
  }

  private static func number(_ text: String) throws -> Int {
    guard let number = Int(text), number > 0 else {
      throw UsageError("\(text) is not a number of repetitions: give 1 or more.")
    }
    return number
  }

  private static func describe(_ measurement: Measurement) -> String {
    line(
      measurement.name,
      digits(measurement.ours.median),
      "(\(digits(measurement.ours.minimum))-\(digits(measurement.ours.maximum)))",
      digits(measurement.theirs.median),
      "(\(digits(measurement.theirs.minimum))-\(digits(measurement.theirs.maximum)))",
      digits(measurement.ratio),
      digits(measurement.goal),
      measurement.isMet ? "met" : "not met"
    )
  }

  private static func digits(_ number: Double) -> String {
    String(format: number < 100 ? "%.2f" : "%.0f", number)
  }

  private static func line(_ columns: String...) -> String {
    zip(columns, [28, 10, 18, 10, 18, 8, 8, 8])
      .map { column, width in
        column.padding(toLength: max(width, column.count + 1), withPad: " ", startingAt: 0)
      }
      .joined()
  }
}

struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
