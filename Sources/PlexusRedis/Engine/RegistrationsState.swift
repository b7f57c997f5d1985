/// The nodes that have not acknowledged a mark, and losses of registrations, with the times of this node.
///
/// The time of the engine can be set. A node whose last heartbeat does not change for the time of its trust has no
/// copies that it trusts, whatever the engine says.
struct RegistrationsState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  private struct Sighting: Sendable {
    let beat: String
    /// The time at which the heartbeat was first found to be the last one.
    let since: Instant
  }

  /// The result of a look at the registrations.
  struct Report: Sendable {
    /// The time for which some node can still trust its copies; zero for none.
    var remaining = Duration.zero
    /// The nodes whose trust has ended.
    var ended: [Tier.Laggard] = []
    /// The loss of registrations after which every lost node has lost its trust.
    var endedLoss: String?
  }

  private var sightings: [String: Sighting] = [:]
  private var loss: (name: String, since: Instant)?
  /// The longest time for which a node of the space has trusted its copies, as far as this node has heard.
  private(set) var longestTrust: Duration

  /// - Parameter trust: The time for which this node trusts its copies.
  init(trust: Duration) {
    longestTrust = trust
  }

  /// Records the answer to a heartbeat.
  mutating func note(loss name: String?, longestTrust trust: Duration, at now: Instant) {
    longestTrust = max(longestTrust, trust)
    note(name, now)
  }

  private mutating func note(_ name: String?, _ now: Instant) {
    guard name != loss?.name else { return }
    loss = name.map { ($0, now) }
  }

  /// Records the nodes that have not acknowledged a mark.
  ///
  /// - Parameters:
  ///   - nodes: The nodes.
  ///   - name: The name of the last loss of registrations, if any.
  ///   - isComplete: Whether there are no other nodes.
  ///   - now: The present time.
  /// - Returns: The time to wait, and the nodes that need not be waited for.
  mutating func note(
    _ nodes: [Tier.Laggard],
    loss name: String?,
    isComplete: Bool,
    at now: Instant
  ) -> Report {
    var report = Report()
    note(name, now)
    if isComplete {
      let known = Set(nodes.map(\.node))
      sightings = sightings.filter { known.contains($0.key) }
    }
    for node in nodes {
      if sightings[node.node]?.beat != node.beat {
        sightings[node.node] = Sighting(beat: node.beat, since: now)
      }
      let silence = sightings[node.node]?.since.duration(to: now) ?? .zero
      if silence >= node.trust {
        report.ended.append(node)
        sightings[node.node] = nil
      } else {
        report.remaining = max(report.remaining, node.trust - silence)
      }
    }
    if let loss {
      let rest = longestTrust - loss.since.duration(to: now)
      report.remaining = max(report.remaining, rest)
      if rest <= .zero { report.endedLoss = loss.name }
    }
    return report
  }
}
