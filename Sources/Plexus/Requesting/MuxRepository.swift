/// Multiplexers and the like that are cleared together, for instance when somebody signs out.
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

  private nonisolated let entries = Locked<[ObjectIdentifier: Entry]>([:])

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
    let replaced = entries.withLock { entries in
      entries.updateValue(Entry(member), forKey: ObjectIdentifier(member))
    }
    withExtendedLifetime(replaced) {}
    _ = members()
  }

  /// Takes a multiplexer out.
  ///
  /// - Parameter multiplexer: The multiplexer; nothing happens if it is not there.
  public nonisolated func unregister<Value>(_ multiplexer: Multiplexer<Value>) {
    unregister(multiplexer.core)
  }

  /// Takes a map out.
  ///
  /// - Parameter map: The map; nothing happens if it is not there.
  public nonisolated func unregister<Key, Value>(_ map: MultiplexerMap<Key, Value>) {
    unregister(map.core)
  }

  /// Takes a member out.
  ///
  /// - Parameter member: The member; nothing happens if it is not there.
  public nonisolated func unregister(_ member: any RepositoryMember) {
    let removed = entries.withLock { $0.removeValue(forKey: ObjectIdentifier(member)) }
    withExtendedLifetime(removed) {}
  }

  /// The number of living members.
  public nonisolated var count: Int {
    members().count
  }

  /// Forgets what the members hold, in memory and stored.
  ///
  /// All of them are cut off first, one after another and without suspending: fetches that are under
  /// way are not stored any more. Then the stored copies are removed. When this call returns no
  /// member hands out a value whose fetch began before it.
  ///
  /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
  ///   cleared all the same.
  public nonisolated func clearAll() async throws {
    let members = members()
    for member in members { member.cutOff() }
    var errors: [any Error] = []
    for member in members {
      do {
        try await member.removeStored()
      } catch {
        errors.append(error)
      }
    }
    guard errors.isEmpty else { throw MuxRepositoryError(errors: errors) }
  }

  /// Forgets what the members hold in memory; fetches that are under way go on.
  public nonisolated func clearMemory() {
    for member in members() { member.clearMemory() }
  }

  /// The living members.
  ///
  /// The dead ones are taken out.
  private nonisolated func members() -> [any RepositoryMember] {
    let snapshot = entries.withLock { $0 }
    // Looked at without the lock: whoever looks may come to be the last one to hold a member.
    var living: [any RepositoryMember] = []
    var dead: [(ObjectIdentifier, Entry)] = []
    for (id, entry) in snapshot {
      if let member = entry.member { living.append(member) } else { dead.append((id, entry)) }
    }
    guard !dead.isEmpty else { return living }
    entries.withLock { entries in
      for (id, entry) in dead where entries[id] === entry { entries[id] = nil }
    }
    return living
  }
}
