import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

/// Caches of one process with one folder.
@Suite(.fewAtOnce, .serialized)
struct `Caches that share a folder` {
  private let folder: TemporaryFolder
  private let clock = ManualClock()

  init() throws {
    folder = try TemporaryFolder()
  }

  private func map(
    _ id: String?,
    _ cacher: any Cacher<Person>
  ) -> MultiplexerMap<Int, Person> {
    MultiplexerMap(id: id, cacher: cacher, clock: clock) { Person(name: "\($0)", age: $0) }
  }

  /// The keys of the existing entries.
  private func storedKeys(_ kind: CacherKind, _ id: String?) async throws -> [Int] {
    let map = MultiplexerMap<Int, Person>(
      id: id,
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: try kind.open(folder.path)
    ) { _ in throw Fetched() }
    var keys: [Int] = []
    for key in 0..<4 where (try? await map.request(key)) != nil { keys.append(key) }
    return keys
  }

  @Test(.guarantee(.mapsClearedTogetherStillWrite), arguments: CacherKind.allCases, [true, false])
  private func `caches that share a folder write what they fetch while they are cleared together`(
    kind: CacherKind,
    isOneCacher: Bool
  ) async throws {
    let (repository, gate) = (MuxRepository(), Gate())
    let first = HeldCacher(try kind.open(folder.path), gate)
    func cacher() throws -> HeldCacher {
      isOneCacher ? first : HeldCacher(try kind.open(folder.path), gate)
    }
    let maps = [map("a", first), map("b", try cacher()), map("c", try cacher())]
    for map in maps { map.register(in: repository) }
    do {
      let released = map("d", first).register(in: repository)
      _ = try await released.request(3)
      try await released.flush()
    }
    for map in maps {
      _ = try await map.request(0)
      try await map.flush()
    }
    #expect(try await storedKeys(kind, "d") == [3])
    let clearing = Task { try await repository.clearAll() }
    // All members have been detached from their fetches.
    await gate.arrivals(1)
    for map in maps {
      _ = try await map.request(1)
      map.store(Person(name: "2", age: 2), for: 2)
    }
    gate.open()
    try await clearing.value
    try await repository.flushAll()
    for id in ["a", "b", "c"] { #expect(try await storedKeys(kind, id) == [1, 2]) }
    #expect(try await storedKeys(kind, "d") == [])
    withExtendedLifetime(maps) {}
  }

  /// The ways in which a value gets into memory.
  private enum Writing: CaseIterable {
    case fetched, stored, updated, optimistic, prefetched

    func write(_ map: MultiplexerMap<Int, Person>) async throws {
      switch self {
      case .fetched: _ = try await map.refresh(1).request(1)
      case .stored: map.store(Person(name: "1", age: 1), for: 1)
      case .updated:
        map.store(Person(name: "0", age: 1), for: 1)
        try await map.flush()
        map.update(1) { $0 = Person(name: "1", age: 1) }
      case .optimistic:
        map.store(Person(name: "0", age: 1), for: 1)
        try await map.flush()
        try await map.update(1, optimistically: { $0 = Person(name: "1", age: 1) }, commit: {})
      case .prefetched:
        map.prefetch([1])
        _ = try await map.request(1)
      }
    }

    func write(_ cache: Multiplexer<Person>) async throws {
      switch self {
      case .fetched: _ = try await cache.refresh().request()
      case .stored: cache.store(Person(name: "1", age: 1))
      case .updated:
        cache.store(Person(name: "0", age: 1))
        try await cache.flush()
        cache.update { $0 = Person(name: "1", age: 1) }
      case .optimistic:
        cache.store(Person(name: "0", age: 1))
        try await cache.flush()
        try await cache.update(optimistically: { $0 = Person(name: "1", age: 1) }, commit: {})
      case .prefetched:
        cache.prefetch()
        _ = try await cache.request()
      }
    }
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases, Writing.allCases)
  private func `caches do not write back what another cache has cleared, however a map got it`(
    kind: CacherKind,
    writing: Writing
  ) async throws {
    for isOneCacher in [true, false] {
      let cacher = try kind.open(folder.path)
      let writer = map("map", cacher)
      let other = map("map", isOneCacher ? cacher : try kind.open(folder.path))
      // It has removed something itself.
      try await writer.clear(3)
      try await writing.write(writer)
      try await other.clear(1)
      try await writer.flush()
      #expect(try await storedKeys(kind, "map") == [])
      try await writing.write(writer)
      try await other.clear()
      writer.clearMemory()
      try await writer.flush()
      #expect(try await storedKeys(kind, "map") == [])
      // What it gets afterwards is written.
      writer.store(Person(name: "1", age: 1), for: 1)
      try await writer.flush()
      #expect(try await storedKeys(kind, "map") == [1])
      try await other.clear()
    }
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases, Writing.allCases)
  private func `what another cache of a folder has cleared is not written back`(
    kind: CacherKind,
    writing: Writing
  ) async throws {
    func make() throws -> Multiplexer<Person> {
      Multiplexer(id: "me", cacher: try kind.open(folder.path), clock: clock) {
        Person(name: "1", age: 1)
      }
    }
    func stored() async throws -> String? {
      try await kind.open(folder.path).name("me")
    }
    let writer = try make()
    try await writing.write(writer)
    try await make().clear()
    try await writer.flush()
    #expect(try await stored() == nil)
    try await writing.write(writer)
    try await kind.open(folder.path).removeAllEntries()
    writer.clearMemory()
    try await writer.flush()
    #expect(try await stored() == nil)
    writer.store(Person(name: "new", age: 1))
    try await writer.flush()
    #expect(try await stored() == "new")
  }

  @Test(.guarantee(.unwrittenChangesBelongToTheKey), arguments: CacherKind.allCases)
  private func `caches of a folder lose no pending write of another spelling`(
    kind: CacherKind
  ) async throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    let cacher = try kind.open(folder.path)
    func make<Key: LosslessStringConvertible & Hashable & Sendable>(
      _ type: Key.Type
    ) -> MultiplexerMap<Key, Person> {
      MultiplexerMap(
        id: "map",
        policy: CachePolicy(cacherRead: .beforeFetch),
        cacher: cacher,
        clock: clock
      ) { _ in throw Fetched() }
    }
    try await check(make(String.self), make(String.self), [composed, decomposed])
    try await check(make(Double.self), make(Double.self), [-0.0, 0.0])
  }

