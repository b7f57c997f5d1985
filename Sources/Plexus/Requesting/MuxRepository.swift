/// A repository of caches that are cleared together at sign-out and written together before the process ends.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }.register()
/// let photos = MultiplexerMap<String, [UInt8]> { _ in [] }.register()
///
/// try await MuxRepository.shared.clearAll()
/// ```
///
/// The repository holds its members weakly. The next ``clearAll()`` also removes the stored copies of members that were
/// released; until then, the repository keeps their cachers.
///
/// ## Topics
///
/// ### Getting a repository
/// - ``shared``
/// - ``init()``
///
/// ### Registering members
/// - ``register(_:)-(Multiplexer<Value>)``
/// - ``register(_:)-(MultiplexerMap<Key,Value>)``
/// - ``register(_:)-(RepositoryMember)``
/// - ``unregister(_:)-(Multiplexer<Value>)``
/// - ``unregister(_:)-(MultiplexerMap<Key,Value>)``
/// - ``unregister(_:)-(RepositoryMember)``
/// - ``count``
///
/// ### Clearing and writing
/// - ``clearAll()``
/// - ``clearAll(_:)``
/// - ``clear(tags:)``
/// - ``clearMemory()``
/// - ``flushAll()``
///
/// ### Monitoring
/// - ``statistics``
public final actor MuxRepository {
  /// The repository of the process.
  public static let shared = MuxRepository()

  /// A weakly held member.
  ///
  /// The entry identifies the member even after its release.
  private final class Entry: Sendable {
    weak let member: (any RepositoryMember)?
    /// The stored copies of the member, if any, and its name for errors.
    let copies: (any StoredCopies)?
    let name: String

    init(_ member: any RepositoryMember) {
      self.member = member
      copies = (member as? any CacheMember)?.copies
      name = member.name
    }
  }

  private struct Registry: Sendable {
    var entries: [ObjectIdentifier: Entry] = [:]
    /// The entries of released members, whose stored copies may still exist.
    var released: [CacherID: Entry] = [:]
    /// The number of entries at which released members are removed.
    var limit = 64
  }

  private nonisolated let registry = Locked(Registry())

  /// Creates a repository without members.
  public init() {}

  /// Adds a multiplexer, unless it is a member.
  ///
  /// - Parameter multiplexer: The multiplexer, which is not kept alive.
  public nonisolated func register<Value>(_ multiplexer: Multiplexer<Value>) {
    multiplexer.register(in: self)
  }

  /// Adds a map, unless it is a member.
  ///
  /// - Parameter map: The map, which is not kept alive.
  public nonisolated func register<Key, Value>(_ map: MultiplexerMap<Key, Value>) {
    map.register(in: self)
  }

  /// Adds a member; adding it again changes nothing.
  ///
  /// - Parameter member: The member, which is not kept alive.
  public nonisolated func register(_ member: any RepositoryMember) {
    // The last write of a saved state outlives it.
    let member = (member as? SavedState)?.core ?? member
    let entry = Entry(member)
    let (replaced, isCrowded) = registry.withLock { registry in
      let replaced = registry.entries.updateValue(entry, forKey: ObjectIdentifier(member))
      return (replaced, registry.entries.count > registry.limit)
    }
    // An earlier member can have had the same address.
    if let replaced, replaced.member == nil { retain([replaced]) }
    if isCrowded { _ = members() }
  }

  /// Removes a multiplexer.
  ///
  /// - Parameter multiplexer: The multiplexer. If it is not a member, the call has no effect.
  public nonisolated func unregister<Value>(_ multiplexer: Multiplexer<Value>) {
    unregister(multiplexer.cache)
  }

  /// Removes a map.
  ///
  /// - Parameter map: The map. If it is not a member, the call has no effect.
  public nonisolated func unregister<Key, Value>(_ map: MultiplexerMap<Key, Value>) {
    unregister(map.cache)
  }

  /// Removes a member.
  ///
  /// - Parameter member: The member. If it was not added, the call has no effect.
  public nonisolated func unregister(_ member: any RepositoryMember) {
    let member = (member as? SavedState)?.core ?? member
    registry.release {
      $0.entries.removeValue(forKey: ObjectIdentifier(member))
    }
  }

  /// The number of members that are alive.
  public nonisolated var count: Int {
    members().count
  }

  /// The statistics of the members that are alive, by id.
  ///
  /// Statistics of members with equal ids are added. A member without an id is named after its type.
  public nonisolated var statistics: [String: CacheStatistics] {
    var sums: [String: CacheStatistics] = [:]
    for member in members() {
      guard let statistics = member.statistics else { continue }
      sums[member.name, default: CacheStatistics()] =
        sums[member.name, default: CacheStatistics()] + statistics
    }
    return sums
  }

  /// Removes the values of all members from memory and storage.
  ///
  /// First, all members are detached from their fetches, one after another and without suspending. The results of
  /// fetches in flight are not stored, nor those of fetches that start before the last member is detached, because they
  /// could have read its values. Then the stored copies are removed, including those of members that were released
  /// before. A request after this call never returns a value whose fetch started before it. Callers of such a fetch get
  /// its result.
  ///
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are cleared nevertheless.
  public nonisolated func clearAll() async throws {
    try await clear(members(), released: registry.withLock { $0.released })
  }

  /// Removes the values of all members from memory and storage, with a guarantee for other processes.
  ///
  /// It does what ``clearAll()`` does. With ``ClearReach/here`` the entries of shared cachers stay, and with
  /// ``ClearReach/everywhere`` it also waits until no process uses its copies of them.
  ///
  /// - Parameter reach: The processes for which the removal holds when the call returns.
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are cleared
  ///   nevertheless.
  public nonisolated func clearAll(_ reach: ClearReach) async throws {
    switch reach {
    case .shared:
      try await clearAll()
    case .here:
      let members = members()
      let shared = members.compactMap { $0 as? any CacheMember }.filter(\.isShared)
      for member in shared { member.forgetHere() }
      let ids = Set(shared.map { ObjectIdentifier($0) })
      let released = registry.withLock { $0.released.filter { $0.value.copies?.isShared != true } }
      try await clear(members.filter { !ids.contains(ObjectIdentifier($0)) }, released: released)
    case .everywhere:
      let members = members()
      var failures: [MuxRepositoryError.Failure] = []
      do {
        try await clear(members, released: registry.withLock { $0.released })
      } catch {
        failures = error.failures
      }
      failures += await Self.ask(members) {
        try await ($0 as? any CacheMember)?.removeEverywhere()
      }
      guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
    }
  }

  private nonisolated func clear(
    _ members: [any RepositoryMember],
    released: [CacherID: Entry]
  ) async throws(MuxRepositoryError) {
    let keepers = members.compactMap { $0 as? any CacheMember }
    // Members can share a cacher: until all are done, one may still write what another has removed.
    for keeper in keepers { keeper.withholdCopies() }
    defer { for keeper in keepers { keeper.releaseCopies() } }
    for member in members { member.pause() }
    for member in members { member.resume() }
    let living = Set(keepers.compactMap { $0.copies?.id })
    async let removals = Self.removeCopies(released.filter { !living.contains($0.key) })
    var failures = await Self.ask(members) { try await $0.removeStored() }
    let failedRemovals = await removals
    failures += failedRemovals.values
    registry.withLock { registry in
      for (id, entry) in released where failedRemovals[id] == nil {
        if registry.released[id] === entry { registry.released[id] = nil }
      }
    }
    withExtendedLifetime(released) {}
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
  }

  /// Removes the values of all members with at least one of the given tags from memory and storage.
  ///
  /// All members drop them before the first stored copy is removed. For the effect on a member, see
  /// ``MultiplexerMap/clear(tags:)``. Stored copies of released members are not removed; ``clearAll()`` removes them.
  ///
  /// - Parameter tags: The tags.
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are cleared nevertheless.
  public nonisolated func clear(tags: Set<CacheTag>) async throws {
    try await Self.clear(members(), tags: tags)
  }

  /// Removes the values of all members with at least one of the given tags, with a guarantee for other processes.
  ///
  /// It does what ``clear(tags:)`` does. With ``ClearReach/here`` the entries of shared cachers stay, and with
  /// ``ClearReach/everywhere`` it also waits until no process uses its copies of them. Before a process uses its other
  /// copies of the members again, it confirms them, too.
  ///
  /// A shared cacher removes every entry with one of the tags, even if no process has its key in memory.
  ///
  /// - Parameters:
  ///   - tags: The tags.
  ///   - reach: The processes for which the removal holds when the call returns.
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are cleared nevertheless.
  public nonisolated func clear(tags: Set<CacheTag>, _ reach: ClearReach) async throws {
    let members = members()
    switch reach {
    case .shared:
      try await Self.clear(members, tags: tags)
    case .here:
      var others: [any RepositoryMember] = []
      for member in members {
        if let shared = member as? any CacheMember, shared.isShared {
          shared.forgetHere(tags: tags)
        } else {
          others.append(member)
        }
      }
      try await Self.clear(others, tags: tags)
    case .everywhere:
      var failures: [MuxRepositoryError.Failure] = []
      do {
        try await Self.clear(members, tags: tags)
      } catch {
        failures = error.failures
      }
      failures += await Self.ask(members) {
        try await ($0 as? any CacheMember)?.removeEverywhere(tags: tags)
      }
      guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
    }
  }

  private nonisolated static func clear(
    _ members: [any RepositoryMember],
    tags: Set<CacheTag>
  ) async throws(MuxRepositoryError) {
    // A fetch that starts now can still read a value that a later member has not dropped: all of them drop again.
    for member in members { member.forget(tags: tags) }
    let failures = await ask(members) { try await $0.clear(tags: tags) }
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
  }

  /// Removes the stored copies of members that were released.
  private nonisolated static func removeCopies(
    _ entries: [CacherID: Entry]
  ) async -> [CacherID: MuxRepositoryError.Failure] {
    let tasks = entries.compactMapValues { entry in
      entry.copies.map { copies in Task.detached { try await copies.removeAll() } }
    }
    var failures: [CacherID: MuxRepositoryError.Failure] = [:]
    for (id, task) in tasks {
      guard case .failure(let error) = await task.result else { continue }
      failures[id] = MuxRepositoryError.Failure(id: entries[id]?.name ?? "", error: error)
    }
    return failures
  }

  /// Writes the unwritten changes of all members to their storage.
  ///
  /// Call it before the process ends or is suspended. A server calls it from the task that handles the termination
  /// signal:
  ///
  /// ```swift
  /// func terminate() async {
  ///   do {
  ///     try await MuxRepository.shared.flushAll()
  ///   } catch {
  ///     print(error)
  ///   }
  /// }
  /// ```
  ///
  /// An app calls it when it enters the background, within the time that the system grants.
  ///
  /// All members are flushed concurrently, whether others fail or not. The call completes even if the calling task is
  /// cancelled.
  ///
  /// - Throws: ``MuxRepositoryError`` with the ids of the members that failed. The error of each of them names the
  ///   keys.
  public nonisolated func flushAll() async throws {
    let failures = await Self.ask(members()) { try await $0.flush() }
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
  }

  /// Calls a method of all members concurrently.
  private nonisolated static func ask(
    _ members: [any RepositoryMember],
    _ question: @escaping @concurrent @Sendable (any RepositoryMember) async throws -> Void
  ) async -> [MuxRepositoryError.Failure] {
    let tasks = members.map { member in Task.detached { try await question(member) } }
    var failures: [MuxRepositoryError.Failure] = []
    for (member, task) in zip(members, tasks) {
      do {
        try await task.value
      } catch {
        failures.append(MuxRepositoryError.Failure(id: member.name, error: error))
      }
    }
    return failures
  }

  /// Removes the values of all members from memory; fetches in flight continue.
  public nonisolated func clearMemory() {
    for member in members() { member.clearMemory() }
  }

  /// Returns the members that are alive, and removes the released ones.
  private nonisolated func members() -> [any RepositoryMember] {
    let snapshot = registry.withLock { $0.entries }
    // Read without the lock, since a reader can hold the last reference to a member.
    var living: [any RepositoryMember] = []
    var dead: [(ObjectIdentifier, Entry)] = []
    for (id, entry) in snapshot {
      if let member = entry.member { living.append(member) } else { dead.append((id, entry)) }
    }
    // Before they are removed, so that a concurrent clear finds their copies in one of the two places.
    retain(dead.map(\.1))
    registry.withLock { registry in
      for (id, entry) in dead where registry.entries[id] === entry { registry.entries[id] = nil }
      // Not at every registration, which would take longer and longer.
      registry.limit = max(64, 2 * registry.entries.count)
    }
    return living
  }

  /// Keeps the access to the stored copies of released members.
  private nonisolated func retain(_ entries: [Entry]) {
    let entries = entries.compactMap { entry in entry.copies.map { (id: $0.id, entry: entry) } }
    guard !entries.isEmpty else { return }
    registry.release { registry in
      entries.map { registry.released.updateValue($0.entry, forKey: $0.id) }
    }
  }
}
