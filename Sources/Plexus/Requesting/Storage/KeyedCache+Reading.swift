extension KeyedCache {
  /// Reads the stored copy for a flight.
  ///
  /// - Returns: The copy; `nil` if there is no usable one, or if the cacher fails or takes too long.
  @usableFromInline
  @concurrent
  func readCopy(for flight: Flight, from storage: Storage<Key, Value>) async -> Outcome? {
    let name = storage.name(of: key(of: flight))
    switch lookUp(name, hash: flight.hash) {
    case .departing(let copy, let isOutdated):
      return restored(copy, isOutdated: isOutdated)
    case .removed, nil:
      return nil
    case .elsewhere(let outdatedUntil):
      guard storage.calls.allowsReading() else { return nil }
      do {
        // A cacher that requests the key that it reads is detected like a fetch that does.
        let scope = flight.predecessor ?? flight
        let entry = try await WaitScope.local.withValue(scope) {
          try await storage.calls.run(.read) { try await storage.cacher.entry(forKey: name) }
        }
        return entry.flatMap { restored($0, for: flight, name, outdatedUntil: outdatedUntil) }
      } catch {
        if !(error is CancellationError && Task.isCancelled) { noteCacherError([name: error]) }
        return nil
      }
    }
  }

  private func lookUp(_ name: String, hash: UInt64) -> PendingWrites<Key, Value>.Lookup? {
    shards.withLock(hash: hash) { $0.extras?.pendingWrites?.lookUp(name) }
  }

  /// Reads the stored copies for several flights, with one call if the cacher supports it, otherwise with a limited
  /// number of concurrent calls.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - onRead: Called with each flight and its copy, one after another, as soon as the copy has been read.
  func readCopies(
    for flights: [Flight],
    _ onRead: (Flight, Outcome?) -> Void
  ) async {
    guard let storage else {
      for flight in flights { onRead(flight, nil) }
      return
    }
    guard !flights.isEmpty else { return }
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

  private func readCopies(
    for flights: [Flight],
    by reader: any BatchReadingCacher<Value>,
    from storage: Storage<Key, Value>
  ) async -> [(Flight, Outcome?)] {
    var copies: [(Flight, Outcome?)] = []
    var wanted: [String: (flight: Flight, outdatedUntil: Duration?)] = [:]
    for flight in flights {
      let name = storage.name(of: key(of: flight))
      switch lookUp(name, hash: flight.hash) {
      case .departing(let copy, let isOutdated):
        copies.append((flight, restored(copy, isOutdated: isOutdated)))
      case .removed, nil:
        copies.append((flight, nil))
      case .elsewhere(let outdatedUntil):
        wanted[name] = (flight, outdatedUntil)
      }
    }
    guard !wanted.isEmpty else { return copies }
    var entries: [String: CacheEntry<Value>] = [:]
    if storage.calls.allowsReading(), let first = flights.first {
      let names = Set(wanted.keys)
      do {
        entries = try await WaitScope.local.withValue(first.predecessor ?? first) {
          try await storage.calls.run(.read) { try await reader.entries(forKeys: names) }
        }
      } catch {
        if !(error is CancellationError && Task.isCancelled) {
          noteCacherError(failures(in: error, of: Array(names)))
        }
      }
    }
    for (name, (flight, outdatedUntil)) in wanted {
      let copy = entries[name].flatMap { entry in
        restored(entry, for: flight, name, outdatedUntil: outdatedUntil)
      }
      copies.append((flight, copy))
    }
    return copies
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
