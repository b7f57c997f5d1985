/// The work of flights with the shared tier: one look for all of them, and one fetch for the rest.
///
/// A flight of one key takes the same way as the flights of a fetch of several keys. Flights that wait for other
/// processes look again together, and the ones among them that have to fetch do that together.
struct SharedFetching<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// The number of entries that do not suffice after which a flight fetches without the shared tier.
  static var lookLimit: Int { 8 }

  /// One of the flights.
  struct Item: Sendable {
    let name: String
    let flight: Flight
    let watch: SharedWatch
    var wish: SharedCache.Wish
    /// The number of looks that are left.
    var rest = SharedFetching.lookLimit
    /// The time at which the lease that it waits for ends.
    var waitsUntil = Nanoseconds.max
    /// The time at which the last look began.
    var lookStart = Nanoseconds.min
  }

  /// A flight that fetches under a lease.
  struct Granted: Sendable {
    let flight: Flight
    let lease: SharedCache.Lease
  }

  /// The results of the looks of some flights.
  struct Round: Sendable {
    var granted: [Granted] = []
    var alone: [Item] = []
    var failed: [(item: Item, failure: SharedCache.Failure)] = []
    var waiting: [Item] = []
  }

  let cache: KeyedCache<Key, Value>
  let shared: SharedLayer<Key, Value>
  let storage: StoredLayer<Key, Value>
  /// The flight whose task does the work: that of a key, or of several.
  let scope: Flight
  let fetch: KeyedCache<Key, Value>.Fetch
  /// The number of flights that have not ended, if there is a limit for fetches.
  let unended: Unended?

  /// The fetch of several keys, if it is one.
  var batch: BulkFlight? { scope as? BulkFlight }

  /// Does the work of flights, each of which ends exactly once.
  func runWithPlace(_ flights: [Flight]) async {
    var (looking, others) = items(of: flights)
    leave(after: others.count)
    var round = Round()
    if await !payDebts(of: looking) { (looking, round.alone) = ([], looking) }
    await withTaskGroup(of: Void.self) { [looking, others] group in
      // Other flights of a key continue separately.
      for flight in others {
        cache.source.limit?.enter(flight, beside: scope)
        group.addTask { await cache.work(for: flight) }
      }
      var (looking, hasFetched) = (looking, false)
      while !scope.isCancelled || !round.alone.isEmpty {
        await look(for: looking, &round)
        await end(round.failed)
        for part in fetches(of: round) {
          for flight in part.flights where shared.watch(of: flight)?.settle() == true {
            detach(flight)
          }
          let batch = hasFetched ? batch.map { BulkFlight(part.flights, partOf: $0) } : batch
          hasFetched = true
          if flights.count == 1 {
            await part.run(batch)
          } else {
            group.addTask { await part.run(batch) }
          }
        }
        var waiting = round.waiting
        round = Round()
        // What waits for another process needs no place.
        let limit = flights.count == 1 ? cache.source.limit : nil
        let hasPaused = limit?.giveBack(placeOf: scope) == true
        looking = await changed(among: &waiting)
        round.waiting = waiting
        if hasPaused, !looking.isEmpty, let limit {
          limit.enter(scope)
          if !limit.isInside(scope), await !lookWithoutPlace(for: looking).isEmpty { return }
          let admission = await limit.admission(of: scope)
          guard admission == .granted else { return await turnAway(flights, admission) }
        }
        if looking.isEmpty { break }
      }
      let cancelled = looking + round.waiting
      leave(after: cancelled.count)
      for item in cancelled {
        cache.launch(cache.cancel(item.flight, isBulk: batch != nil))
      }
    }
  }

  /// Returns the flights to look for: one for each key, and the others.
  func items(of flights: [Flight]) -> (items: [Item], others: [Flight]) {
    var items: [Item] = []
    var others: [Flight] = []
    var names: Set<String> = []
    for flight in flights {
      let name = storage.name(of: cache.key(of: flight))
      guard names.insert(name).inserted else {
        others.append(flight)
        continue
      }
      let (watch, isCrowded) = shared.watch(flight, name: name, key: cache.key(of: flight))
      if isCrowded { cache.forgetAbsentKeys() }
      items.append(
        Item(name: name, flight: flight, watch: watch, wish: firstWish(of: flight, name))
      )
    }
    return (items, others)
  }

  /// Pays the debts that concern some keys, if there are any.
  ///
  /// - Returns: Whether the entries of these keys can be used and stored.
  func payDebts(of items: [Item]) async -> Bool {
    let isOwing: @Sendable () -> Bool = { [cache, shared] in
      let (hasOutdates, tags) = shared.withDebts { debts in
        (debts.outdates.owes(items.lazy.map(\.name)), debts.tagRemovals.owed)
      }
      return hasOutdates || items.contains { cache.owes($0.flight, $0.name, tags) }
    }
    guard isOwing() else { return true }
    // A fetch that is part of a call of the cacher would wait for itself.
    guard !storage.queue.isCurrent else { return false }
    await storage.queue.add { [cache] in await cache.payDebts() }.value
    return !isOwing()
  }

  /// Detaches a flight after a change: its result is for its current callers.
  private func detach(_ flight: Flight) {
    cache.distrust(
      cache.key(of: flight),
      hash: flight.hash,
      detaching: [ObjectIdentifier(flight)],
      marksValue: false
    )
  }

  /// Ends a flight that has not failed.
  func finish(_ flight: Flight, with outcome: Outcome) {
    leave(after: 1)
    cache.launch(cache.finish(flight, with: outcome, isBulk: batch != nil))
  }
}

