internal import Plexus
internal import PlexusSupport

/// One space of the engine for one cache of this process: its trust, its leases and its announcements.
final class RedisSpace: Sendable {
  private struct State: Sendable {
    var handlers: [@Sendable (SharedChange) -> Void] = []
    var leases: Set<TierLease> = []
    /// The mark: copies from before it are not trusted.
    var acknowledged: TierMark?
  }

  let tier: Tier
  let trust = NearTrust()
  let acknowledgements = Bell()
  private let nearLease: Duration
  /// Requests a heartbeat of the engine soon.
  private let hurry: @Sendable () -> Void
  private let state = Locked(State())

  init(_ tier: Tier, nearLease: Duration, hurry: @escaping @Sendable () -> Void) {
    self.tier = tier
    self.nearLease = nearLease
    self.hurry = hurry
  }

  func observe(_ handler: @escaping @Sendable (SharedChange) -> Void) {
    state.withLock { $0.handlers.append(handler) }
  }

  // MARK: - Announcements

  /// Handles the change of a key of the server.
  func hear(_ subject: TierNames.Subject) {
    switch subject {
    case .entry(let key), .lease(let key): announce(.changed([key]))
    case .tag(let name): announce(.tagged([CacheTag(name)]))
    case .epoch, .fence: loseTrack()
    case .acknowledgements: acknowledgements.ring()
    }
  }

  /// Handles the loss of announcements, or a change that all nodes acknowledge.
  func loseTrack() {
    trust.end()
    announce(.everything)
    hurry()
  }

  private func announce(_ change: SharedChange) {
    for handle in state.withLock({ $0.handlers }) { handle(change) }
  }

  // MARK: - Heartbeat

  /// Sends a heartbeat to the server, and extends the trust by its answer.
  func beat() async throws {
    // The heartbeat is repeated if the mark has changed: it is acknowledged once older copies are no longer trusted.
    // Even if heartbeats overtake each other, the newest mark is acknowledged in the end.
    while true {
      let acknowledged = state.withLock { $0.acknowledged }
      let sent = trust.now
      let mark = try await tier.beat(acknowledging: acknowledged, trust: nearLease)
      if let acknowledged, !mark.isNewer(than: acknowledged) {
        trust.extend(until: sent.advanced(by: nearLease * 9 / 10))
        break
      }
      trust.end()
      announce(.everything)
      state.withLock { state in
        if state.acknowledged.map({ mark.isNewer(than: $0) }) ?? true { state.acknowledged = mark }
      }
    }
    let leases = state.withLock { Array($0.leases) }
    guard !leases.isEmpty else { return }
    let lost = try await tier.renew(leases)
    state.withLock { $0.leases.subtract(lost) }
  }

  /// Ends the trust, and releases the leases and the registration.
  func leave() async {
    trust.end()
    let leases = state.withLock { state in
      defer { state.leases = [] }
      return Array(state.leases)
    }
    try? await tier.release(leases, because: nil)
    try? await tier.leave()
  }

  // MARK: - Leases

  /// Renews leases until they are released.
  func hold(_ leases: [TierLease]) {
    state.withLock { $0.leases.formUnion(leases) }
  }

  func drop(_ leases: [TierLease]) {
    state.withLock { $0.leases.subtract(leases) }
  }

  // MARK: - Removals

  /// Waits until all nodes have acknowledged a mark, or no longer trust their copies.
  func waitForAcknowledgements(of mark: TierMark) async throws {
    // This node acknowledges it first.
    try await beat()
    while true {
      let remaining = try await tier.trust(beyond: mark)
      guard remaining > .zero else { return }
      // A heartbeat of this node ends the tracking of the acknowledgements.
      await acknowledgements.wait(atMost: min(remaining, .milliseconds(20)))
      try Task.checkCancellation()
    }
  }
}
