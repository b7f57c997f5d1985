import Foundation
import Plexus

/// The hit ratio of a map of limited capacity on a real trace.
struct HitRatio: Sendable {
  let trace: String
  let capacity: Int
  /// The goal in percent.
  let goal: Double
  /// The percentage of the optimal policy, which evicts with knowledge of later requests.
  let optimum: Double

  static let all: [HitRatio] =
    zip([204, 1024, 2048, 4096], [(43.5, 53.40), (54.0, 63.72), (57.9, 68.09), (62.3, 71.72)])
    .map { HitRatio(trace: "web07", capacity: $0, goal: $1.0, optimum: $1.1) }
    + zip([137, 687, 1375, 2751], [(40.8, 58.50), (64.2, 74.67), (71.9, 80.04), (77.7, 83.98)])
    .map { HitRatio(trace: "web12", capacity: $0, goal: $1.0, optimum: $1.1) }

  /// Returns the percentage of requests that a map answers from memory.
  func measure(_ requests: [Int]) async throws -> Double {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(24 * 3600)
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: .count(capacity)) { $0 }
    for key in requests { _ = try await map.request(key) }
    return 100 * Double(map.statistics.hits) / Double(requests.count)
  }

  /// Returns the percentage of requests that a least-recently-used policy answers.
  func measureLeastRecentlyUsed(_ requests: [Int]) -> Double {
    var lastUses: [Int: Int] = [:]
    var oldest = 0
    var hits = 0
    for (now, key) in requests.enumerated() {
      if lastUses.updateValue(now, forKey: key) != nil { hits += 1 }
      while lastUses.count > capacity {
        if lastUses[requests[oldest]] == oldest { lastUses[requests[oldest]] = nil }
        oldest += 1
      }
    }
    return 100 * Double(hits) / Double(requests.count)
  }
}

/// Prints the hit ratios over the traces of a folder.
///
/// - Parameter folder: The folder of `web07.txt` and `web12.txt`, which have one key per line.
/// - Returns: Whether all goals are reached.
func printHitRatios(in folder: String) async throws -> Bool {
  var traces: [String: [Int]] = [:]
  for name in Set(HitRatio.all.map(\.trace)) { traces[name] = try readTrace(name, in: folder) }
  let widths = [8, 10, 8, 8, 8, 9, 8]
  print(row(["trace", "capacity", "LRU", "ours", "goal", "optimum", ""], widths))
  var isReached = true
  for ratio in HitRatio.all {
    let requests = traces[ratio.trace] ?? []
    let ours = try await ratio.measure(requests)
    let numbers = [ratio.measureLeastRecentlyUsed(requests), ours, ratio.goal, ratio.optimum]
    if ours < ratio.goal { isReached = false }
    print(
      row(
        [ratio.trace, "\(ratio.capacity)"] + numbers.map { String(format: "%.2f", $0) }
          + [ours < ratio.goal ? "not met" : "met"],
        widths
      )
    )
  }
  return isReached
}

private func readTrace(_ name: String, in folder: String) throws -> [Int] {
  let path = "\(folder)/\(name).txt"
  guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
    throw UsageError("There is no trace at \(path): say with --traces where they are.")
  }
  let lines = text.split(separator: "\n")
  let keys = lines.compactMap { Int($0) }
  guard keys.count == lines.count, !keys.isEmpty else {
    throw UsageError("\(path) is no trace: every line has to be a number.")
  }
  return keys
}

private func row(_ columns: [String], _ widths: [Int]) -> String {
  zip(columns, widths)
    .map { $0.padding(toLength: max($1, $0.count + 1), withPad: " ", startingAt: 0) }
    .joined()
}
