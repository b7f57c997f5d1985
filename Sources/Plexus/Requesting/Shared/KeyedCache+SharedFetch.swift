// MARK: - Flights

extension KeyedCache {
  /// The number of entries that do not suffice after which a flight fetches without the shared tier.
  private static var lookLimit: Int { 8 }

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
      guard let findings = await look(for: [name: wish], on: flight, link, storage),
        let finding = findings[name]
      else { return await fetchAlone(flight, name, link) }
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
        wish.awaited = version
      case .fetches(let lease, let previous):
        return await fetch(flight, under: lease, previous, link, storage)
      case .isAlone:
        return await fetchAlone(flight, name, link)
      }
    }
    return Outcome(.cancelled, error: CancellationError())
  }

  /// Does the work of several flights with the shared tier: one look for all of them, and one fetch for the rest.
  @usableFromInline
  func shareTogether(
    _ flights: [Flight],
    in batch: BulkFlight,
    by link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    var pending: [String: Flight] = [:]
    // Flights that do not end with the first two looks, and other flights of a key, continue separately.
    var single: [Flight] = []
    for flight in flights {
      let name = storage.name(of: key(of: flight))
      if pending[name] != nil {
        single.append(flight)
      } else {
        pending[name] = flight
        _ = watch(flight, name, link)
      }
    }
    var granted: [GrantedFlight] = []
    var launched: [Flight] = []
    var wishes: [String: SharedCache.Wish] = [:]
    for (name, flight) in pending { wishes[name] = firstWish(of: flight, name, link) }
    if await !settleDebts(of: pending.map { ($0.key, $0.value) }, link, storage) {
      single += pending.values
      wishes = [:]
    }
    for _ in 0..<2 where !wishes.isEmpty {
      for name in wishes.keys { pending[name].flatMap { link.watch(of: $0) }?.begin() }
      guard let findings = await look(for: wishes, on: batch, link, storage) else {
        single += wishes.keys.compactMap { pending[$0] }
        wishes = [:]
        break
      }
      let asked = wishes
      wishes = [:]
      for (name, wish) in asked {
        guard let flight = pending[name] else { continue }
        guard let finding = findings[name] else {
          single.append(flight)
          continue
        }
        switch step(finding, wish, for: flight, name, link) {
        case .answers(let outcome):
          launched += finish(flight, with: outcome, isBulk: true)
        case .looksAgain(let version):
          wishes[name, default: newWish(of: flight)].newerThan = version
        case .fetches(let lease, let previous):
          granted.append(GrantedFlight(flight: flight, lease: lease, previous: previous))
        case .waits, .isAlone:
          single.append(flight)
        }
      }
    }
    single += wishes.keys.compactMap { pending[$0] }
    launch(launched)
    await withTaskGroup { [single, granted] group in
      for flight in single {
        group.addTask {
          let outcome = await self.share(flight, by: link, storage)
          self.countTime(of: flight)
          self.launch(self.finish(flight, with: outcome, isBulk: true))
        }
      }
      if !granted.isEmpty {
        await self.fetch(granted, in: batch, link, storage, with: bulkFetch)
      }
    }
  }

  private func watch(
    _ flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> SharedWatch {
    let (watch, isCrowded) = link.watch(flight, name: name, key: key(of: flight))
    if isCrowded {
      link.forget(
        link.knownKeys.compactMap { name, known in
          let isNeeded = shards.withLock(hash: known.hash) { shard in
            shard.keys.index(of: known.key, hash: known.hash) != nil
          }
          return isNeeded ? nil : name
        }
      )
    }
    return watch
  }
}

// MARK: - Looks

extension KeyedCache {
  /// The continuation of a flight after a look.
  private enum SharedStep {
    case answers(Outcome)
    case looksAgain(newerThan: SharedCache.Version)
    case waits(for: SharedCache.Version, atMost: Duration)
    case fetches(SharedCache.Lease, previous: Outcome?)
    /// The cacher has broken its contract.
    case isAlone
  }

  /// Returns the wish of the first look: a value that is renewed has to be replaced by a newer one.
  private func firstWish(
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

  private func newWish(of flight: Flight) -> SharedCache.Wish {
    var wish = SharedCache.Wish()
    wish.tags = tagging?(key(of: flight)) ?? []
    return wish
  }

  /// Looks in the shared tier.
  ///
  /// - Returns: The findings; `nil` if the tier cannot be reached.
  private func look(
    for wishes: [String: SharedCache.Wish],
    on flight: Flight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> [String: SharedCache.Finding<Value>]? {
    guard storage.calls.allowsReading() else { return nil }
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
      return nil
    }
  }

  private func step(
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
      if let copy { flight.note(readCopy: copy) }
      dropUnconfirmed(flight, isRemoved: copy == nil)
      return .fetches(lease, previous: copy)
    case .busy(let version, let previous, let limit):
      if let copy = previous.flatMap({ fallback($0, name, link) }) { flight.note(readCopy: copy) }
      return .waits(for: version, atMost: limit)
    case .failedElsewhere(let failure):
      return .answers(
        self.failure(failure, grounds(of: failure), of: flight, stored: nil, isRead: true)
      )
    case .missing:
      return .isAlone
    }
  }