// MARK: - Looks

extension SharedFetching {
  /// The number of keys of one look: each call of the cacher has the time limit of the policy.
  private static var lookSize: Int { 4_096 }

  /// Looks for keys until each of them has a result, and ends the flights that have an answer.
  private func look(for items: [Item], _ round: inout Round) async {
    var looking = items
    while !looking.isEmpty {
      let start = cache.time.now()
      for index in looking.indices {
        looking[index].watch.begin()
        looking[index].lookStart = start
      }
      let findings = await look(
        for: Dictionary(uniqueKeysWithValues: looking.map { ($0.name, $0.wish) })
      )
      var again: [Item] = []
      for var item in looking {
        guard let finding = findings[item.name] else {
          round.alone.append(item)
          continue
        }
        switch step(finding, for: item) {
        case .answers(let outcome):
          // The entry can be from before a change, and a request that has joined since from after it.
          if item.watch.settle() {
            guard item.rest == 0 else {
              item.rest -= 1
              again.append(item)
              continue
            }
            detach(item.flight)
          }
          finish(item.flight, with: outcome)
        case .looksAgain(let version):
          item.rest -= 1
          item.wish = newWish(of: item.flight)
          item.wish.newerThan = version
          if item.rest > 0 { again.append(item) } else { round.alone.append(item) }
        case .fetches(let lease):
          round.granted.append(Granted(flight: item.flight, lease: lease))
        case .waits(let version, let limit):
          item.wish.awaited = version
          item.waitsUntil = shared.trust.time.now()
            .addingSaturating(Nanoseconds(saturating: limit))
          round.waiting.append(item)
        case .fails(let failure):
          round.failed.append((item, failure))
        case .isAlone:
          round.alone.append(item)
        }
      }
      looking = again
    }
  }

  /// Looks once without taking leases.
  ///
  /// - Returns: The entries that are answers, and their flights.
  func answersWithoutLease(for items: [Item]) async -> [(item: Item, outcome: Outcome)] {
    var wishes: [String: SharedCache.Wish] = [:]
    let start = cache.time.now()
    for item in items {
      item.watch.begin()
      wishes[item.name] = item.wish
      wishes[item.name]?.takesLease = false
    }
    let findings = await look(for: wishes)
    return items.compactMap { item in
      var item = item
      item.lookStart = start
      guard case .entry? = findings[item.name], let finding = findings[item.name],
        case .answers(let outcome) = step(finding, for: item)
      else { return nil }
      return (item, outcome)
    }
  }

  /// Waits until keys have changed, or the leases that flights wait for have ended.
  ///
  /// - Parameter waiting: The flights that wait, without the returned ones afterwards.
  /// - Returns: The flights that have to look again; none if none waits, or if the task is cancelled.
  private func changed(among waiting: inout [Item]) async -> [Item] {
    while !waiting.isEmpty, !scope.isCancelled {
      let now = shared.trust.time.now()
      var changed: [Item] = []
      var rest: [Item] = []
      for item in waiting {
        if item.watch.isOver || item.waitsUntil <= now {
          if item.watch.hasChanged { item.flight.note(readCopy: nil) }
          changed.append(item)
        } else {
          rest.append(item)
        }
      }
      waiting = rest
      if !changed.isEmpty { return changed }
      let limit = (rest.map(\.waitsUntil).min() ?? now).subtractingSaturating(now)
      // Leases end by the clock of the engine, whatever the clock of the cache.
      await SharedWatch.wait(
        for: rest.map(\.watch),
        atMost: .nanoseconds(limit),
        on: shared.trust.clock
      )
    }
    return []
  }

