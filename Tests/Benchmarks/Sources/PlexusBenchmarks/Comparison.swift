/// One row of the table: what the library needs for an operation, beside what a peer needs for it.
struct Comparison: Sendable {
  /// What is measured, and how it is chosen on the command line.
  let name: String
  /// What the library is measured against: a peer, or the most that is allowed.
  let peer: String
  /// How many times less than the peer the library is meant to need; 0 if the row only informs.
  let goal: Double
  var unit = Unit.nanoseconds
  /// Runs the library once; returns what one operation needs.
  let ours: @Sendable () async throws -> Double
  /// Runs the peer once; returns what one operation needs.
  let theirs: @Sendable () async throws -> Double

  /// What is measured.
  enum Unit: String, Codable, Sendable {
    case nanoseconds = "ns"
    case bytes = "B"
    case instructions = "instr"
    case allocations = "allocs"
  }

  /// Measures both in turn, after one run each that does not count.
  ///
  /// - Parameter repetitions: How many runs of each count.
  func measure(repetitions: Int) async throws -> Measurement {
    // What is counted rather than timed needs no warming up.
    if unit == .nanoseconds {
      _ = try await ours()
      _ = try await theirs()
    }
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
      unit: unit,
      ours: Spread(ourRuns),
      theirs: Spread(theirRuns)
    )
  }
}

extension Comparison {
  /// A row without a peer: what an operation may need at most.
  static func limit(
    _ name: String,
    atMost limit: Double,
    unit: Unit,
    _ ours: @escaping @Sendable () async throws -> Double
  ) -> Comparison {
    let limitText = limit == limit.rounded() ? "\(Int(limit))" : "\(limit)"
    return Comparison(
      name: name,
      peer: "at most \(limitText) \(unit.rawValue)",
      goal: 1,
      unit: unit,
      ours: ours,
      theirs: { limit }
    )
  }
}

/// What a comparison came to.
struct Measurement: Encodable, Sendable {
  let name: String
  let peer: String
  let goal: Double
  let unit: Comparison.Unit
  let ours: Spread
  let theirs: Spread

  /// How many times less than the peer the library needs, if it needs anything.
  var ratio: Double? { ours.median > 0 ? theirs.median / ours.median : nil }
  /// Whether the goal is reached; a row that only informs has none.
  var isMet: Bool? { goal > 0 ? ours.median * goal <= theirs.median : nil }

  private enum CodingKeys: String, CodingKey {
    case name, peer, goal, unit, ours, theirs, ratio, isMet
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(peer, forKey: .peer)
    try container.encode(goal, forKey: .goal)
    try container.encode(unit, forKey: .unit)
    try container.encode(ours, forKey: .ours)
    try container.encode(theirs, forKey: .theirs)
    try container.encodeIfPresent(ratio, forKey: .ratio)
    try container.encodeIfPresent(isMet, forKey: .isMet)
  }
}

/// What one operation needed, over several runs.
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
