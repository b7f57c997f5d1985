internal import PlexusSupport

/// The leases of this process in one space, which each heartbeat renews until they are released.
///
/// The server can have a lease of this process whose reply or whose release was lost. It would delay all nodes until it
/// expires: the next heartbeat releases it.
final class LeaseRenewal: Sendable {
  private struct State: Sendable {
    var held: Set<TierLease> = []
    /// The number of looks in progress for each key, whose leases are not known yet.
    var looks: [String: Int] = [:]
    /// The keys of leases that can have been lost.
    var lost: Set<String> = []
  }

  /// The number of keys beyond which lost leases expire by themselves.
  private static let lostLimit = 4_096

  private let tier: Tier
  private let state = Locked(State())

  init(_ tier: Tier) {
    self.tier = tier
  }

  /// Renews leases from now on.
  func begin(_ added: [TierLease]) {
    state.withLock { $0.held.formUnion(added) }
  }

  /// Ends the renewal of leases.
  func end(_ removed: [TierLease]) {
    state.withLock { $0.held.subtract(removed) }
  }

  /// Records that a look can obtain the leases of some keys.
  func beginLook(for keys: [String]) {
    state.withLock { state in
      for key in keys { state.looks[key, default: 0] += 1 }
    }
  }

  /// Records that a look has ended, and that its leases are known.
  func endLook(for keys: [String]) {
    state.withLock { state in
      for key in keys {
        let rest = (state.looks[key] ?? 1) - 1
        state.looks[key] = rest > 0 ? rest : nil
      }
    }
  }

  /// Records that leases of some keys can have been lost.
  func lose(_ keys: [String]) {
    state.withLock { state in
      state.lost.formUnion(keys.prefix(Self.lostLimit - state.lost.count))
    }
  }

  /// Renews the leases now, and releases lost ones.
  ///
  /// Leases that another node has taken over are not renewed again.
  func renew() async throws {
    let current = state.withLock { Array($0.held) }
    if !current.isEmpty {
      let ended = try await tier.renew(current)
      state.withLock { $0.held.subtract(ended) }
    }
    try await releaseLost()
  }

  private func releaseLost() async throws {
    let lost = state.withLock { $0.lost }
    guard !lost.isEmpty else { return }
    let found = try await tier.ownLeases(of: lost)
    let unknown = state.withLock { state in
      // A look in progress can have obtained the lease that was found.
      let settled = lost.filter { state.looks[$0] == nil }
      state.lost.subtract(settled)
      return found.filter { settled.contains($0.key) && !state.held.contains($0) }
    }
    do {
      try await tier.release(unknown, because: nil)
    } catch {
      lose(unknown.map(\.key))
      throw error
    }
  }

  /// Ends the renewal of all leases, and releases them.
  func releaseAll() async {
    let released = state.withLock { state in
      defer { state.held = [] }
      return Array(state.held)
    }
    try? await tier.release(released, because: nil)
  }
}
