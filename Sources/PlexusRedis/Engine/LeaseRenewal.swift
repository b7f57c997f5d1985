internal import PlexusSupport

/// The leases of this process in one space, which each heartbeat renews until they are released.
final class LeaseRenewal: Sendable {
  private let tier: Tier
  private let leases = Locked<Set<TierLease>>([])

  init(_ tier: Tier) {
    self.tier = tier
  }

  /// Renews leases from now on.
  func begin(_ added: [TierLease]) {
    leases.withLock { $0.formUnion(added) }
  }

  /// Ends the renewal of leases.
  func end(_ removed: [TierLease]) {
    leases.withLock { $0.subtract(removed) }
  }

  /// Renews the leases now.
  ///
  /// Lost leases are not renewed again.
  func renew() async throws {
    let current = leases.withLock { Array($0) }
    guard !current.isEmpty else { return }
    let lost = try await tier.renew(current)
    leases.withLock { $0.subtract(lost) }
  }

  /// Ends the renewal of all leases, and releases them.
  func releaseAll() async {
    let released = leases.withLock { leases in
      defer { leases = [] }
      return Array(leases)
    }
    try? await tier.release(released, because: nil)
  }
}
