/// The numbers of a connection for metrics, over all of its connections to servers.
struct TrafficState: Sendable, Hashable {
  /// The number of times that a server was connected.
  var connections = 0
  var bytesIn = 0
  var bytesOut = 0
  /// The number of replies.
  private(set) var roundTrips = 0
  /// The time from a command to its reply, of all replies together and of the slowest one.
  private(set) var totalTime: Nanoseconds = 0
  private(set) var longestTime: Nanoseconds = 0
  /// The number of errors by kind.
  private(set) var errors: [RedisEngineError.Kind: Int] = [:]

  /// Records a reply.
  mutating func answer(after time: Nanoseconds) {
    roundTrips += 1
    totalTime &+= max(0, time)
    longestTime = max(longestTime, time)
  }

  /// Records the error of a command or of a connection.
  mutating func fail(_ kind: RedisEngineError.Kind) {
    errors[kind, default: 0] += 1
  }

  /// Adds the numbers of another connection.
  mutating func add(_ other: TrafficState) {
    connections += other.connections
    bytesIn += other.bytesIn
    bytesOut += other.bytesOut
    roundTrips += other.roundTrips
    totalTime &+= other.totalTime
    longestTime = max(longestTime, other.longestTime)
    errors.merge(other.errors) { $0 + $1 }
  }
}
