import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Stored tags of values` {
  private func map(_ cacher: any Cacher<Person>) -> MultiplexerMap<String, Person> {
    taggedPeople(cacher) { _ in throw Fetched() }
  }

  @Test(.guarantee(.valueTagsAreFenced), arguments: CacherKind.allCases)
  func `a clear of tags of values reaches the stored copies of all processes`(
    kind: CacherKind
  ) async throws {
    let folder = try TemporaryFolder()
    let first = map(try kind.open(folder.path))
    first.store(Person(name: "Ada", age: 5), for: "1")
    first.store(Person(name: "Bob", age: 6), for: "2")
    try await first.flush()
    // Without them in memory.
    try await map(try kind.openApart(folder.path)).clear(tags: ["age:5"])
    let third = map(try kind.openApart(folder.path))
    await #expect(throws: Fetched.self) { try await third.request("1") }
    #expect(try await third.request("2").name == "Bob")
  }

  @Test(arguments: CacherKind.allCases)
  func `a value with a tag that another process has cleared meanwhile is not written`(
    kind: CacherKind
  ) async throws {
    let folder = try TemporaryFolder()
    let gate = Gate()
    let first = taggedPeople(try kind.open(folder.path)) { _ in
      try await gate.wait()
      return Person(name: "Ada", age: 5)
    }
    let caller = Task { try await first.request("1") }
    await gate.arrivals(1)
    try await map(try kind.openApart(folder.path)).clear(tags: ["age:5"])
    gate.open()
    #expect(try await caller.value.name == "Ada")
    try await first.flush()
    let third = map(try kind.openApart(folder.path))
    await #expect(throws: Fetched.self) { try await third.request("1") }
  }

  @Test(.guarantee(.valueTagsAreFenced), arguments: CacherKind.allCases)
  func `an update to a tag that was cleared before is there after a restart`(
    kind: CacherKind
  ) async throws {
    let folder = try TemporaryFolder()
    let first = map(try kind.open(folder.path))
    first.store(Person(name: "Ada", age: 5), for: "1")
    try await first.flush()
    try await first.clear(tags: ["age:6"])
    first.update("1") { $0.age = 6 }
    try await first.flush()
    let second = map(try kind.openApart(folder.path))
    #expect(try await second.request("1").age == 6)
    try await map(try kind.openApart(folder.path)).clear(tags: ["age:6"])
    await #expect(throws: Fetched.self) {
      try await map(try kind.openApart(folder.path)).request("1")
    }
  }

  @Test(arguments: CacherKind.allCases)
  func `an update of an outdated value is outdated after a restart`(kind: CacherKind) async throws {
    let folder = try TemporaryFolder()
    let first = map(try kind.open(folder.path))
    first.store(Person(name: "Ada", age: 5), for: "1")
    try await first.flush()
    first.refresh("1")
    try await first.clear(tags: ["age:6"])
    first.update("1") { $0.age = 6 }
    try await first.flush()
    let second = map(try kind.openApart(folder.path))
    await #expect(throws: Fetched.self) { try await second.request("1") }
  }

  @Test(arguments: CacherKind.allCases)
  func `a value that is stored after a refresh, and written before it, is not outdated`(
    kind: CacherKind
  ) async throws {
    let folder = try TemporaryFolder()
    let cacher = InterruptedCacher(try kind.open(folder.path))
    let first = map(cacher)
    // When marks have been written, and before the values to write are taken out.
    cacher.interrupt {
      first.refresh("1")
      first.store(Person(name: "Ada", age: 6), for: "1")
      first.clearMemory()
    }
    first.refresh("2")
    try await first.flush()
    try await first.flush()
    let second = map(try kind.openApart(folder.path))
    #expect(try await second.request("1").name == "Ada")
  }
}

/// A cacher that calls a closure once when it has recorded marks.
private final class InterruptedCacher: MarkingCacher {
  private let base: any Cacher<Person>
  private let onNote = Guarded<(@Sendable () -> Void)?>(nil)

  init(_ base: any Cacher<Person>) { self.base = base }

  func interrupt(_ body: @escaping @Sendable () -> Void) { onNote.withLock { $0 = body } }

  var generation: CacheGeneration? { base.generation }

  func entry(forKey key: String) async throws -> CacheEntry<Person>? {
    try await base.entry(forKey: key)
  }

  func store(_ entries: [String: CacheEntry<Person>]) async throws {
    try await base.store(entries)
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await base.removeEntries(forKeys: keys)
  }

  func removeAllEntries() async throws { try await base.removeAllEntries() }

  func note(_ marks: [CacheMark]) async throws -> CacheGeneration {
    guard let base = base as? any MarkingCacher<Person> else { throw Fetched() }
    let generation = try await base.note(marks)
    let body = onNote.withLock { onNote in
      defer { onNote = nil }
      return onNote
    }
    body?()
    return generation
  }

  func erase(isComplete: Bool) async throws {}
}
