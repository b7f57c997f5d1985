/// Multiplexers and the like that are cleared together, for instance when somebody signs out, and
/// written together before the process ends.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }.register()
/// let photos = MultiplexerMap<String, [UInt8]> { _ in [] }.register()
///
/// try await MuxRepository.shared.clearAll()
/// ```
///
/// Members are held weakly, and are released when no other reference to them is left. What a released member has
/// stored is removed by the next ``clearAll()``; until then the repository keeps its cacher.
public final actor MuxRepository {
  /// A repository for the whole process.
  public static let shared = MuxRepository()

  /// A member, held weakly.
  ///
  /// The entry itself tells which member it was, even after its death.
  private final class Entry: Sendable {
    weak let member: (any RepositoryMember)?
    /// The stored copies of the member, if it has any, and its name for errors.
    let copies: (any StoredCopies)?
    let name: String

    init(_ member: any RepositoryMember) {
      self.member = member
      copies = (member as? any CopyKeeper)?.copies
      name = member.name
    }
  }

  private struct Registry: Sendable {
    var entries: [ObjectIdentifier: Entry] = [:]
    /// The entries of members that were released, whose stored copies may still be there.
    var released: [StoredCopiesID: Entry] = [:]
    /// How many entries there may be before the dead ones are looked for.
    var limit = 64
  }

  private nonisolated let registry = Locked(Registry())

  /// Creates a repository without members.
  public init() {}

  /// Adds a multiplexer, unless it is there already.
  ///
  /// - Parameter multiplexer: The multiplexer. It is not kept alive.
  public nonisolated func register<Value>(_ multiplexer: Multiplexer<Value>) {
    multiplexer.register(in: self)
  }

  /// Adds a map, unless it is there already.
  ///
  /// - Parameter map: The map. It is not kept alive.
  public nonisolated func register<Key, Value>(_ map: MultiplexerMap<Key, Value>) {
    map.register(in: self)
  }

  /// Adds a member, unless it is there already.
  ///
  /// - Parameter member: The member. It is not kept alive.
  public nonisolated func register(_ member: any RepositoryMember) {
    let entry = Entry(member)
    let (replaced, isCrowded) = registry.withLock { registry in
      let replaced = registry.entries.updateValue(entry, forKey: ObjectIdentifier(member))
      return (replaced, registry.entries.count > registry.limit)
    }
    // Another member may have had the same address before.
    if let replaced, replaced.member == nil { retain([replaced]) }
    if isCrowded { _ = members() }
  }

  /// Takes a multiplexer out.
  ///
  /// - Parameter multiplexer: The multiplexer; nothing happens if it is not there.
  public nonisolated func unregister<Value>(_ multiplexer: Multiplexer<Value>) {
    unregister(multiplexer.cache)
  }

  /// Takes a map out.
  ///
  /// - Parameter map: The map; nothing happens if it is not there.
  public nonisolated func unregister<Key, Value>(_ map: MultiplexerMap<Key, Value>) {
    unregister(map.cache)
  }

  /// Takes a member out.
  ///
  /// - Parameter member: The member; nothing happens if it is not there.
  public nonisolated func unregister(_ member: any RepositoryMember) {
    let removed = registry.withLock {
      $0.entries.removeValue(forKey: ObjectIdentifier(member))
    }
    withExtendedLifetime(removed) {}
  }

  /// The number of living members.
  public nonisolated var count: Int {
    members().count
  }

  /// What has happened in the living members so far, by their ids.
  ///
  /// Members with equal ids are added up. A member without an id goes by the name of its type.
  public nonisolated var statistics: [String: CacheStatistics] {
    var sums: [String: CacheStatistics] = [:]
    for member in members() {
      guard let statistics = member.statistics else { continue }
      sums[member.name, default: CacheStatistics()] =
        sums[member.name, default: CacheStatistics()] + statistics
    }
    return sums
  }

  /// Forgets what the members hold, in memory and stored.
  ///
  /// All of them are cut off first, one after another and without suspending: fetches that are under
  /// way are not stored any more, nor are those that begin before the last member is cut off, since
  /// they may have read what it held. Then the stored copies are removed. A request that is made
  /// after this call has returned never gets a value whose fetch began before the call; those who
  /// already waited for such a fetch get its result. The stored copies of members that were released before are
  /// removed, too.
  ///
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
  ///   cleared all the same.
  public nonisolated func clearAll() async throws {
    try await clear(members(), released: registry.withLock { $0.released })
  }

  /// Forgets what the members hold, in memory and stored, with a guarantee for other processes.
  ///
  /// It does what ``clearAll()`` does. With ``ClearReach/here`` the entries of shared cachers stay, and with
  /// ``ClearReach/everywhere`` it also waits until no process uses its copies of them.
  ///
  /// - Parameter reach: The processes for which the removal holds when the call returns.
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
  ///   cleared all the same.
  public nonisolated func clearAll(_ reach: ClearReach) async throws {
    switch reach {
    case .shared:
      try await clearAll()
    case .here:
      let members = members()
      let shared = members.compactMap { $0 as? any SharedMember }.filter(\.isShared)
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
        try await ($0 as? any SharedMember)?.removeEverywhere()
      }
      guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
    }
  }

  private nonisolated func clear(
    _ members: [any RepositoryMember],
    released: [StoredCopiesID: Entry]
  ) async throws(MuxRepositoryError) {
    let keepers = members.compactMap { $0 as? any CopyKeeper }
    // Members may share a cacher: what one has removed another may still be writing, until all are done.
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

  /// Forgets the values of all members that have one of some tags, in memory and stored.
  ///
  /// All members forget them before the first stored copy is removed. What the call does to a member is described at
  /// ``MultiplexerMap/clear(tags:)``. Stored copies of members that were released are not reached: they are removed
  /// by ``clearAll()``.
  ///
  /// - Parameter tags: The tags.
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
  ///   cleared all the same.
  public nonisolated func clear(tags: Set<CacheTag>) async throws {
    let members = members()
    // A fetch that begins now may still read what a member further back has not forgotten: all of them forget again.
    for member in members { member.forget(tags: tags) }
    let failures = await Self.ask(members) { try await $0.clear(tags: tags) }
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
  }

  /// Removes the stored copies of members that were released.
  private nonisolated static func removeCopies(
    _ entries: [StoredCopiesID: Entry]
  ) async -> [StoredCopiesID: MuxRepositoryError.Failure] {
    let tasks = entries.compactMapValues { entry in
      entry.copies.map { copies in Task.detached { try await copies.removeAll() } }
    }
    var failures: [StoredCopiesID: MuxRepositoryError.Failure] = [:]
    for (id, task) in tasks {
      guard case .failure(let error) = await task.result else { continue }
      failures[id] = MuxRepositoryError.Failure(id: entries[id]?.name ?? "", error: error)
    }
    return failures
  }

  /// Writes what the members hold to where it outlives the process, as far as it has changed.
  ///
  /// Call it before the process ends or is put to sleep. A program on a server calls it from the task that
  /// handles the signal to end:
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
  /// An app calls it when it enters the background, within the time that the system grants for that.
  ///
  /// All members are flushed at the same time, whether others fail or not. It runs to its end when the
  /// calling task is cancelled.
  ///
  /// - Throws: ``MuxRepositoryError`` with the ids of the members that failed; the error of each of them
  ///   names the keys.
  public nonisolated func flushAll() async throws {
    let failures = await Self.ask(members()) { try await $0.flush() }
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
  }

  /// Asks all members for something at the same time.
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

  /// Forgets what the members hold in memory; fetches that are under way go on.
  public nonisolated func clearMemory() {
    for member in members() { member.clearMemory() }
  }

  /// The living members.
  ///
  /// The dead ones are taken out.
  private nonisolated func members() -> [any RepositoryMember] {
    let snapshot = registry.withLock { $0.entries }
    // Looked at without the lock: whoever looks may come to be the last one to hold a member.
    var living: [any RepositoryMember] = []
    var dead: [(ObjectIdentifier, Entry)] = []
    for (id, entry) in snapshot {
      if let member = entry.member { living.append(member) } else { dead.append((id, entry)) }
    }
    // Before they are taken out, so that a clear at the same moment finds their copies here or there.
    retain(dead.map(\.1))
    registry.withLock { registry in
      for (id, entry) in dead where registry.entries[id] === entry { registry.entries[id] = nil }
      // Not at every registration: that would take longer and longer.
      registry.limit = max(64, 2 * registry.entries.count)
    }
    return living
  }

  /// Keeps what is needed to remove the stored copies of members that were released.
  private nonisolated func retain(_ entries: [Entry]) {
    let entries = entries.compactMap { entry in entry.copies.map { (id: $0.id, entry: entry) } }
    guard !entries.isEmpty else { return }
    let replaced = registry.withLock { registry in
      entries.map { registry.released.updateValue($0.entry, forKey: $0.id) }
    }
    withExtendedLifetime(replaced) {}
  }
}
