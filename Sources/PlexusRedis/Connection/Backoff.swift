/// The pauses between attempts to connect: from 10 milliseconds, doubled each time, up to 1 second, and up to twice
/// as long by chance, so that the nodes of a cluster do not all come back at the same moment.
struct Backoff: Sendable {
  private static let shortest: Nanoseconds = 10_000_000
  private static let longest: Nanoseconds = 1_000_000_000

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
