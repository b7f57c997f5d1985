internal import Plexus
internal import PlexusSupport

/// The leases of this process in one space, which each heartbeat renews until they are released.
///
/// The server can have a lease of this process whose reply or whose release was lost. It would delay all nodes until it
/// expires: the next heartbeat releases it.
///
/// A heartbeat does not wait for the renewal of many leases, which are renewed when half of their time is over.
final class LeaseRenewal: Sendable {
  private struct State: Sendable {
    /// The leases, and the times from which they are renewed if there are many.
    var held: [SharedCache.Lease: ContinuousClock.Instant] = [:]
    var isRenewing = false
    /// The number of looks in progress for each key, whose leases are not known yet.
    var looks: [String: Int] = [:]
    /// The keys of leases that can have been lost.
    var lost: Set<String> = []

    mutating func end(_ leases: [SharedCache.Lease]) {
      for lease in leases { held[lease] = nil }
    }
  }

  /// The number of keys beyond which lost leases expire by themselves.
  private static let lostLimit = 4_096
  /// The number of leases beyond which a heartbeat does not wait for their renewal.
  private static let inlineLimit = 256

  private let tier: Tier
  private let time: Duration
  private let state = Locked(State())

  /// - Parameters:
  ///   - tier: The tier.
  ///   - time: The time for which a lease lasts.
  init(_ tier: Tier, lasting time: Duration) {
    self.tier = tier
    self.time = time
  }

  /// Renews leases from now on.
  func begin(_ added: [SharedCache.Lease]) {
    let due = ContinuousClock.now + time / 2
    state.withLock { state in
      for lease in added { state.held[lease] = due }
    }
  }

  /// Ends the renewal of leases.
  func end(_ removed: [SharedCache.Lease]) {
    state.withLock { $0.end(removed) }
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
    let due = state.withLock { state -> [SharedCache.Lease] in
      guard !state.isRenewing else { return [] }
      let now = ContinuousClock.now
      let isShort = state.held.count <= Self.inlineLimit
      // The first to end are the first.
      let due = state.held.filter { isShort || $0.value <= now }
        .sorted { $0.value < $1.value }.map(\.key)
      state.isRenewing = !due.isEmpty
      return due
    }
    if due.count > Self.inlineLimit {
      Task.detached { [self] in try? await renew(due) }
    } else if !due.isEmpty {
      try await renew(due)
    }
    try await releaseLost()
  }

  private func renew(_ due: [SharedCache.Lease]) async throws {
    defer { state.withLock { $0.isRenewing = false } }
    // In parts, so that the time of each counts from its own renewal.
    for start in stride(from: 0, to: due.count, by: Self.inlineLimit) {
      let part = state.withLock { state in
        due[start...].prefix(Self.inlineLimit).filter { state.held[$0] != nil }
      }
      let next = ContinuousClock.now + time / 2
      let ended = try await tier.renew(part)
      state.withLock { state in
        for lease in part where state.held[lease] != nil { state.held[lease] = next }
        state.end(ended)
      }
    }
  }

  private func releaseLost() async throws {
    let lost = state.withLock { $0.lost }
    guard !lost.isEmpty else { return }
    let found = try await tier.ownLeases(of: lost)
    let unknown = state.withLock { state in
      // A look in progress can have obtained the lease that was found.
      let settled = lost.filter { state.looks[$0] == nil }
      state.lost.subtract(settled)
      return found.filter { settled.contains($0.key) && state.held[$0] == nil }
    }
    do {
      try await tier.release(unknown, because: nil)
    } catch {
      lose(unknown.map(\.key))
      throw error
    }
  }

  /// Releases all leases, also lost ones.
  ///
  /// - Throws: An error, after which some of them can still be held.
  func releaseAll() async throws {
    let held = state.withLock { Array($0.held.keys) }
    try await tier.release(held, because: nil)
    end(held)
    try await releaseLost()
  }
}
