extension KeyedCache {
  @usableFromInline typealias EntrySnapshot = MultiplexerMap<Key, Value>.EntrySnapshot

  /// Returns entries at one moment, which counts as no use of them.
  ///
  /// The arrays of all shards are referenced under all locks. Everything else is done with no lock held: the condition and
  /// the comparison of keys are user code.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of entries.
  ///   - isIncluded: The condition.
  /// - Returns: The entries, in no particular order.
  @inlinable
  func entries(limit: Int, where isIncluded: (Key) -> Bool) -> [EntrySnapshot] {
    guard limit > 0 else { return [] }
    var moments = moments
    let (now, isTrusted) = (time.now(), trustsCopies)
    var result: [EntrySnapshot] = []
    // A shard that has been read is no longer referenced, so that its next change copies nothing.
    while let moment = moments.popLast() {
      for index in moment.entries.indices {
        let state = moment.entries[index].element.state
        let hasValue = if case .some = moment.entries[index].element.value { true } else { false }
        guard hasValue || state.isAtRest && state.remembersFailure(at: now) else { continue }
        guard isIncluded(moment.entries[index].key) else { continue }
        result.append(snapshot(index, of: moment, at: now, isTrusted: isTrusted))
        if result.count == limit { return result }
      }
    }
    return result
  }

  /// The entries of all shards at one moment.
  @usableFromInline var moments: [Shard<Key, Value>.Moment] {
    var moments: [Shard<Key, Value>.Moment] = []
    moments.reserveCapacity(shards.count)
    shards.withAllLocks { moments.append($0.moment(hasCosts: cost != nil)) }
    return moments
  }

  /// Whether copies of a shared tier are used without a look in it; reading it changes nothing.
  @usableFromInline var trustsCopies: Bool {
    guard let shared else { return true }
    return shared.trust.generation == shared.seenGeneration && shared.trust.holds
  }

  @inlinable
  func snapshot(
    _ index: Int,
    of moment: Shard<Key, Value>.Moment,
    at now: Nanoseconds,
    isTrusted: Bool
  ) -> EntrySnapshot {
    let entry = moment.entries[index].element
    let hasValue = if case .some = entry.value { true } else { false }
    // What a request would find, and would record in the entry.
    var state = entry.state
    if now >= moment.idleDeadline(of: index) { state.expire(at: moment.idleDeadline(of: index)) }
    if !isTrusted, !keepsCopy(from: state.storedAt, at: now) { state.distrust() }
    let rating: CacheEntryState
    var end: Nanoseconds?
    switch state.decide(hasValue: hasValue, at: now, staleTime: staleTime, mayWait: false) {
    case .fresh, .expiring:
      (rating, end) = (.fresh, min(state.deadline, moment.idleDeadline(of: index)))
    case .failure:
      (rating, end) = (.failed, state.failure?.until)
    case .stale, .waits, .begins, .refused:
      rating = .stale
    }
    return EntrySnapshot(
      key: moment.entries[index].key,
      value: entry.value,
      state: rating,
      error: state.failureError,
      age: hasValue ? .nanoseconds(age(of: state.storedAt, at: now)) : .zero,
      timeLeft: end.flatMap { $0 == .max ? nil : .nanoseconds($0.subtractingSaturating(now)) },
      tags: moment.tags(of: index),
      cost: hasValue ? moment.cost(of: index) : 0
    )
  }
}
