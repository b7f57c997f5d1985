// MARK: - Flights

extension KeyedCache {
  /// The number of entries that do not suffice after which a flight fetches without the shared tier.
  static var lookLimit: Int { 8 }
  /// The number of keys of one look: each call of the cacher has the time limit of the policy.
  private static var lookSize: Int { 4_096 }

  /// Does the work of a flight with the shared tier: the value of another process, or a fetch under the lease.
  @usableFromInline
  @concurrent
  func share(
    _ flight: Flight,
    by link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Outcome {
    let name = storage.name(of: key(of: flight))
    let watch = watch(flight, name, link)
    guard await settleDebts(of: [(name, flight)], link, storage) else {
      return await fetchAlone(flight, name, link)
    }
    var wish = firstWish(of: flight, name, link)
    var rest = Self.lookLimit
    while !flight.isCancelled {
      watch.begin()
      let findings = await look(for: [name: wish], on: flight, link, storage)
      guard let finding = findings[name] else { return await fetchAlone(flight, name, link) }
      switch step(finding, wish, for: flight, name, link) {
      case .answers(let outcome):
        return outcome
      case .looksAgain(let version):
        rest -= 1
        guard rest > 0 else { return await fetchAlone(flight, name, link) }
        wish = newWish(of: flight)
        wish.newerThan = version
      case .waits(let version, let limit):
        // Leases end by the clock of the engine, whatever the clock of the cache.
        await watch.wait(atMost: limit, on: link.trust.clock)
        if watch.hasChanged { flight.note(readCopy: nil) }
        wish.awaited = version
      case .fetches(let lease, let previous):
        return await fetch(flight, under: lease, previous, link, storage)
      case .fails(let failure):
        let copies = await fallbacks(for: [name: flight], on: flight, link, storage)
        return self.failure(failure, of: flight, stored: copies[name], link)
      case .isAlone:
        return await fetchAlone(flight, name, link)
      }
    }
    return Outcome(.cancelled, error: CancellationError())
  }

  func watch(
    _ flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> SharedWatch {
    let (watch, isCrowded) = link.watch(flight, name: name, key: key(of: flight))
    if isCrowded { forgetAbsentKeys(link) }
    return watch
  }

  /// Records keys whose values are about to be stored, so that changes of other processes reach the copies in memory.
  func noteStored(_ keys: [(name: String, key: Key)], _ link: SharedLink<Key, Value>) {
    let isCrowded = link.note(stored: keys.map { ($0.name, ($0.key, hasher.hash($0.key))) })
    if isCrowded { forgetAbsentKeys(link) }
  }

  private func forgetAbsentKeys(_ link: SharedLink<Key, Value>) {
    link.forget(
      link.knownKeys.compactMap { name, known in
        let isNeeded = shards.withLock(hash: known.hash) { shard in
          shard.keys.index(of: known.key, hash: known.hash) != nil
        }
        return isNeeded ? nil : name
      }
    )
  }
}

// MARK: - Looks

extension KeyedCache {
  /// The continuation of a flight after a look.
  enum SharedStep {
    case answers(Outcome)
    case looksAgain(newerThan: SharedCache.Version)
    case waits(for: SharedCache.Version, atMost: Duration)
    case fetches(SharedCache.Lease, previous: Outcome?)
    case fails(SharedCache.Failure)
    /// The cacher has broken its contract.
    case isAlone
  }

  /// Returns the wish of the first look: a value that is renewed has to be replaced by a newer one.
  func firstWish(
    of flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> SharedCache.Wish {
    var wish = newWish(of: flight)
    guard let previous = flight.previous, previous.deadline != .min else { return wish }
    if !flight.takesStoredCopy || time.now() >= previous.deadline {
      wish.newerThan = link.version(of: name)
    }
    return wish
  }

  func newWish(of flight: Flight) -> SharedCache.Wish {
    var wish = SharedCache.Wish()
    wish.tags = tagging?(key(of: flight)) ?? []
    return wish
  }

  /// Looks in the shared tier.
  ///
  /// - Returns: The findings, without the keys for which the lookup has failed.
  func look(
    for wishes: [String: SharedCache.Wish],
    on flight: Flight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> [String: SharedCache.Finding<Value>] {
    guard wishes.count > Self.lookSize else {
      return await lookOnce(for: wishes, on: flight, link, storage)
    }
    var findings: [String: SharedCache.Finding<Value>] = [:]
    findings.reserveCapacity(wishes.count)
    var part: [String: SharedCache.Wish] = [:]
    var rest = wishes.count
    for (name, wish) in wishes {
      part[name] = wish
      rest -= 1
      guard part.count == Self.lookSize || rest == 0 else { continue }
      let found = await lookOnce(for: part, on: flight, link, storage)
      findings.merge(found) { first, _ in first }
      part.removeAll(keepingCapacity: true)
    }
    return findings
  }

  private func lookOnce(
    for wishes: [String: SharedCache.Wish],
    on flight: Flight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> [String: SharedCache.Finding<Value>] {
    guard storage.calls.allowsReading() else { return [:] }
    do {
      return try await WaitScope.local.withValue(flight) {
        try await storage.calls.run(.read) {
          let findings = try await link.cacher.look(for: wishes)
          guard Task.isCancelled else { return findings }
          // The caller no longer waits, and would keep the leases.
          let leases = findings.values.compactMap { finding in
            if case .granted(let lease, _) = finding { lease } else { nil }
          }
          await link.cacher.release(leases, because: nil)
          throw CancellationError()
        }
      }
    } catch {
      if !flight.isCancelled { noteCacherError(failures(in: error, of: Array(wishes.keys))) }
      return [:]
    }
  }

  func step(
    _ finding: SharedCache.Finding<Value>,
    _ wish: SharedCache.Wish,
    for flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> SharedStep {
    switch finding {
    case .entry(let entry, let age, let version):
      if let old = wish.newerThan, version <= old { return .isAlone }
      if let known = link.version(of: name), version < known {
        // The engine was restarted with older data: none of it is given to callers that had the newer value.
        goAhead(name, link)
        return .looksAgain(newerThan: known)
      }
      let copy = restored(entry, age: age)
      let isBehind = link.withDebts { debts in
        let isBehind = wish.newerThan == nil && debts.isBehind(name, storedAt: copy.storedAt)
        if !isBehind { debts.catchUp(name) }
        return isBehind
      }
      let verdict = judge(entry, of: key(of: flight), hash: flight.hash, name: name)
      guard !isBehind, verdict == .usable else { return .looksAgain(newerThan: version) }
      // The result of a fetch that was waited for is the answer, however short its time is.
      if let awaited = wish.awaited, version >= awaited {
        copy.kind = .restored
        link.note(version, of: name)
        return .answers(copy)
      }
      if isSharedAnswer(copy, for: flight) {
        link.note(version, of: name)
        return .answers(copy)
      }
      flight.note(readCopy: copy)
      return .looksAgain(newerThan: version)
    case .granted(let lease, let previous):
      let copy = previous.flatMap { fallback($0, name, link) }
      flight.previous = copy
      take(copy, for: flight)
      return .fetches(lease, previous: copy)
    case .busy(let version, let previous, let limit):
      take(previous.flatMap { fallback($0, name, link) }, for: flight)
      return .waits(for: version, atMost: limit)
    case .failedElsewhere(let failure):
      return .fails(failure)
    case .missing:
      return .isAlone
    }
  }

  /// Returns whether an entry answers a flight, and marks the entry if it does.
  private func isSharedAnswer(_ copy: Outcome, for flight: Flight) -> Bool {
    let now = time.now()
    if now >= copy.deadline {
      // A flight that renews a value needs a newer one. A value that has to be looked up is none.
      guard flight.previous?.deadline ?? .min == .min,
        copy.allowsRenewal(within: staleTime, at: now)
      else { return false }
      copy.isStale = true
    }
    copy.kind = .restored
    return true
  }

  /// Records that callers have values of a key that are newer than those of the tier.
  private func goAhead(_ name: String, _ link: SharedLink<Key, Value>) {
    let now = time.now()
    link.withDebts { $0.goAhead(name, at: now) }
  }

  /// Returns a copy of an entry that serves as a fallback only; `nil` if callers were given a newer value.
  private func fallback(
    _ entry: CacheEntry<Value>,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> ValueOutcome<Value>? {
    let copy = restored(entry, age: age(of: entry))
    copy.isOutdated = true
    let isBehind = link.withDebts { $0.isBehind(name, storedAt: copy.storedAt) }
    return isBehind ? nil : copy
  }

  /// Makes the entry of the tier the fallback of a flight: the value in memory is none unless the tier confirms it.
  private func take(_ copy: ValueOutcome<Value>?, for flight: Flight) {
    flight.note(readCopy: copy)
    dropUnconfirmed(flight, isRemoved: copy == nil)
  }

  /// Looks for the entries that answer flights whose fetches have failed in another process.
  ///
  /// - Returns: The entries, of which there are none for removed keys.
  func fallbacks(
    for flights: [String: Flight],
    on scope: Flight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> [String: Outcome] {
    var wishes: [String: SharedCache.Wish] = [:]
    for (name, flight) in flights {
      var wish = newWish(of: flight)
      wish.takesLease = false
      wishes[name] = wish
      link.watch(of: flight)?.begin()
    }
    let findings = await look(for: wishes, on: scope, link, storage)
    var copies: [String: Outcome] = [:]
    for (name, flight) in flights {
      let copy: ValueOutcome<Value>?
      switch findings[name] {
      case .entry(let entry, let age, let version):
        copy = confirmed(entry, age: age, version, for: flight, name, link)
      case .missing(let previous), .busy(_, let previous, _), .granted(_, let previous):
        copy = previous.flatMap { fallback($0, name, link) }
      case .failedElsewhere: copy = nil
      // Without an answer, the entry is the one that the engine had during the wait.
      case nil:
        copies[name] = flight.readCopy
        continue
      }
      take(copy, for: flight)
      copies[name] = copy
    }
    return copies
  }

  /// Returns a copy of a valid entry; `nil` if callers were given a newer value.
  private func confirmed(
    _ entry: CacheEntry<Value>,
    age: Duration,
    _ version: SharedCache.Version,
    for flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> ValueOutcome<Value>? {
    if let known = link.version(of: name), version < known { return nil }
    guard judge(entry, of: key(of: flight), hash: flight.hash, name: name) != .cleared else {
      return nil
    }
    let copy = restored(entry, age: age)
    return link.withDebts { $0.isBehind(name, storedAt: copy.storedAt) } ? nil : copy
  }

  /// Removes the value of a key that the tier does not confirm, so that it is not a fallback for a failed fetch.
  ///
  /// A fresh value that is renewed early stays: whether there is a renewal makes no difference to requests.
  private func dropUnconfirmed(_ flight: Flight, isRemoved: Bool) {
    let key = key(of: flight)
    let now = time.now()
    change(flight.hash, at: now) { shard, transaction in
      guard let index = shard.keys.index(of: key, hash: flight.hash),
        shard[index].state.running === flight, shard.hasValue(index),
        isRemoved && (shard[index].state.isExpired(at: now) || shard[index].state.servesRefresh)
          || shard[index].state.isDistrusted
      else { return }
      shard.dropValue(index, &transaction.effects)
    }
  }
}

// MARK: - Fetches

extension KeyedCache {
  /// Fetches without the shared tier, for the current callers.
  private func fetchAlone(
    _ flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) async -> Outcome {
    if flight.isCancelled { return Outcome(.cancelled, error: CancellationError()) }
    flight.previous = nil
    do {
      let outcome = try await attempts(of: flight, operations.fetch)
      return endAlone(flight, name, with: outcome, link)
    } catch {
      return failure(error, of: flight, stored: flight.readCopy, link)
    }
  }

  /// Returns the outcome of a flight that was fetched without the shared tier.
  func endAlone(
    _ flight: Flight,
    _ name: String,
    with outcome: Outcome,
    _ link: SharedLink<Key, Value>
  ) -> Outcome {
    if outcome.kind == .failure, let error = outcome.error {
      return failure(error, of: flight, stored: flight.readCopy, link)
    }
    guard outcome.isNew else { return outcome }
    // The value is looked up again before it is used again, unless the engine cannot be reached and values are kept.
    if !link.keepsValue() { link.watch(of: flight)?.note() }
    goAhead(name, link)
    link.note(nil, of: name)
    forgetChange(flight)
    return outcome
  }

  /// Returns the outcome of a flight whose attempts have failed: an older value is no answer if the engine was not heard
  /// for too long.
  func failure(
    _ error: any Error,
    of flight: Flight,
    stored: Outcome?,
    _ link: SharedLink<Key, Value>
  ) -> Outcome {
    distrustIfExpired(key(of: flight), hash: flight.hash)
    let isUsable =
      !link.trust.hasExpired
      || link.trust.keepsCopy(from: stored?.storedAt ?? .min, at: time.now())
    return failure(
      error,
      grounds(of: error),
      of: flight,
      stored: isUsable ? stored : nil,
      isRead: true
    )
  }

  /// Removes the record of a value to write, because a newer value that is not written is about to replace it.
  private func forgetChange(_ flight: Flight) {
    let key = key(of: flight)
    change(flight.hash, at: .min) { shard, transaction in
      shard.extras?.pendingWrites?.forgetNote(key, hash: flight.hash, &transaction.effects)
    }
  }

  /// Fetches under a lease.
  private func fetch(
    _ flight: Flight,
    under lease: SharedCache.Lease,
    _ previous: Outcome?,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Outcome {
    if flight.isCancelled {
      await release([lease], of: [flight], because: nil, link, storage)
      return Outcome(.cancelled, error: CancellationError())
    }
    do {
      let outcome = try await attempts(of: flight, operations.fetch)
      return await handOver(outcome, of: flight, under: lease, previous, link, storage)
    } catch {
      await release([lease], of: [flight], because: error, link, storage)
      return failure(error, of: flight, stored: previous, link)
    }
  }

  /// Stores the result of a fetch in the shared tier, or releases the lease.
  func handOver(
    _ outcome: Outcome,
    of flight: Flight,
    under lease: SharedCache.Lease,
    _ previous: Outcome?,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Outcome {
    guard outcome.kind == .value else {
      await release([lease], of: [flight], because: outcome.error, link, storage)
      guard outcome.kind == .failure, let error = outcome.error else { return outcome }
      return failure(error, of: flight, stored: previous, link)
    }
    var entry = CacheEntry(valued(outcome), age: .zero, at: wallClockTime())
    entry.tags = tagging?(key(of: flight)) ?? []
    entry.usableTime = usableTime(valued(outcome).terms)
    do {
      switch try await completing(
        { [entry] in try await link.cacher.fill(entry, under: lease) },
        storage
      ) {
      case .stored:
        link.withDebts { $0.catchUp(lease.key) }
        link.note(lease.version, of: lease.key)
      case .refused(let reason):
        // Entries of the tier are older, and the copy is as good as one that the tier has.
        if let reason { noteCacherError([lease.key: reason]) }
        goAhead(lease.key, link)
        link.note(nil, of: lease.key)
      case .cleared, .superseded:
        // The result is for the current callers. The entry of the tier, if any, is newer, unless it was stored before
        // this fetch began, which has lost its lease before.
        let (now, start) = (time.now(), flight.startTime ?? .min)
        link.withDebts { $0.goAhead(lease.key, at: now, of: start) }
        outcome.kind = .transient
        outcome.isOutdated = true
      }
    } catch {
      noteCacherError([lease.key: error])
      let now = time.now()
      link.withDebts { $0.goAhead(lease.key, at: now) }
      link.note(nil, of: lease.key)
      if !link.keepsValue() { link.watch(of: flight)?.note() }
    }
    link.noteOwnChanges([flight])
    return outcome
  }

  /// Releases leases without values.
  func release(
    _ leases: [SharedCache.Lease],
    of flights: [Flight],
    because error: (any Error)?,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async {
    let isCancelled = error is CancellationError || flights.allSatisfy(\.isCancelled)
    let failure = isCancelled ? nil : error.map { SharedCache.Failure($0) }
    try? await completing({ await link.cacher.release(leases, because: failure) }, storage)
    link.noteOwnChanges(flights)
  }

  /// Calls the cacher, even if the current task is cancelled.
  private func completing<Result: Sendable>(
    _ operation: @escaping @concurrent @Sendable () async throws -> Result,
    _ storage: Storage<Key, Value>
  ) async throws -> Result {
    try await Task.detached { try await storage.calls.run(.fill, operation) }.value
  }
}
