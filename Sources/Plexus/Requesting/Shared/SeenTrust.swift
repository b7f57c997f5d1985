// Unsafe: reading the trust at every hit without reference counting. `SeenTrust` keeps it.

public import Synchronization

/// Whether a cache uses its copies of the values of a ``SharedCacher``: read at every hit, without a call.
@usableFromInline
@safe
final class SeenTrust: Sendable {
  private let owned: NearTrust
  @usableFromInline let trust: Unmanaged<NearTrust>
  /// Whether the trust has the system's coarse clock.
  @usableFromInline let isCoarse: Bool
  /// The number of ends of the trust that the copies in memory have been marked for.
  @usableFromInline let seen: Atomic<UInt64>

  init(_ trust: NearTrust) {
    owned = trust
    unsafe self.trust = Unmanaged.passUnretained(trust)
    isCoarse = trust.time.clock == nil
    seen = Atomic(trust.generation)
  }

  /// Returns whether the copies are used.
  ///
  /// It returns `false` if the trust has a clock of its own: the cache asks the trust then.
  ///
  /// - Parameter now: The reading of the system's coarse clock, read just before.
  /// - Returns: Whether they are.
  @inlinable
  func holds(at now: Nanoseconds) -> Bool {
    guard isCoarse else { return false }
    let seen = seen.load(ordering: .acquiring)
    return unsafe trust._withUnsafeGuaranteedRef { trust in
      trust.ends.load(ordering: .acquiring) == seen
        && now < trust.deadline.load(ordering: .acquiring)
    }
  }
}
