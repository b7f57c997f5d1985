extension KeyedCache {
  /// The properties of a caller, read once even if it requests several keys.
  @usableFromInline
  struct Caller: Sendable {
    /// The fetch or load that it works for.
    @usableFromInline let scope: WaitNode?
    @usableFromInline let priority: PriorityLevel
    @usableFromInline let isCancelled: Bool
    /// The newest refresh that it requires.
    @usableFromInline let ticket: RefreshTicket
    /// Whether flights are launched together with others.
    @usableFromInline let isBulk: Bool
    /// The present time.
    @usableFromInline let now: Nanoseconds
    /// Whether it waits for a flight that begins.
    @usableFromInline var waits = true
    /// Whether a flight begins although it will be refused, because its stored copy can be the answer.
    @usableFromInline var readsCopy = false

    @inlinable
    init(
      _ scope: WaitNode?,
      ticket: RefreshTicket = .none,
      isBulk: Bool = false,
      at now: Nanoseconds
    ) {
      self.scope = scope
      self.ticket = ticket
      self.isBulk = isBulk
      self.now = now
      priority = .current
      isCancelled = Task.isCancelled
    }

    /// The same caller, which does not wait for a flight that begins.
    @inlinable var inBackground: Caller {
      var caller = self
      caller.waits = false
      return caller
    }
  }

  /// The result of a request before it suspends.
  @usableFromInline
  enum Admission: Sendable {
    case answered(ValueOutcome<Value>)
    case failed(any Error)
    case waits(Flight, WaitPlace)
    /// A fetch would have to begin, and too many wait for a place.
    case overloaded(hasValue: Bool)
  }

  /// Answers a request, or gives it a place in a flight.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - caller: The caller.
  ///   - effects: Receives the work that remains, also if the request fails.
  /// - Returns: The answer, or the flight to wait for.
  @inlinable
  func admit(
    _ key: Key,
    hash: UInt64,
    _ caller: Caller,
    _ effects: inout CacheEffects
  ) -> Admission {
    // A fetch that continues after its end can request its own key.
    let isOwn = caller.scope.map { !$0.isSettled && isFlight($0, of: key, hash: hash) } ?? false
    let now = caller.now
    let tags = tagging?(key)
    let isTrusted = shared == nil || isTrusted()
    let admission = shards.withLock(hash: hash) { shard -> Admission in
      let index = shard.place(of: key, hash: hash, tags: tags)
      let hasValue = use(index, isTrusted: isTrusted, at: now, &shard)
      switch shard[index].state.decide(
        hasValue: hasValue,
        ticket: caller.ticket,
        at: now,
        staleTime: staleTime,
        refreshAhead: refreshAhead,
        mayWait: !isOwn && !caller.isCancelled
      ) {
      case .fresh:
        shard.statistics.hits &+= 1
        return answer(from: shard, index, isStale: false)
      case .expiring:
        shard.statistics.hits &+= 1
        let answer = answer(from: shard, index, isStale: false)
        if source.limit?.isCrowded == true { return answer }
        _ = begin(index, caller.inBackground, &shard, &effects)
        return answer
      case .stale(let renews):
        shard.statistics.staleHits &+= 1
        let answer = answer(from: shard, index, isStale: true)
        if renews, source.limit?.isCrowded != true {
          _ = begin(index, caller.inBackground, &shard, &effects)
        }
        return answer
      case .failure:
        return shard.fallBack(index, at: now)
      case .waits(let flight):
        shard.statistics.joins &+= 1
        let place = flight.join()
        if effects.tellsEvents { flight.countJoin() }
        if let limit = source.limit { limit.updateCallers(of: flight) }
        return .waits(flight, place)
      case .begins:
        if let limit = source.limit, refuses(index, caller, shard, limit) {
          shard.removeIfEmpty(index, &effects)
          return .overloaded(hasValue: hasValue)
        }
        shard.statistics.misses &+= 1
        return .waits(begin(index, caller, &shard, &effects), .first)
      case .refused:
        shard.statistics.misses &+= 1
        shard.removeIfEmpty(index, &effects)
        return .failed(refusal(isOwn: isOwn, scope: caller.scope))
      }
    }
    if case .overloaded(hasValue: false) = admission, storage != nil {
      return admitForCopy(key, hash: hash, caller, &effects)
    }
    return admission
  }

  /// Records a request for the value at an index, if there is one.
  ///
  /// - Returns: Whether there is one.
  @inlinable
  @inline(__always)
  func use(
    _ index: Int,
    isTrusted: Bool,
    at now: Nanoseconds,
    _ shard: inout Shard<Key, Value>
  ) -> Bool {
    guard shard.hasValue(index) else { return false }
    if !isTrusted, !keepsCopy(from: shard[index].state.storedAt, at: now) {
      shard[index].state.distrust()
    }
    shard.use(index, at: now)
    return true
  }

  /// Returns the value at an index as an answer.
  @inlinable
  func answer(from shard: Shard<Key, Value>, _ index: Int, isStale: Bool) -> Admission {
    // Only an entry with a value is classified as fresh or stale.
    guard let copy = shard.copy(index) else { return .failed(CancellationError()) }
    copy.source = .memory
    copy.isStale = isStale
    if isStale { copy.error = shard[index].state.failure?.error }
    return .answered(copy)
  }

  /// Begins a flight, which is launched once the lock is released.
  ///
  /// A caller that waits has joined it, in ``WaitPlace/first``.
  @inlinable
  func begin(
    _ index: Int,
    _ caller: Caller,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout CacheEffects
  ) -> Flight {
    let flight = shard.makeFlight(
      index,
      source: source,
      priority: caller.priority,
      hasCaller: caller.waits
    )
    if effects.tellsEvents, shard.hasValue(index), shard[index].state.isExpired(at: caller.now) {
      effects.tell(of: shard.keys.entries[index].key) { .expired(key: $0) }
    }
    flight.plan.inheritsTaskLocals = policy.inheritsTaskLocals
    flight.plan.takesStoredCopy = caller.ticket.isNone
    shard[index].state.begin(flight, inBackground: !caller.waits)
    shard.launch(flight, index, isBulk: caller.isBulk, &effects)
    let key = shard.keys.entries[index].key
    if shard.pauseCount > 0 || key != key {
      // The flight is detached at once: its outcome is for the current callers only. An entry whose key is not equal
      // to itself, such as a NaN, could not be found again.
      _ = shard[index].state.giveUp(hasValue: shard.hasValue(index))
      shard.removeIfEmpty(index, &effects)
    } else {
      shard.publish(index, &effects)
    }
    return flight
  }

  /// Returns whether a fetch or load is the fetch of this key of this cache.
  @inlinable
  func isFlight(_ node: WaitNode, of key: Key, hash: UInt64) -> Bool {
    guard let flight = node as? Flight, flight.source === source, flight.hash == hash else {
      return false
    }
    return self.key(of: flight) == key
  }
}

extension Shard {
  /// Answers a request with the remembered failure, or with the value in its place.
  @inlinable
  mutating func fallBack(_ index: Int, at now: Nanoseconds) -> KeyedCache<Key, Value>.Admission {
    guard let failure = keys.entries[index].element.state.failure else {
      return .failed(CancellationError())
    }
    guard keys.entries[index].element.state.allowsFallback(failure.grounds, at: now),
      let copy = copy(index)
    else {
      statistics.misses &+= 1
      return .failed(failure.error)
    }
    statistics.staleHits &+= 1
    copy.source = .memory
    copy.isStale = true
    copy.error = failure.error
    return .answered(copy)
  }
}
