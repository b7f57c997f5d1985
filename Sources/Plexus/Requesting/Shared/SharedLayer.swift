internal import Synchronization

/// The connection of a cache with its ``SharedCacher``: its looks in progress, and its pending changes of the engine.
@usableFromInline
final class SharedLayer<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias HashedKey = (key: Key, hash: UInt64)

  private struct State: Sendable {
    /// The keys that were looked up or stored, by their names in the cacher, and the versions of the values in memory.
    var keys: [String: (key: HashedKey, version: SharedCache.Version?)] = [:]
    var sweepLimit = 1024
    var watches: [String: [SharedWatch]] = [:]
    var watchesOfFlights: [ObjectIdentifier: SharedWatch] = [:]
    var debts = SharedDebtsState()
    /// Whether the cacher has announced that the engine cannot be reached.
    var isInterrupted = false
  }

  let cacher: any SharedCacher<Value>
  let trust: NearTrust
  /// The identity of the cache among all caches of all processes.
  let id = UInt64.random(in: .min ... .max)
  private let state = Locked(State())
  @usableFromInline let seenTrust: SeenTrust
  private let seenSilence = Atomic<Nanoseconds>(.min)

  init(_ cacher: any SharedCacher<Value>) {
    self.cacher = cacher
    trust = cacher.trust
    seenTrust = SeenTrust(trust)
  }

  /// The number of ends of the trust that the copies in memory have been marked for.
  var seenGeneration: UInt64 { seenTrust.seen.load(ordering: .acquiring) }

  func note(seen generation: UInt64) {
    seenTrust.seen.max(generation, ordering: .acquiringAndReleasing)
  }

  /// The time since which the engine is not heard, unless flights from before it are detached.
  var newSilence: Nanoseconds? {
    trust.silentSince.flatMap { $0 == seenSilence.load(ordering: .acquiring) ? nil : $0 }
  }

  func note(silence time: Nanoseconds) {
    seenSilence.store(time, ordering: .releasing)
  }

  // MARK: - Looks

  /// Records that a flight is about to look for its key.
  ///
  /// - Returns: Its watch, and whether there are so many keys that keys without a value should be removed.
  func watch(_ flight: Flight, name: String, key: Key) -> (SharedWatch, isCrowded: Bool) {
    let watch = SharedWatch(name, of: flight, generation: trust.generation)
    let (known, isCrowded) = state.withLock { state -> (SharedWatch?, Bool) in
      if let known = state.watchesOfFlights[ObjectIdentifier(flight)] { return (known, false) }
      if state.keys[name] == nil { state.keys[name] = ((key, flight.hash), nil) }
      state.watches[name, default: []].append(watch)
      state.watchesOfFlights[ObjectIdentifier(flight)] = watch
      return (nil, state.keys.count > state.sweepLimit)
    }
    return (known ?? watch, isCrowded)
  }

  /// Records keys whose values are about to be stored.
  ///
  /// - Returns: Whether there are so many keys that keys without a value should be removed.
  func note(stored keys: [(name: String, key: HashedKey)]) -> Bool {
    state.withLock { state in
      for (name, key) in keys where state.keys[name] == nil { state.keys[name] = (key, nil) }
      return state.keys.count > state.sweepLimit
    }
  }

  /// Returns whether a key was looked up or stored: its changes are announced, unless one was since then.
  func knows(_ name: String) -> Bool {
    state.withLock { $0.keys[name] != nil }
  }

  /// Returns the watch of a flight.
  func watch(of flight: Flight) -> SharedWatch? {
    state.withLock { $0.watchesOfFlights[ObjectIdentifier(flight)] }
  }

  /// Returns the version of the value that memory has from the engine, if any.
  func version(of name: String) -> SharedCache.Version? {
    state.withLock { $0.keys[name]?.version }
  }

  /// Records the version of a value that the engine has; `nil` for a value that it does not have.
  func note(_ version: SharedCache.Version?, of name: String) {
    state.withLock { $0.keys[name]?.version = version }
  }

  /// Ends the watch of a flight.
  ///
  /// - Returns: Whether its value has to be looked up again before it is used.
  func end(_ flight: Flight) -> Bool {
    let watch = state.withLock { state -> SharedWatch? in
      guard let watch = state.watchesOfFlights.removeValue(forKey: ObjectIdentifier(flight)) else {
        return nil
      }
      state.watches[watch.name]?.removeAll { $0 === watch }
      if state.watches[watch.name]?.isEmpty == true { state.watches[watch.name] = nil }
      return watch
    }
    guard let watch else { return false }
    return watch.entryHasChanged || watch.generation != trust.generation
  }

  /// Informs the watches of changed entries.
  ///
  /// - Parameters:
  ///   - names: The names of the keys.
  ///   - isLease: Whether only their leases have changed.
  /// - Returns: The keys that were looked up or stored, and the flights that no longer look.
  func note(
    changesOf names: Set<String>,
    ofLeases isLease: Bool = false
  ) -> (keys: [HashedKey], settled: Set<ObjectIdentifier>) {
    let (keys, watches) = state.withLock { state in
      (names.compactMap { state.keys[$0]?.key }, names.flatMap { state.watches[$0] ?? [] })
    }
    resume(watches.map { $0.noteChange(ofLease: isLease) })
    return (keys, Set(watches.filter(\.isSettled).map(\.flight)))
  }

  /// Informs all watches that any entry can have changed.
  func noteGap() {
    let watches = state.withLock { state in
      state.isInterrupted = false
      return state.watches.values.flatMap(\.self)
    }
    resume(watches.map { $0.noteChange() })
  }

  /// Informs all watches that nothing is announced until the next gap.
  func noteInterruption() {
    let watches = state.withLock { state in
      state.isInterrupted = true
      return state.watches.values.flatMap(\.self)
    }
    resume(watches.map { $0.noteInterruption() })
  }

  /// Resumes flights, all of which are marked: a flight of several keys looks for all of them together.
  private func resume(_ waiting: [OneShot<Void>?]) {
    for flight in waiting { flight?.set(()) }
  }

  /// Returns whether a value that was fetched without the engine is kept.
  func keepsValue() -> Bool {
    trust.keepsValue(isInterrupted: state.withLock { $0.isInterrupted })
  }

  /// Informs other flights of this process that flights have filled or released the leases of their keys.
  func noteOwnChanges(_ flights: [Flight]) {
    let watches = state.withLock { state in
      flights.flatMap { flight -> [SharedWatch] in
        guard let own = state.watchesOfFlights[ObjectIdentifier(flight)] else { return [] }
        return (state.watches[own.name] ?? []).filter { $0 !== own }
      }
    }
    for watch in watches { watch.note() }
  }

  /// Informs the flights of this process that it can have ended leases, which is not announced to it.
  ///
  /// - Parameter names: The names of their keys.
  func noteOwnChanges(ofLeases names: some Sequence<String>) {
    let watches = state.withLock { state in names.flatMap { state.watches[$0] ?? [] } }
    resume(watches.map { $0.noteChange(ofLease: true) })
  }

  /// Informs the flights of this process that it can have ended the lease of any key, which is not announced to it.
  func noteOwnRemoval() {
    let watches = state.withLock { $0.watches.values.flatMap(\.self) }
    resume(watches.map { $0.noteChange(ofLease: true) })
  }

  /// The keys that were looked up or stored.
  var knownKeys: [(name: String, key: HashedKey)] {
    state.withLock { state in state.keys.map { ($0.key, $0.value.key) } }
  }

  /// The keys that are being looked up, or whose flights wait for other processes.
  var watchedKeys: [(name: String, key: Key)] {
    state.withLock { state in
      state.watches.keys.compactMap { name in state.keys[name].map { (name, $0.key.key) } }
    }
  }

  /// Removes keys, except keys that are being looked up.
  func forget(_ names: [String]) {
    state.release { state in
      let removed = names.map {
        state.watches[$0] == nil ? state.keys.removeValue(forKey: $0) : nil
      }
      state.sweepLimit = max(1024, 2 * state.keys.count)
      return removed
    }
  }

  // MARK: - Debts

  /// Reads or changes the debts.
  func withDebts<Result: Sendable>(
    _ body: (inout SharedDebtsState) -> sending Result
  ) -> Result {
    state.withLock { body(&$0.debts) }
  }

  /// Removes entries for every process.
  ///
  /// - Throws: An error of the cacher.
  func removeEverywhere(_ removal: SharedCache.Removal) async throws {
    try await cacher.remove(removal, reach: .everywhere)
    noteOwnRemoval()
  }

  /// Removes the entries with the tags that have to be removed.
  ///
  /// - Parameter isDone: Returns whether a removal that has failed is not repeated.
  /// - Throws: An error of the cacher, in which case the other removals stay pending.
  func payTagRemovals(unless isDone: (any Error) -> Bool) async throws {
    let owed = withDebts { $0.tagRemovals.owed }
    guard !owed.isEmpty else { return }
    do {
      try await cacher.remove(.tags(Set(owed.keys)), reach: .shared)
      withDebts { $0.tagRemovals.pay(owed) }
      noteOwnRemoval()
    } catch {
      if isDone(error) { withDebts { $0.tagRemovals.pay(owed) } }
      throw error
    }
  }

  /// Outdates the entries that have to be outdated.
  ///
  /// - Throws: An error of the cacher, in which case the changes stay pending.
  func payOutdates() async throws {
    let owed = withDebts { $0.outdates.owed }
    guard !owed.isEmpty else { return }
    do {
      try await cacher.outdate(Set(owed.keys))
      pay(owed)
    } catch let error as CacherError {
      pay(owed.filter { error.failures[$0.key] == nil })
      throw error
    }
  }

  /// Notes outdates that were paid: the leases for which flights of this process wait have ended.
  private func pay(_ outdates: [String: UInt64]) {
    withDebts { $0.outdates.pay(outdates) }
    noteOwnChanges(ofLeases: outdates.keys)
  }
}
