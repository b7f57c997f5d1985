// Unsafe: the trust is read at every hit without reference counting. The layer of the cache keeps it.

extension KeyedCache {
  /// Returns whether copies in memory are used without a look in the shared tier.
  ///
  /// - Parameter now: The time of the cache, read just before.
  /// - Returns: Whether they are.
  @inlinable
  func usesCopies(at now: Nanoseconds) -> Bool {
    guard let seenTrust = unsafe seenTrust else { return true }
    if time.clock == nil, unsafe seenTrust._withUnsafeGuaranteedRef({ $0.holds(at: now) }) {
      return true
    }
    return isTrusted()
  }

  /// Returns whether copies in memory are used without a look in the shared tier, with the clock of the trust.
  ///
  /// If announcements can have been lost, all values in memory are marked first.
  @usableFromInline
  @inline(never)
  func isTrusted() -> Bool {
    guard let shared else { return true }
    let generation = shared.trust.generation
    if generation != shared.seenGeneration {
      distrustAll()
      shared.note(seen: generation)
    }
    guard !shared.trust.holds else { return true }
    if let time = shared.newSilence {
      detachFlights()
      shared.note(silence: time)
    }
    return false
  }

  /// Returns whether a copy in memory is used although the trust does not hold.
  @usableFromInline
  @inline(never)
  func keepsCopy(from start: Nanoseconds, at now: Nanoseconds) -> Bool {
    shared?.trust.keepsCopy(from: start, at: now) ?? true
  }
}
