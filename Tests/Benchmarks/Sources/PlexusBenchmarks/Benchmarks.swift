import Dispatch
import Foundation

/// Compares the library with its peers.
@main
struct Benchmarks {
  static func main() {
    if CommandLine.arguments.dropFirst().first == "--probe" { runProbe() }
    let arguments = Array(CommandLine.arguments.dropFirst())
    Task { @MainActor in
      do {
        if arguments.first == "--redis-node" {
          try await RedisNode.run(Array(arguments.dropFirst()))
        } else {
          try await run()
        }
        exit(0)
      } catch {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(error is UsageError ? 64 : 1)
      }
    }
    dispatchMain()
  }

  /// Prints the result of a probe, the part of a row that runs in a separate process.
  private static func runProbe() -> Never {
    let arguments = CommandLine.arguments.dropFirst(2)
    guard let probe = Probe.named(arguments.first ?? ""), arguments.count == 2,
      let count = arguments.last.flatMap({ Int($0) })
    else {
      FileHandle.standardError.write(Data("There is no such probe.\n".utf8))
      exit(64)
    }
    Task.detached {
      print(await probe(count))
      exit(0)
    }
    // dispatchMain() would end the main thread, which crashes valgrind.
    while true { sleep(1_000) }
  }

  private static func run() async throws {
    var arguments = Array(CommandLine.arguments.dropFirst())
    guard !arguments.contains("--help") else { return print(usage) }
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
    let isListed = arguments.first == "list"
    if isListed { arguments.removeFirst() }
    // Some rows prepare their maps at once, which takes time of the first rows.
    let isRedis = !arguments.isEmpty && arguments.allSatisfy { $0.hasPrefix("redis") }
    var rows = isRedis ? [] : allComparisons()
    rows += redisComparisons()
    if !arguments.isEmpty {
      rows.removeAll { row in !arguments.contains { row.name.hasPrefix($0) } }
    }
    guard !rows.isEmpty else {
      throw UsageError("No row begins with \(arguments.joined(separator: " or ")).")
    }

    if isListed {
      for row in rows { print(row.name, row.peer, row.unit.rawValue, separator: "\t") }
      return
    }

    defer { removeMediaFiles() }
    print(line("row", "unit", "ours", "(min-max)", "peer", "(min-max)", "ratio", "goal", ""))
    var measurements: [Measurement] = []
    for row in rows {
      do {
        let measurement = try await row.measure(repetitions: repetitions)
        measurements.append(measurement)
        print(describe(measurement))
      } catch let error as NotMeasurable {
        print(line(row.name, row.unit.rawValue, "not measured: \(error)"))
      }
    }
    let missed = measurements.filter { $0.isMet == false }
    print("\(measurements.count { $0.isMet == true }) goals met, \(missed.count) not met")
    if let json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      try encoder.encode(measurements).write(to: URL(fileURLWithPath: json))
    }
  }

  private static func allComparisons() -> [Comparison] {
    var rows = broadcastingComparisons() + peerComparisons() + eventComparisons()
    rows += requestingComparisons() + crowdComparisons() + capacityComparisons()
    rows += storageComparisons() + timingComparisons() + stateComparisons()
    rows += inspectorComparisons() + mediaComparisons()
    rows += fairnessComparisons() + countedComparisons()
    return rows
  }

  private static let usage = """
    usage: PlexusBenchmarks [--repetitions N] [--json FILE] [ROW ...]
           PlexusBenchmarks list [ROW ...]
           PlexusBenchmarks instructions
           PlexusBenchmarks hit-ratios --traces FOLDER

    Runs the rows whose names begin with a given name, or all rows. The library and its peer are
    measured in turn, N times (5) after a warm-up run; the median, the minimum and the maximum are
    printed, and the medians are compared. The ratio is the cost of the peer divided by that of the
    library, and the goal is the ratio to reach. A peer that reads "at most" is a limit.

    The rows that begin with "instructions" and "allocations" are counted by valgrind and do not
    depend on the load of the machine. Without valgrind they are printed as not measured.

    The rows that begin with "redis" start servers of their own. redis-benchmark sends the same command
    as the library. Without redis-server and redis-benchmark they are printed as not measured.

    The rows that begin with "main actor held" and "longest" are limits of processor time, which does
    not depend on other programs.

    hit-ratios replays the traces web07.txt and web12.txt of a folder, with one number per line, on
    maps of limited capacity; its exit code is 1 if a goal is not reached. The traces are page views
    of an online shop, collected by Jens Wilke for cache2k.

    --json FILE        writes the measurements, in the same units, to a file
    --repetitions N    the number of measured runs
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
      measurement.unit.rawValue,
      digits(measurement.ours.median),
      "(\(digits(measurement.ours.minimum))-\(digits(measurement.ours.maximum)))",
      digits(measurement.theirs.median),
      "(\(digits(measurement.theirs.minimum))-\(digits(measurement.theirs.maximum)))",
      measurement.ratio.map(digits) ?? "-",
      measurement.goal > 0 ? digits(measurement.goal) : "-",
      measurement.isMet.map { $0 ? "met" : "not met" } ?? ""
    )
  }

  private static func digits(_ number: Double) -> String {
    String(format: number < 100 ? "%.2f" : "%.0f", number)
  }

  private static func line(_ columns: String...) -> String {
    zip(columns, [34, 7, 10, 18, 10, 18, 8, 8, 8])
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

/// The error for a row that this machine cannot measure.
struct NotMeasurable: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
