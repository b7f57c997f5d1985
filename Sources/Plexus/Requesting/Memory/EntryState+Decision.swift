// The rules of freshness: from when on a value is stale, as what it is still used then, and how a request is answered.

// MARK: - Times

extension EntryState {
  /// The time for which a value is fresh.
  @usableFromInline
  struct Lifetime: Hashable, Sendable {
    /// The time until its deadline.
    @usableFromInline var duration: Nanoseconds
    /// The directives that came with the value.
    @usableFromInline var terms: ValueTerms

    @usableFromInline
    init(duration: Nanoseconds, terms: ValueTerms = ValueTerms()) {
      self.duration = duration
      self.terms = terms
    }
  }

  /// Returns whether a request is answered with the value at once.
  @inlinable
  func isFresh(at now: Nanoseconds) -> Bool {
    now < deadline && unserved.isNone
  }

  /// Returns whether requests get the last failure instead of a fetch.
  @usableFromInline
  func remembersFailure(at now: Nanoseconds) -> Bool {
    failure.map { now < $0.until } ?? false
  }

  /// Returns whether the value is past its time to live.
  @usableFromInline
  func isExpired(at now: Nanoseconds) -> Bool {
    now >= deadline
  }

  /// The time until which the value is fresh by its own lifetime.
  ///
  /// A copy that is only a fallback is revalidated at once, even if its own lifetime is not over.
  var ownDeadline: Nanoseconds { details.ownDeadline ?? deadline }

  /// Returns the time until which the value is kept.
  ///
  /// - Parameters:
  ///   - staleTimeToLive: The time for which the policy keeps a stale value.
  ///   - staleTime: The time for which a stale value is an answer while it is renewed, if it has none of its own.
  ///   - idleDeadline: The end of its time to idle, if there is one.
  /// - Returns: The time.
  func keptUntil(
    staleTimeToLive: Nanoseconds,
    staleTime: Nanoseconds,
    idleDeadline: Nanoseconds?
  ) -> Nanoseconds {
    let (terms, deadline) = (details.terms, min(ownDeadline, idleDeadline ?? .max))
    let fallbackTime = terms.forbidsStale ? 0 : terms.staleIfError ?? 0
    let time = max(staleTimeToLive, terms.staleTime(staleTime), fallbackTime)
    // The deadline is in the past if the value has to be revalidated.
    return max(deadline, storedAt).addingSaturating(time)
  }

  /// Returns whether a failed fetch can be answered with the value.
  @usableFromInline
  func allowsFallback(_ grounds: ValueTerms.FallbackGrounds, at now: Nanoseconds) -> Bool {
    details.terms.allowsFallback(grounds, until: ownDeadline, at: now)
  }

  /// Whether the value is no answer once it is stale.
  var forbidsStale: Bool { details.terms.forbidsStale }

  /// Whether the value has to be revalidated before it is used.
  @usableFromInline var isDistrusted: Bool { deadline == .min }
}

// MARK: - Requests

extension EntryState {
  /// The answers to a request.
  @usableFromInline
  enum Decision: Hashable, Sendable {
    /// The value, which is fresh.
    case fresh
    /// The value, which is fresh; a flight has to begin in the background before its time is over.
    case expiring
    /// The value, which is stale; a flight has to begin in the background if it `renews`.
    case stale(renews: Bool)
    /// The remembered failure.
    case failure
    /// The outcome of this flight.
    case waits(Flight)
    /// The outcome of a flight that has to begin.
    case begins
    /// None, because the caller would have to wait and must not.
    case refused
  }

  /// Decides how a request is answered.
  ///
  /// - Parameters:
  ///   - hasValue: Whether there is a value.
  ///   - ticket: The newest refresh that the caller requires.
  ///   - now: The present time.
  ///   - staleTime: The time for which a stale value is an answer while it is renewed, if it has none of its own.
  ///   - refreshAhead: The time before its deadline at which a value is renewed.
  ///   - mayWait: Whether the caller can wait for a flight or begin one.
  /// - Returns: The answer.
  @usableFromInline
  func decide(
    hasValue: Bool,
    ticket: RefreshTicket = .none,
    at now: Nanoseconds,
    staleTime: Nanoseconds,
    refreshAhead: Nanoseconds = 0,
    mayWait: Bool = true
  ) -> Decision {
    let isExpiring =
      mayWait && refreshAhead > 0 && now >= deadline.subtractingSaturating(refreshAhead)
    let details: Details
    switch box {
    case .waiting(let flight), .running(let flight):
      if now < deadline { return .fresh }
      let usableUntil = deadline.addingSaturating(max(staleTime, 0))
      if hasValue, now < usableUntil { return .stale(renews: false) }
      return mayWait ? .waits(flight) : .refused
    case .empty:
      if isFresh(at: now) { return isExpiring ? .expiring : .fresh }
      if hasValue, unserved.isNone, now < deadline.addingSaturating(max(staleTime, 0)) {
        return .stale(renews: mayWait)
      }
      return mayWait ? .begins : .refused
    case .full(let full):
      details = full
    }
    let usableUntil = deadline.addingSaturating(details.terms.staleTime(staleTime))
    if let running = details.running {
      if running.unserved.isDemanded(by: ticket), let queued = running.queued {
        return mayWait ? .waits(queued) : .refused
      }
      if !running.serves.isDemanded(by: ticket) {
        if now < deadline { return .fresh }
        if hasValue, now < usableUntil { return .stale(renews: false) }
      }
      return mayWait ? .waits(running.flight) : .refused
    }

    let isFailureRemembered = remembersFailure(at: now)
    if isFresh(at: now) {
      let isDue = isExpiring && !isFailureRemembered && now >= details.failure?.renewsFrom ?? .min
      return isDue ? .expiring : .fresh
    }
    if hasValue, unserved.isNone, now < usableUntil {
      return .stale(renews: mayWait && !isFailureRemembered)
    }
    if isFailureRemembered { return .failure }
    return mayWait ? .begins : .refused
  }
}
