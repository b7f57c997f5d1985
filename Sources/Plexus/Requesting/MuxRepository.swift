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
/// Members are held weakly: one that nobody else holds is gone by itself.
public final actor MuxRepository {
  /// A repository for the whole process.
  public static let shared = MuxRepository()

  /// A member, held weakly.
  ///
  /// The entry itself tells which member it was, even after its death.
  private final class Entry: Sendable {
    weak let member: (any RepositoryMember)?

    init(_ member: any RepositoryMember) {
      self.member = member
    }
  }

  private struct Registry: Sendable {
    var entries: [ObjectIdentifier: Entry] = [:]
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
    let (replaced, isCrowded) = registry.withLock { registry in
      let replaced = registry.entries.updateValue(
        Entry(member),
        forKey: ObjectIdentifier(member)
      )
      return (replaced, registry.entries.count > registry.limit)
    }
    withExtendedLifetime(replaced) {}
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

  /// Forgets what the members hold, in memory and stored.
  ///
  /// All of them are cut off first, one after another and without suspending: fetches that are under
  /// way are not stored any more, nor are those that begin before the last member is cut off, since
  /// they may have read what it held. Then the stored copies are removed. A request that is made
  /// after this call has returned never gets a value whose fetch began before the call; those who
  /// already waited for such a fetch get its result.
  ///
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
  ///   cleared all the same.
  public nonisolated func clearAll() async throws {
    let members = members()
    let keepers = members.compactMap { $0 as? any CopyKeeper }
    // Members may share a cacher: what one has removed another may still be writing, until all are done.
    for keeper in keepers { keeper.withholdCopies() }
    defer { for keeper in keepers { keeper.releaseCopies() } }
    for member in members { member.hold() }
    for member in members { member.release() }
    try await Self.ask(members) { try await $0.removeStored() }
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
    try await Self.ask(members()) { try await $0.flush() }
  }

  /// Asks all members for something at the same time.
  private nonisolated static func ask(
    _ members: [any RepositoryMember],
    _ question: @escaping @concurrent @Sendable (any RepositoryMember) async throws -> Void
  ) async throws {
    let tasks = members.map { member in Task.detached { try await question(member) } }
    var failures: [MuxRepositoryError.Failure] = []
    for (member, task) in zip(members, tasks) {
      do {
        try await task.value
      } catch {
        failures.append(MuxRepositoryError.Failure(id: member.name, error: error))
      }
    }
    guard failures.isEmpty else { throw MuxRepositoryError(failures: failures) }
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
    registry.withLock { registry in
      for (id, entry) in dead where registry.entries[id] === entry { registry.entries[id] = nil }
      // Not at every registration: that would take longer and longer.
      registry.limit = max(64, 2 * registry.entries.count)
    }
    return living
  }
}
