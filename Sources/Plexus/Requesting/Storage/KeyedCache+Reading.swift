// The work of flights with a cacher: their stored copies, and a fetch for the rest.

extension KeyedCache {
  /// Does the work of flights, and ends them.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - scope: The flight whose task does the work: that of a key, or of several.
  ///   - fetch: The fetch.
  @usableFromInline
  func fetchWithCacher(
    _ flights: [Flight],
    scope: Flight,
    by fetch: @escaping Fetch
  ) async {
    guard let storage else { return }
    if let shared {
      let fetching = SharedFetching(
        cache: self,
        shared: shared,
        storage: storage,
        scope: scope,
        fetch: fetch,
        unended: source.limit.map { _ in SharedFetching.Unended(flights.count) }
      )
      return await fetching.run(flights)
    }
    if flights.contains(where: \.plan.readsFirst) {
      await readAndFetch(flights, scope: scope, by: fetch)
    } else {
      await self.fetch(flights, in: scope as? BulkFlight, by: fetch)
    }
  }

  /// Reads the stored copies of flights, and fetches the rest.
  ///
  /// A flight with a fresh copy ends at once. The fetch begins when all copies are known; after a short while it
  /// begins without the copies that are still being read, which are then fetched together.
  private func readAndFetch(_ flights: [Flight], scope: Flight, by fetch: @escaping Fetch) async {
    let batch = scope as? BulkFlight
    let reading = flights.filter(\.plan.readsFirst)
    let departure = BulkDeparture(flights.filter { !$0.plan.readsFirst })
    let depart: @concurrent @Sendable (Bool) async -> Void = { [self] isLate in
      let (known, followers) = departure.takeKnown()
      var launched = followers
      var remaining: [Flight] = []
      for flight in flights where known.contains(ObjectIdentifier(flight)) {
        if flight.isNeeded {
          remaining.append(flight)
        } else {
          launched += cancel(flight, isBulk: batch != nil)
        }
      }
      launch(launched)
      let part = isLate ? batch.map { BulkFlight(remaining, partOf: $0) } : batch
      if !remaining.isEmpty { await self.fetch(remaining, in: part, by: fetch) }
    }
    let early = OneShot<Task<Void, Never>>()
    // A flight of one key has nothing to begin before its copy is known.
    let timer =
      flights.count == 1
      ? nil
      : clock.timer(BulkDeparture.patience) {
        if departure.beginEarly() { early.set(scope.start { await depart(false) }) }
      }
    await readCopies(for: reading) { flight, copy in
      if let copy, flight.isNeeded, isAnswer(copy, for: flight), departsForAnswer(flight) {
        return departure.launch(finish(flight, with: copy, isBulk: batch != nil))
      }
      if let copy {
        flight.plan.previous = copy
        flight.note(readCopy: copy)
      }
      departure.add(flight)
    }
    timer?.cancel()
    let hasBegun = departure.hasBegunEarly()
    await depart(hasBegun)
    if hasBegun { await early.value().value }
  }

  /// Returns whether a stored copy answers a flight, and marks the copy if it does.
  private func isAnswer(_ copy: Outcome, for flight: Flight) -> Bool {
    guard flight.plan.takesStoredCopy, !copy.isOutdated, isCurrent(copy) else { return false }
    copy.kind = .restored
    return true
  }

  /// Marks a flight as departing, because its stored copy is the answer.
  ///
  /// - Returns: Whether it is: not if the flight serves a refresh that has come while it waited for its place.
  func departsForAnswer(_ flight: Flight) -> Bool {
    guard source.limit != nil else { return true }
    return shards.withLock(hash: flight.hash) { shard in
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight
      else { return true }
      if shard[index].state.servesRefresh { return false }
      shard[index].state.depart()
      return true
    }
  }

  /// Returns whether a copy is fresh, or stale and allowed to be served while it is renewed, and marks it then.
  func isCurrent(_ copy: Outcome, allowingStale allowsStale: Bool = true) -> Bool {
    let now = time.now()
    guard now >= copy.deadline else { return true }
    guard allowsStale, copy.allowsRenewal(within: staleTime, at: now) else { return false }
    copy.isStale = true
    return true
  }

  // MARK: - Reading