  /// Returns the wish of the first look: a value that is renewed has to be replaced by a newer one.
  private func firstWish(of flight: Flight, _ name: String) -> SharedCache.Wish {
    var wish = newWish(of: flight)
    guard let previous = flight.plan.previous, previous.deadline != .min else { return wish }
    if !flight.plan.takesStoredCopy || cache.time.now() >= previous.deadline {
      wish.newerThan = shared.version(of: name)
    }
    return wish
  }

  func newWish(of flight: Flight) -> SharedCache.Wish {
    var wish = SharedCache.Wish()
    wish.tags = cache.tagging?(cache.key(of: flight)) ?? []
    return wish
  }

  /// Looks in the shared tier.
  ///
  /// - Returns: The findings, without the keys for which the lookup has failed.
  private func look(
    for wishes: [String: SharedCache.Wish]
  ) async -> [String: SharedCache.Finding<Value>] {
    guard wishes.count > Self.lookSize else { return await lookOnce(for: wishes) }
    var findings: [String: SharedCache.Finding<Value>] = [:]
    findings.reserveCapacity(wishes.count)
    var part: [String: SharedCache.Wish] = [:]
    var rest = wishes.count
    for (name, wish) in wishes {
      part[name] = wish
      rest -= 1
      guard part.count == Self.lookSize || rest == 0 else { continue }
      findings.merge(await lookOnce(for: part)) { first, _ in first }
      part.removeAll(keepingCapacity: true)
    }
    return findings
  }

  private func lookOnce(
    for wishes: [String: SharedCache.Wish]
  ) async -> [String: SharedCache.Finding<Value>] {
    guard storage.calls.allowsReading() else { return [:] }
    do {
      return try await WaitScope.local.withValue(scope) { [shared, storage] in
        try await storage.calls.run(.read) {
          let findings = try await shared.cacher.look(for: wishes)
          guard Task.isCancelled else { return findings }
          // The caller no longer waits, and would keep the leases.
          let leases = findings.values.compactMap { finding in
            if case .granted(let lease, _) = finding { lease } else { nil }
          }
          await shared.cacher.release(leases, because: nil)
          shared.noteOwnChanges(ofLeases: leases.lazy.map(\.key))
          throw CancellationError()
        }
      }
    } catch {
      if !scope.isCancelled {
        cache.reportCacherFailures(cache.failures(in: error, of: Array(wishes.keys)))
      }
      return [:]
    }
  }
}

// MARK: - Findings

extension SharedFetching {
  /// The continuation of a flight after a look.
  private enum Step {
    case answers(Outcome)
    case looksAgain(newerThan: SharedCache.Version)
    case waits(for: SharedCache.Version, atMost: Duration)
    case fetches(SharedCache.Lease)
    case fails(SharedCache.Failure)
    /// The cacher has broken its contract.
    case isAlone
  }

  private func step(_ finding: SharedCache.Finding<Value>, for item: Item) -> Step {
    switch finding {
    case .entry(let entry, let age, let version):
      if let old = item.wish.newerThan, version <= old { return .isAlone }
      return step(entry, age: age, version, for: item)
    case .granted(let lease, let previous):
      let copy = previous.flatMap { fallback($0, for: item) }
      item.flight.plan.previous = copy
      take(copy, for: item.flight)
      return .fetches(lease)
    case .busy(let version, let previous, let limit):
      take(previous.flatMap { fallback($0, for: item) }, for: item.flight)
      return .waits(for: version, atMost: limit)
    case .failedElsewhere(let failure):
      return .fails(failure)
    case .missing:
      return .isAlone
    }
  }

  private func step(
    _ entry: CacheEntry<Value>,
    age: Duration,
    _ version: SharedCache.Version,
    for item: Item
  ) -> Step {
    let (name, flight) = (item.name, item.flight)
    if let known = shared.version(of: name), version < known {
      // The engine was restarted with older data: none of it is given to callers that had the newer value.
      goAhead(name)
      return .looksAgain(newerThan: known)
    }
    let copy = cache.restored(entry, age: age)
    let earliest = earliestStore(of: copy, for: item)
    let isBehind = shared.withDebts { debts in
      let isBehind = item.wish.newerThan == nil && debts.isBehind(name, storedAt: earliest)
      if !isBehind { debts.catchUp(name) }
      return isBehind
    }
    let verdict = cache.judge(entry, of: cache.key(of: flight), hash: flight.hash, name: name)
    guard !isBehind, verdict == .usable else { return .looksAgain(newerThan: version) }
    // The result of a fetch that was waited for is the answer, however short its time is.
    let isAwaited = item.wish.awaited.map { version >= $0 } ?? false
    guard isAwaited || isAnswer(copy, for: flight) else {
      flight.attempt.copyStart = storage.fetchStart(since: version.token)
      flight.note(readCopy: copy)
      return .looksAgain(newerThan: version)
    }
    copy.kind = .restored
    flight.attempt.copyStart = storage.fetchStart(since: version.token)
    shared.note(version, of: name)
    return .answers(copy)
  }

