/// The pauses between attempts to connect.
///
/// The first pause is 10 milliseconds, and each further one is twice as long, up to 400 milliseconds. Random jitter makes each
/// of them up to twice as long, so that the nodes of a cluster do not all reconnect at the same moment. After a failover, a
/// connection therefore works again within a second of the first answer of the new master.
struct Backoff: Sendable {
  private static let shortest: Nanoseconds = 10_000_000
  private static let longest: Nanoseconds = 400_000_000

  private var pause = shortest

  /// Begins with the shortest pause again.
  mutating func reset() {
    pause = Self.shortest
  }

  /// Returns the next pause.
  mutating func next(using generator: inout some RandomNumberGenerator) -> Nanoseconds {
    defer { pause = min(pause * 2, Self.longest) }
    return pause + .random(in: 0...pause, using: &generator)
  }
}
