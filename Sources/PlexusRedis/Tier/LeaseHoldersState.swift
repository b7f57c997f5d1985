/// The leases of other nodes that this node waits for, with the times of this node.
///
/// The time of the engine can be set while a node waits. A lease that is not renewed for its time is over in any case, and
/// no lease is over before the time that it had when it was found.
struct LeaseHoldersState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  /// The token of a lease, and its last renewal; 0 for none.
  typealias Lease = (token: UInt64, renewal: Int64)

  private struct Sighting: Sendable {
    let token: UInt64
    let renewal: Int64
    /// The time at which the lease was first found as it is.
    let since: Instant
    /// The time until which it lasted then by the clock of the engine.
    let end: Instant
  }

  private var sightings: [String: Sighting] = [:]
  /// The number of keys beyond which old ones are removed.
  private var sweepLimit = 4_096

  /// The number of leases that it remembers.
  var count: Int { sightings.count }

  /// Records that the lease of a key was found.
  ///
  /// - Parameters:
  ///   - lease: The lease.
  ///   - key: The key.
  ///   - rest: The time after which it is over by the clock of the engine.
  ///   - time: The time for which a lease lasts that is not renewed.
  ///   - now: The present time.
  /// - Returns: The time after which it is over unless it is renewed.
  mutating func note(
    _ lease: Lease,
    of key: String,
    for rest: Duration,
    lasting time: Duration,
    at now: Instant
  ) -> Duration {
    if let known = sightings[key], known.token == lease.token, known.renewal == lease.renewal {
      if now < known.end { return now.duration(to: known.end) }
      return max(.milliseconds(1), min(rest, time - known.since.duration(to: now)))
    }
    let rest = min(rest, time)
    sightings[key] = Sighting(
      token: lease.token,
      renewal: lease.renewal,
      since: now,
      end: now.advanced(by: rest)
    )
    if sightings.count > sweepLimit {
      sightings = sightings.filter { $0.value.since.duration(to: now) < time * 2 }
      sweepLimit = max(4_096, 2 * sightings.count)
    }
    return rest
  }

  /// Returns the lease that a key had if this node can judge it: whether it is over, or cannot be over yet.
  func verdict(
    on key: String,
    lasting time: Duration,
    at now: Instant
  ) -> (lease: Lease, isOver: Bool)? {
    guard let known = sightings[key] else { return nil }
    let isOver = known.since.duration(to: now) >= time
    guard isOver || now < known.end else { return nil }
    return ((known.token, known.renewal), isOver)
  }

  /// Records that no lease of a key was found.
  mutating func end(_ key: String) {
    if !sightings.isEmpty { sightings[key] = nil }
  }
}
