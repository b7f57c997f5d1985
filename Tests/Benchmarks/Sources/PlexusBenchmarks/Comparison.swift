/// One row of the table: the cost of an operation in the library and in a peer.
struct Comparison: Sendable {
  /// The measured operation, by which the row is selected on the command line.
  let name: String
  /// The peer, or the limit.
  let peer: String
  /// The factor by which the library should cost less than the peer, or 0 for an informative row.
  let goal: Double
  var unit = Unit.nanoseconds
  /// Runs the library once and returns the cost of one operation.
  let ours: @Sendable () async throws -> Double
  /// Runs the peer once and returns the cost of one operation.
  let theirs: @Sendable () async throws -> Double

  /// The unit of a cost.
  enum Unit: String, Codable, Sendable {
    case nanoseconds = "ns"
    case milliseconds = "ms"
    case bytes = "B"
    case instructions = "instr"
    case allocations = "allocs"
  }

  /// Measures both in turn, after a warm-up run of each.
  ///
  /// - Parameter repetitions: The number of measured runs of each.
  func measure(repetitions: Int) async throws -> Measurement {
    // Counted costs need no warm-up.
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
  /// A row without a peer: the maximum cost of an operation.
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

/// The result of a comparison.
struct Measurement: Encodable, Sendable {
  let name: String
  let peer: String
  let goal: Double
  let unit: Comparison.Unit
  let ours: Spread
  let theirs: Spread

  /// The cost of the peer divided by that of the library, or `nil` if the library's is zero.
  var ratio: Double? { ours.median > 0 ? theirs.median / ours.median : nil }
  /// Whether the goal is reached, or `nil` for an informative row.
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

/// The cost of one operation over several runs.
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

/// Returns the average duration of an operation in nanoseconds.
///
/// - Parameters:
///   - operations: The number of operations in the body.
///   - body: The operations.
func nanoseconds(
  per operations: Int,
  _ body: () async throws -> Void
) async rethrows -> Double {
  let duration = try await ContinuousClock().measure(body)
  let (seconds, attoseconds) = duration.components
  return (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(operations)
}
