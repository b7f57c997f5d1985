/// The leases of other nodes that this node waits for.
///
/// A lease is over if it was not renewed for its length by the clock of this node: the clock of the server can be set.
/// When a lease is found, the server tells how long ago it was renewed. That counts if the clock of the server has kept
/// pace with the one of this node since then. Otherwise, the length begins when the lease is found as it is.
struct LeaseHoldersState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  /// The token of a lease, and its last renewal; 0 for none.
  typealias Lease = (token: UInt64, renewal: Int64)

  /// The times of both clocks when a reply of the server arrives.
  typealias Moment = (server: Duration, node: Instant)

  private struct Sighting: Sendable {
    let lease: Lease
    /// The time at which it is over unless it is renewed.
    let end: Instant
  }

  private var sightings: [String: Sighting] = [:]
  /// The number of keys beyond which old ones are removed.
  private var sweepLimit = 4_096
  /// The moment since which the clocks have kept pace.
  private var steady: Moment?

  /// The number of leases that it remembers.
  var count: Int { sightings.count }

  /// Records the times of both clocks.
  ///
  /// - Parameters:
  ///   - moment: The times.
  ///   - tolerance: The difference that delayed replies make.
  /// - Returns: The time for which the clocks have kept pace.
  mutating func note(_ moment: Moment, tolerating tolerance: Duration) -> Duration {
    if let steady {
      let time = steady.node.duration(to: moment.node)
      let difference = moment.server - steady.server - time
      if difference >= .zero - tolerance && difference <= tolerance { return time }
    }
    steady = moment
    return .zero
  }

  /// Records that the lease of a key was found.
  ///
  /// - Parameters:
  ///   - lease: The lease.
  ///   - key: The key.
  ///   - length: The time for which it lasts unless it is renewed.
  ///   - rest: The time after which it is over by the clock of the server.
  ///   - moment: The times of both clocks.
  /// - Returns: The time after which it is over unless it is renewed; at least a millisecond.
  mutating func note(
    _ lease: Lease,
    of key: String,
    lasting length: Duration,
    for rest: Duration,
    at moment: Moment
  ) -> Duration {
    let now = moment.node
    // The sum of two differences has to be less than the time between two renewals.
    let steadyTime = note(moment, tolerating: length / 10)
    if let known = sightings[key], known.lease == lease {
      return max(.milliseconds(1), now.duration(to: known.end))
    }
    let isKnown = rest <= length && length - rest <= steadyTime
    let end = now.advanced(by: isKnown ? rest : length)
    sightings[key] = Sighting(lease: lease, end: end)
    if sightings.count > sweepLimit {
      sightings = sightings.filter { $0.value.end.duration(to: now) < length }
      sweepLimit = max(4_096, 2 * sightings.count)
    }
    return max(.milliseconds(1), now.duration(to: end))
  }

  /// Returns the lease that a key had if it is over unless it was renewed.
  func over(_ key: String, at now: Instant) -> Lease? {
    guard let known = sightings[key], known.end <= now else { return nil }
    return known.lease
  }

  /// Records that this node has obtained the lease of a key.
  mutating func end(_ key: String) {
    if !sightings.isEmpty { sightings[key] = nil }
  }
}
