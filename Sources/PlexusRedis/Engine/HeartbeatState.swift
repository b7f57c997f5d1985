/// The heartbeats of one space, by which this node is registered and acknowledges the mark, with the times of this node.
///
/// A heartbeat reads the keys of the mark, so that the server announces their next change. An announcement arrives before
/// the reply to any later command of the connection. Until one arrives, the reply of a master to one small command, the
/// heartbeat of the engine, confirms all of its spaces. A space sends a heartbeat of its own after each doubt, and
/// otherwise after some minutes: other nodes forget the registration of one that is silent for longer.
///
/// Invariant: a node whose space is confirmed is registered, and the next change of the mark is announced to it. So is a
/// loss of the registrations, by the process that finds it.
struct HeartbeatState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  /// The mark: copies from before it are not trusted.
  private(set) var acknowledged: TierMark?
  /// The number of doubts so far.
  private(set) var doubts = 0
  /// The time at which the last heartbeat was sent after which there was no doubt.
  private var sent: Instant?
  /// The time of the next heartbeat without a doubt.
  private var next: Instant?

  init() {}

  /// Records that the mark can change without an announcement, or that the registration can be lost.
  mutating func doubt() {
    doubts += 1
    (sent, next) = (nil, nil)
  }

  /// Records that copies from before a mark are not trusted.
  mutating func acknowledge(_ mark: TierMark) {
    guard acknowledged.map({ mark.isNewer(than: $0) }) ?? true else { return }
    acknowledged = mark
  }

  /// Records that the server has the mark that a heartbeat has acknowledged.
  ///
  /// - Parameters:
  ///   - time: The time at which it was sent.
  ///   - doubts: The number of doubts until then. The reply says nothing about a later one.
  ///   - pause: The time until the next one.
  mutating func settle(sentAt time: Instant, after doubts: Int, pause: Duration) {
    guard doubts == self.doubts, sent.map({ $0 < time }) ?? true else { return }
    (sent, next) = (time, time.advanced(by: pause))
  }

  /// Returns whether a heartbeat of the space has to be sent.
  ///
  /// - Parameters:
  ///   - now: The present time.
  ///   - epoch: The highest epoch that the node knows, also by its own changes, which are not announced to it.
  /// - Returns: Whether the pause is over, or the mark is not known to be acknowledged.
  func isDue(at now: Instant, knowing epoch: TierEpoch?) -> Bool {
    next.map { now >= $0 } ?? true || isBehind(epoch)
  }

  /// Returns whether the reply to a command confirms that the mark is the acknowledged one.
  ///
  /// - Parameters:
  ///   - time: The time at which the command was sent.
  ///   - epoch: The highest epoch that the node knows.
  /// - Returns: Whether no doubt has begun, and this node is still registered.
  func isConfirmed(bySending time: Instant, knowing epoch: TierEpoch?) -> Bool {
    guard let sent, sent.duration(to: time) < HeartbeatTimes.validity else { return false }
    return !isBehind(epoch)
  }

  private func isBehind(_ epoch: TierEpoch?) -> Bool {
    guard let epoch, let acknowledged else { return false }
    return TierMark(epoch: epoch, fence: acknowledged.fence).isNewer(than: acknowledged)
  }
}

/// The times of the heartbeats of spaces.
enum HeartbeatTimes {
  /// The times between two heartbeats of a space without a doubt, one of which is drawn each time: many processes that
  /// have begun together do not send theirs together.
  static let pauses: ClosedRange<Int64> = 180_000...240_000
  /// The time after a heartbeat of the space for which others confirm it.
  static let validity = Duration.seconds(270)
  /// The time after which a silent node loses its registration, beyond the time of its trust: longer than the validity,
  /// since clocks do not run at the same speed.
  static let patience = Duration.seconds(300)

  /// The time until the next heartbeat of a space.
  static var pause: Duration { .milliseconds(Int64.random(in: pauses)) }
}