  /// Changes the value of one key under both of its spellings, before and after it was written.
  private func check<Key: Hashable & Sendable>(
    _ map: MultiplexerMap<Key, Person>,
    _ reader: MultiplexerMap<Key, Person>,
    _ spellings: [Key]
  ) async throws {
    for (first, second) in [(0, 1), (1, 0)] {
      let (key, same) = (spellings[first], spellings[second])
      func stored() async throws -> String? {
        reader.clearMemory()
        return try? await reader.request(same).name
      }
      // The second change is the one that is written.
      map.store(Person(name: "1", age: 1), for: key)
      map.store(Person(name: "2", age: 1), for: same)
      try await map.flush()
      #expect(try await stored() == "2")
      map.update(key) { $0 = Person(name: "3", age: 1) }
      try await map.flush()
      #expect(try await stored() == "3")
      // A value that has left memory before it was written is found by the other spelling.
      map.store(Person(name: "4", age: 1), for: key)
      map.clearMemory(same)
      #expect(try await map.request(same).name == "4")
      try await map.flush()
      #expect(try await stored() == "4")
      // A change that was not written is cleared by the other spelling.
      map.store(Person(name: "5", age: 1), for: key)
      try await map.clear(same)
      try await map.flush()
      #expect(try await stored() == nil)
      map.store(Person(name: "6", age: 1), for: key)
      map.clearMemory(key)
      try await map.clear(same)
      try await map.flush()
      #expect(try await stored() == nil)
    }
  }
}

/// A cacher whose removals wait at a gate; two of them are equal if their files are the same.
private final class HeldCacher: Cacher, Hashable {
  private let base: any Cacher<Person>
  private let gate: Gate

  init(_ base: any Cacher<Person>, _ gate: Gate) {
    self.base = base
    self.gate = gate
  }

  /// The identity of the files.
  private var identity: AnyHashable {
    (base as? any Hashable).map { AnyHashable($0) } ?? AnyHashable(ObjectIdentifier(self))
  }

  static func == (left: HeldCacher, right: HeldCacher) -> Bool { left.identity == right.identity }

  func hash(into hasher: inout Hasher) { hasher.combine(identity) }

  var generation: CacheGeneration? { base.generation }

  func entry(forKey key: String) async throws -> CacheEntry<Person>? {
    try await base.entry(forKey: key)
  }

  func store(_ entries: [String: CacheEntry<Person>]) async throws {
    try await base.store(entries)
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await gate.wait()
    try await base.removeEntries(forKeys: keys)
  }

  func removeAllEntries() async throws {
    try await gate.wait()
    try await base.removeAllEntries()
  }

  func removeEntries(withPrefix prefix: String) async throws {
    try await gate.wait()
    try await base.removeEntries(withPrefix: prefix)
  }
}
