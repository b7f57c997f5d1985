/// One row of the table: what the library needs for an operation, beside what a peer needs for it.
struct Comparison: Sendable {
  /// What is measured, and how it is chosen on the command line.
  let name: String
  /// What the library is measured against.
  let peer: String
  /// How many times faster than the peer it is meant to be.
  let goal: Double
  /// Runs the library once; returns nanoseconds for one operation.
  let ours: @Sendable () async throws -> Double
  /// Runs the peer once; returns nanoseconds for one operation.
  let theirs: @Sendable () async throws -> Double

  /// Measures both in turn, after one run each that does not count.
  ///
  /// - Parameter repetitions: How many runs of each count.
  func measure(repetitions: Int) async throws -> Measurement {
    _ = try await ours()
    _ = try await theirs()
    var ourRuns: [Double] = []
    var theirRuns: [Double] = []
    for _ in 0..<repetitions {
      ourRuns.append(try await ours())
      theirRuns.append(try await theirs())
    }
    return Measurement(
      name: name,
      peer: peer,
      goal: goal,
      ours: Spread(ourRuns),
      theirs: Spread(theirRuns)
    )
  }
}

/// What a comparison came to.
struct Measurement: Codable, Sendable {
  let name: String
  let peer: String
  let goal: Double
  let ours: Spread
  let theirs: Spread

  var ratio: Double { theirs.median / ours.median }
  var isMet: Bool { ratio >= goal }
}

/// Nanoseconds for one operation, over several runs.
struct Spread: Codable, Sendable {
  let median: Double
  let minimum: Double
  let maximum: Double

  init(_ runs: [Double]) {
    let sorted = runs.sorted()
    median = sorted[sorted.count / 2]
    minimum = sorted[0]
    maximum = sorted[sorted.count - 1]
  }
}

/// Returns how many nanoseconds one of several operations took.
///
/// - Parameters:
///   - operations: How many the body carries out.
///   - body: The operations.
func nanoseconds(
  per operations: Int,
  _ body: () async throws -> Void
) async rethrows -> Double {
  let duration = try await ContinuousClock().measure(body)
  let (seconds, attoseconds) = duration.components
  return (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(operations)
}
