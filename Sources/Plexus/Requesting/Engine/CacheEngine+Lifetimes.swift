internal import Synchronization

// How long values are fresh and can be used.

extension CacheEngine {
  /// Returns the time for which a value can be used, fresh or stale; `nil` for no limit.
  final func usableTime(_ terms: ValueTerms) -> Duration? {
    guard let staleTimeToLive else { return nil }
    let fresh = terms.timeToLive ?? timeToLive.scaled(by: 1 + policy.expiryJitter)
    let stale = max(staleTimeToLive, terms.staleTime(staleTime), terms.staleIfError ?? 0)
    return .nanoseconds(max(0, fresh).addingSaturating(stale))
  }

  /// Returns the time for which a value is fresh: its own time to live, or that of the policy with jitter.
  @usableFromInline
  final func lifetime(_ terms: ValueTerms = ValueTerms()) -> EntryState.Lifetime {
    if let own = terms.timeToLive { return .init(duration: own, terms: terms) }
    guard policy.expiryJitter > 0 else { return .init(duration: timeToLive, terms: terms) }
    let factor = 1 + policy.expiryJitter * .random(in: -1...1)
    return .init(duration: timeToLive.scaled(by: factor), terms: terms)
  }

  /// Returns the time between a moment and now, or the longest that can be expressed.
  @inlinable
  final func age(of moment: Nanoseconds, at now: Nanoseconds) -> Nanoseconds {
    max(0, now.subtractingSaturating(moment))
  }
}