  /// Returns whether an entry answers a flight, and marks the entry if it does.
  private func isSharedAnswer(_ copy: Outcome, for flight: Flight) -> Bool {
    let now = time.now()
    if now >= copy.deadline {
      // A flight that renews a value needs a newer one.
      guard flight.previous == nil, copy.allowsRenewal(within: staleTime, at: now) else {
        return false
      }
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

  /// Removes the value of a key that the tier does not confirm, so that it is not a fallback for a failed fetch.
  ///
  /// A fresh value that is renewed early stays: whether there is a renewal makes no difference to requests.
  private func dropUnconfirmed(_ flight: Flight, isRemoved: Bool) {
    let key = key(of: flight)
    let now = time.now()
    var effects = makeEffects()
    shards.withLock(hash: flight.hash) { shard in
      guard let index = shard.keys.index(of: key, hash: flight.hash),
        shard[index].state.running === flight, shard.hasValue(index),
        isRemoved && (shard[index].state.isExpired(at: now) || shard[index].state.servesRefresh)
          || shard[index].state.isDistrusted
      else { return }
      effects.release(shard[index])
      _ = shard.setValue(nil, at: index)
      shard[index].state.dropValue()
      shard.extras?.eviction?.discard(index)
      shard.publish(index, &effects)
    }
    effects.perform(in: self)
  }
}

// MARK: - Fetches

extension KeyedCache {
  private struct GrantedFlight: Sendable {
    let flight: Flight
    let lease: SharedCache.Lease
    let previous: Outcome?
  }

  /// Fetches without the shared tier, for the current callers.
  private func fetchAlone(
    _ flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) async -> Outcome {
    if flight.isCancelled { return Outcome(.cancelled, error: CancellationError()) }
    // The value is looked up again before it is used again.
    link.watch(of: flight)?.note()
    flight.previous = nil
    do {
      let outcome = try await attempts(of: flight, operations.fetch)
      guard let error = outcome.kind == .failure ? outcome.error : nil else {
        goAhead(name, link)
        link.note(nil, of: name)
        forgetChange(flight)
        return outcome
      }
      return failure(error, grounds(of: error), of: flight, stored: nil, isRead: true)
    } catch {
      return failure(error, grounds(of: error), of: flight, stored: nil, isRead: true)
    }
  }

  /// Removes the record of a value to write, because a newer value that is not written is about to replace it.
  private func forgetChange(_ flight: Flight) {
    let key = key(of: flight)
    var effects = makeEffects()
    shards.withLock(hash: flight.hash) { shard in
      shard.extras?.pendingWrites?.forgetNote(key, hash: flight.hash, &effects)
    }
    effects.perform(in: self)
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
      return failure(error, grounds(of: error), of: flight, stored: previous, isRead: true)
    }
  }

  /// Fetches the values of several flights under their leases.
  private func fetch(
    _ granted: [GrantedFlight],
    in batch: BulkFlight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    let values: BulkValues<Key, Value>
    do {
      values = try await self.values(of: granted.map(\.flight), in: batch, with: bulkFetch)
    } catch {
      await release(granted.map(\.lease), of: granted.map(\.flight), because: error, link, storage)
      var launched: [Flight] = []
      for (index, item) in granted.enumerated() {
        let outcome = failure(
          error,
          grounds(of: error),
          of: item.flight,
          stored: item.previous,
          isRead: true
        )
        launched += finish(item.flight, with: outcome, countsFailure: index == 0, isBulk: true)
      }
      launch(launched)
      return
    }
    await withTaskGroup { group in
      for item in granted {
        group.addTask {
          let outcome: Outcome
          do {
            outcome = try self.outcome(of: item.flight, in: values)
          } catch {
            outcome = Outcome(.failure, error: error)
          }
          let result = await self.handOver(
            outcome,
            of: item.flight,
            under: item.lease,
            item.previous,
            link,
            storage
          )
          self.launch(self.finish(item.flight, with: result, isBulk: true))
        }
      }
    }
  }

  /// Stores the result of a fetch in the shared tier, or releases the lease.
  private func handOver(
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
      return failure(error, grounds(of: error), of: flight, stored: previous, isRead: true)
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
      case .cleared, .superseded:
        // The result is for the current callers. The entry of the tier, if any, is newer.
        outcome.kind = .transient
        outcome.isOutdated = true
      }
    } catch {
      noteCacherError([lease.key: error])
      let now = time.now()
      link.withDebts { $0.goAhead(lease.key, at: now) }
      link.note(nil, of: lease.key)
      link.watch(of: flight)?.note()
    }
    link.noteOwnChanges([flight])
    return outcome
  }

  /// Releases leases without values.
  private func release(
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
    try await Task.detached { try await storage.calls.run(.read, operation) }.value
  }
}