  /// Reads the stored copies for flights, with one call if the cacher supports it, otherwise with a limited number of
  /// concurrent calls.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - onRead: Called with each flight and its copy, one after another, as soon as the copy has been read.
  func readCopies(for flights: [Flight], _ onRead: (Flight, Outcome?) -> Void) async {
    guard let storage else { return }
    let start = storage.fetchStart
    for flight in flights {
      flight.attempt.copyStart = start
      flight.attempt.readOrder = start.order
    }
    if flights.count == 1 {
      return onRead(flights[0], await readCopy(for: flights[0], from: storage))
    }
    if let reader = storage.batchReader {
      for (flight, copy) in await readCopies(for: flights, by: reader, from: storage) {
        onRead(flight, copy)
      }
      return
    }
    await withTaskGroup(of: (Flight, Outcome?).self) { group in
      var rest = flights[...]
      var running = 0
      while true {
        // The number of concurrent reads is limited.
        while running < 16, let flight = rest.popFirst() {
          running += 1
          group.addTask { (flight, await self.readCopy(for: flight, from: storage)) }
        }
        guard let (flight, copy) = await group.next() else { return }
        running -= 1
        onRead(flight, copy)
      }
    }
  }

  /// Reads the stored copy for a flight.
  ///
  /// - Returns: The copy; `nil` if there is no usable one, or if the cacher fails or takes too long.
  private func readCopy(for flight: Flight, from storage: StoredLayer<Key, Value>) async -> Outcome?
  {
    let (name, known) = lookUp(flight, in: storage)
    switch known {
    case .known(let copy):
      return copy
    case .elsewhere(let outdatedUntil):
      let entries = await read([name], for: flight, from: storage) {
        try await storage.cacher.entry(forKey: name).map { [name: $0] } ?? [:]
      }
      return entries[name].flatMap { restored($0, for: flight, name, outdatedUntil: outdatedUntil) }
    }
  }

  private func readCopies(
    for flights: [Flight],
    by reader: any BatchReadingCacher<Value>,
    from storage: StoredLayer<Key, Value>
  ) async -> [(Flight, Outcome?)] {
    var copies: [(Flight, Outcome?)] = []
    var wanted: [String: [(flight: Flight, outdatedUntil: Duration?)]] = [:]
    for flight in flights {
      let (name, known) = lookUp(flight, in: storage)
      switch known {
      case .known(let copy): copies.append((flight, copy))
      case .elsewhere(let outdatedUntil): wanted[name, default: []].append((flight, outdatedUntil))
      }
    }
    guard !wanted.isEmpty else { return copies }
    let names = Set(wanted.keys)
    let entries = await read(Array(names), for: flights[0], from: storage) {
      try await reader.entries(forKeys: names)
    }
    for (name, flights) in wanted {
      for (flight, outdatedUntil) in flights {
        let copy = entries[name].flatMap { entry in
          restored(entry, for: flight, name, outdatedUntil: outdatedUntil)
        }
        copies.append((flight, copy))
      }
    }
    return copies
  }

  /// The copy of a flight before a call of the cacher.
  private enum Copy {
    /// The copy, if there is one.
    case known(Outcome?)
    /// The copy can be in the cacher; it is outdated if it was stored at this time or before.
    case elsewhere(outdatedUntil: Duration?)
  }

  private func lookUp(_ flight: Flight, in storage: StoredLayer<Key, Value>) -> (String, Copy) {
    let name = storage.name(of: key(of: flight))
    let found = shards.withLock(hash: flight.hash) { $0.extras?.pendingWrites?.lookUp(name) }
    switch found {
    case .departing(let copy, let isOutdated, let start):
      flight.attempt.copyStart = start
      if isOutdated { flight.attempt.copyStart.isOutdated = true }
      return (name, .known(restored(copy, isOutdated: isOutdated)))
    case .removed, nil: return (name, .known(nil))
    case .elsewhere(let outdatedUntil): return (name, .elsewhere(outdatedUntil: outdatedUntil))
    }
  }

  /// Calls the cacher, unless it is not read at present because it has taken too long.
  ///
  /// - Returns: The entries; none if the cacher fails.
  private func read(
    _ names: [String],
    for flight: Flight,
    from storage: StoredLayer<Key, Value>,
    _ call: @escaping @concurrent @Sendable () async throws -> [String: CacheEntry<Value>]
  ) async -> [String: CacheEntry<Value>] {
    guard storage.calls.allowsReading() else { return [:] }
    do {
      // A cacher that requests the key that it reads is detected like a fetch that does.
      return try await WaitScope.local.withValue(flight.predecessor ?? flight) {
        try await storage.calls.run(.read, call)
      }
    } catch {
      if !(error is CancellationError && Task.isCancelled) {
        reportCacherFailures(failures(in: error, of: names))
      }
      return [:]
    }
  }

