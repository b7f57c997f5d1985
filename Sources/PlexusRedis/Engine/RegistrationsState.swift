/// The registered nodes, and losses of registrations, with the times of this node.
///
/// The time of the engine can be set. A node whose last heartbeat does not change for long has no copies that it trusts,
/// whatever the engine says.
struct RegistrationsState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  /// Some registered nodes, and the times since which each of them sends no heartbeat.
  struct Silences: Sendable {
    private struct Silence: Sendable {
      let beat: String
      /// The time at which the heartbeat was first found to be the last one.
      let since: Instant
    }

    private var silences: [String: Silence] = [:]

    init() {}

    /// Records all nodes of a kind.
    ///
    /// - Parameters:
    ///   - nodes: The nodes.
    ///   - pause: The longest time between two heartbeats of a node whose trust is extended.
    ///   - now: The present time.
    /// - Returns: The time for which some node can still trust its copies, zero for none, and the nodes whose trust has
    ///   ended.
    fileprivate mutating func note(
      _ nodes: [Tier.Laggard],
      beatingWithin pause: Duration,
      at now: Instant
    ) -> (remaining: Duration, ended: [Tier.Laggard]) {
      let known = silences
      silences = [:]
      var remaining = Duration.zero
      var ended: [Tier.Laggard] = []
      for node in nodes {
        var silence = Silence(beat: node.beat, since: now)
        if let former = known[node.node], former.beat == node.beat { silence = former }
        let rest = pause + node.trust - silence.since.duration(to: now)
        if rest > .zero {
          silences[node.node] = silence
          remaining = max(remaining, rest)
        } else {
          ended.append(node)
        }
      }
      return (remaining, ended)
    }
  }

  /// The result of a look at the registrations.
  struct Report: Sendable {
    /// The time for which some node can still trust its copies; zero for none.
    var remaining = Duration.zero
    /// The nodes whose trust has ended.
    var ended: [Tier.Laggard] = []
    /// The loss of registrations after which every lost node has lost its trust.
    var endedLoss: String?
    /// Whether a loss was found that was not known.
    var hasNewLoss = false
  }

  private var all = Silences()
  private var loss: (name: String, since: Instant)?
  /// The longest time for which a node of the space has trusted its copies, as far as this node has heard.
  private(set) var longestTrust: Duration

  /// - Parameter trust: The time for which this node trusts its copies.
  init(trust: Duration) {
    longestTrust = trust
  }

  /// Records the answer to a heartbeat.
  ///
  /// - Returns: Whether there is a loss of registrations that was not known.
  mutating func note(loss name: String?, longestTrust trust: Duration, at now: Instant) -> Bool {
    longestTrust = max(longestTrust, trust)
    return note(name, now)
  }

  private mutating func note(_ name: String?, _ now: Instant) -> Bool {
    guard name != loss?.name else { return false }
    loss = name.map { ($0, now) }
    return name != nil
  }

  /// Records all registered nodes.
  ///
  /// - Parameters:
  ///   - nodes: The nodes.
  ///   - pause: The longest time between two heartbeats of a node whose trust is extended.
  ///   - name: The name of the last loss of registrations, if any.
  ///   - now: The present time.
  /// - Returns: The nodes and the loss that can be forgotten.
  mutating func note(
    all nodes: [Tier.Laggard],
    beatingWithin pause: Duration,
    loss name: String?,
    at now: Instant
  ) -> Report {
    let (remaining, ended) = all.note(nodes, beatingWithin: pause, at: now)
    return report(remaining, ended, loss: name, at: now)
  }

  /// Records the nodes that have not acknowledged a mark.
  ///
  /// Their trust is not extended since the mark was announced to them, unless they have sent a heartbeat of their own. So
  /// each of them is waited for from the time on at which the wait has found it, however long it has been silent before.
  ///
  /// - Parameters:
  ///   - nodes: The nodes.
  ///   - wait: The nodes that the wait for the mark has found.
  ///   - name: The name of the last loss of registrations, if any.
  ///   - now: The present time.
  /// - Returns: The time to wait, and the nodes that need not be waited for.
  mutating func note(
    _ nodes: [Tier.Laggard],
    of wait: inout Silences,
    loss name: String?,
    at now: Instant
  ) -> Report {
    let (remaining, ended) = wait.note(nodes, beatingWithin: .zero, at: now)
    return report(remaining, ended, loss: name, at: now)
  }

  private mutating func report(
    _ remaining: Duration,
    _ ended: [Tier.Laggard],
    loss name: String?,
    at now: Instant
  ) -> Report {
    var report = Report(remaining: remaining, ended: ended)
    report.hasNewLoss = note(name, now)
    if let loss {
      let rest = longestTrust - loss.since.duration(to: now)
      report.remaining = max(report.remaining, rest)
      if rest <= .zero { report.endedLoss = loss.name }
    }
    return report
  }
}