  /// Returns whether an entry answers a flight, and marks the entry if it is stale.
  private func isAnswer(_ copy: Outcome, for flight: Flight) -> Bool {
    // A flight that renews a value needs a newer one. A value that has to be looked up is none.
    cache.isCurrent(copy, allowingStale: flight.plan.previous?.deadline ?? .min == .min)
  }

  /// Records that callers have values of a key that are newer than those of the tier.
  func goAhead(_ name: String, of time: Nanoseconds = .max) {
    let now = cache.time.now()
    shared.withDebts { $0.goAhead(name, at: now, of: time) }
  }

  /// Returns a copy of an entry that serves as a fallback only; `nil` if callers were given a newer value.
  private func fallback(_ entry: CacheEntry<Value>, for item: Item) -> ValueOutcome<Value>? {
    let copy = cache.restored(entry, age: cache.age(of: entry))
    copy.isOutdated = true
    item.flight.attempt.copyStart = storage.fetchStart(since: entry.unchangedSince ?? 0)
    item.flight.attempt.copyStart.isContested = true
    return isBehind(copy, for: item) ? nil : copy
  }

  /// Returns whether an entry can be older than a value that callers were given.
  private func isBehind(_ copy: ValueOutcome<Value>, for item: Item) -> Bool {
    let earliest = earliestStore(of: copy, for: item)
    return shared.withDebts { $0.isBehind(item.name, storedAt: earliest) }
  }

  /// Returns the earliest time at which an entry can have been stored: it had its age at some time during the look.
  private func earliestStore(of copy: ValueOutcome<Value>, for item: Item) -> Nanoseconds {
    copy.storedAt.subtractingSaturating(cache.time.now().subtractingSaturating(item.lookStart))
  }

  /// Makes the entry of the tier the fallback of a flight: the value in memory is none unless the tier confirms it.
  private func take(_ copy: ValueOutcome<Value>?, for flight: Flight) {
    flight.note(readCopy: copy)
    cache.dropUnconfirmed(flight, isRemoved: copy == nil)
  }

  /// Ends the flights whose fetches have failed in another process.
  private func end(_ failed: [(item: Item, failure: SharedCache.Failure)]) async {
    guard !failed.isEmpty else { return }
    var looking = failed.map(\.item)
    for rest in (0..<Self.lookLimit).reversed() where !looking.isEmpty {
      await lookForFallbacks(of: looking)
      // A fallback can be from before a change.
      looking.removeAll { !$0.watch.settle() }
      if rest == 0 { for item in looking { detach(item.flight) } }
    }
    await fail(
      failed.map(\.item.flight),
      with: failed.map { Outcome(.failure, error: $0.failure) }
    )
  }

  /// Looks for the entries that answer flights whose fetches have failed in another process: there are none for removed
  /// keys.
  func lookForFallbacks(of items: [Item]) async {
    var wishes: [String: SharedCache.Wish] = [:]
    let start = cache.time.now()
    for item in items {
      var wish = newWish(of: item.flight)
      wish.takesLease = false
      wishes[item.name] = wish
      item.watch.begin()
    }
    let findings = await look(for: wishes)
    for var item in items {
      item.lookStart = start
      let copy: ValueOutcome<Value>?
      switch findings[item.name] {
      case .entry(let entry, let age, let version):
        copy = confirmed(entry, age: age, version, for: item)
      case .missing(let previous), .busy(_, let previous, _), .granted(_, let previous):
        copy = previous.flatMap { fallback($0, for: item) }
      case .failedElsewhere: copy = nil
      // Without an answer, the entry is the one that the engine had during the wait.
      case nil: continue
      }
      take(copy, for: item.flight)
    }
  }

  /// Returns a copy of a valid entry; `nil` if callers were given a newer value.
  private func confirmed(
    _ entry: CacheEntry<Value>,
    age: Duration,
    _ version: SharedCache.Version,
    for item: Item
  ) -> ValueOutcome<Value>? {
    let (name, flight) = (item.name, item.flight)
    if let known = shared.version(of: name), version < known { return nil }
    let verdict = cache.judge(entry, of: cache.key(of: flight), hash: flight.hash, name: name)
    guard verdict != .cleared else { return nil }
    let copy = cache.restored(entry, age: age)
    copy.isOutdated = verdict == .outdated
    flight.attempt.copyStart = storage.fetchStart(since: version.token)
    return isBehind(copy, for: item) ? nil : copy
  }
}