  /// Returns a copy that has not been written yet, for one flight.
  private func restored(_ copy: ValueOutcome<Value>, isOutdated: Bool) -> Outcome {
    let restored = ValueOutcome(copy.value)
    restored.storedAt = copy.storedAt
    restored.deadline = copy.deadline
    restored.validator = copy.validator
    restored.terms = copy.terms
    restored.isOutdated = isOutdated
    return restored
  }

  /// Returns a stored copy for a flight, unless it was cleared by one of its tags.
  private func restored(
    _ entry: CacheEntry<Value>,
    for flight: Flight,
    _ name: String,
    outdatedUntil: Duration?
  ) -> Outcome? {
    let verdict = judge(entry, of: key(of: flight), hash: flight.hash, name: name)
    guard verdict != .cleared else { return nil }
    let copy = restored(entry, outdatedUntil: outdatedUntil)
    if verdict == .outdated { copy.isOutdated = true }
    if copy.isOutdated { flight.attempt.copyStart.isOutdated = true }
    return copy
  }

  private func restored(_ entry: CacheEntry<Value>, outdatedUntil: Duration?) -> Outcome {
    let elapsed = age(of: entry)
    let isFromTheFuture = elapsed < .zero
    let copy = restored(entry, age: elapsed)
    // A clock that was set back must not make values fresh indefinitely.
    if isFromTheFuture { copy.deadline = copy.storedAt }
    copy.isOutdated = outdatedUntil.map { entry.storedAt <= $0 || isFromTheFuture } ?? false
    return copy
  }

  /// Returns a copy of an entry that has some age.
  func restored(_ entry: CacheEntry<Value>, age: Duration) -> ValueOutcome<Value> {
    let copy = ValueOutcome(entry.value)
    copy.validator = entry.validator
    copy.terms = ValueTerms(entry.directives)
    // Ages are limited to 126 years, so that sums with them do not overflow.
    copy.storedAt = time.now().addingSaturating(-Nanoseconds(saturating: age.limited))
    copy.deadline = copy.storedAt.addingSaturating(max(lifetime(copy.terms).duration, 0))
    return copy
  }

  /// Returns the time since an entry was stored, by the wall clock; negative if the clock was set back.
  func age(of entry: CacheEntry<Value>) -> Duration {
    // The entry of a cacher can be damaged: extreme times must not overflow.
    wallClockTime() - max(entry.storedAt, .zero - .longest)
  }
}

extension CacheEngine {
  /// The flights of a fetch of several keys that have no stored copy for an answer, as they become known.
  fileprivate final class BulkDeparture: Sendable {
    /// The time that the fetch waits for stored copies.
    static var patience: Duration { .milliseconds(50) }

    private struct State: Sendable {
      var known: Set<ObjectIdentifier>
      /// The flights that follow those which stored copies have ended.
      var launched: [Flight] = []
      var hasBegunEarly = false
      var isOver = false
    }

    private let state: Locked<State>

    init(_ flights: [Flight]) {
      state = Locked(State(known: Set(flights.map { ObjectIdentifier($0) })))
    }

    func add(_ flight: Flight) {
      state.withLock { _ = $0.known.insert(ObjectIdentifier(flight)) }
    }

    func launch(_ flights: [Flight]) {
      if !flights.isEmpty { state.withLock { $0.launched += flights } }
    }

    func takeKnown() -> (flights: Set<ObjectIdentifier>, launched: [Flight]) {
      state.withLock { state in
        defer { (state.known, state.launched) = ([], []) }
        return (state.known, state.launched)
      }
    }

    /// Marks the fetch as begun without the copies that are still being read, unless there are none.
    func beginEarly() -> Bool {
      state.withLock { state in
        if !state.isOver { state.hasBegunEarly = true }
        return !state.isOver
      }
    }

    /// Returns whether the fetch has begun early, and prevents it from now on.
    func hasBegunEarly() -> Bool {
      state.withLock { state in
        state.isOver = true
        return state.hasBegunEarly
      }
    }
  }
}
