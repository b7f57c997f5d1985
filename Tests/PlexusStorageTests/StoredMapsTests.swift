import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized)
struct `Multiplexers with files` {
  private let folder: TemporaryFolder
  private let policy: CachePolicy

  init() throws {
    folder = try TemporaryFolder()
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    self.policy = policy
  }

  @Test(.guarantee(.processesShareADirectory), arguments: CacherKind.allCases)
  private func `two multiplexers of one id in one directory have what was flushed last`(
    kind: CacherKind
  ) async throws {
    func make() throws -> Multiplexer<Person> {
      Multiplexer(id: "me", policy: policy, cacher: try kind.open(folder.path)) { throw Fetched() }
    }
    let first = try make()
    let second = try make()
    first.store(Person(name: "first", age: nil))
    try await first.flush()
    #expect(try await second.request().name == "first")
    second.store(Person(name: "second", age: 2))
    try await second.flush()
    #expect(try await make().response().source == .cacher)
    #expect(try await make().request().name == "second")
    try await first.clear()
    await #expect(throws: Fetched.self) { try await make().request() }
    #expect(try await second.request().name == "second", "Its memory is its own")
  }

  /// The ways in which another instance clears.
  private enum Clearing: CaseIterable {
    case key, namespace, everything

    func clear(
      _ map: MultiplexerMap<Int, Person>,
      _ key: Int,
      in cacher: any Cacher<Person>
    ) async throws {
      switch self {
      case .key: try await map.clear(key)
      case .namespace: try await map.clear()
      case .everything: try await cacher.removeAllEntries()
      }
    }
  }

  private func fetchingMap(
    _ kind: CacherKind,
    id: String? = "map"
  ) throws -> MultiplexerMap<Int, Person> {
    MultiplexerMap(id: id, cacher: try kind.open(folder.path)) { Person(name: "\($0)", age: $0) }
  }

  /// The keys of the existing entries.
  private func storedKeys(_ kind: CacherKind, id: String? = "map") async throws -> [Int] {
    let map = MultiplexerMap<Int, Person>(
      id: id,
      policy: policy,
      cacher: try kind.open(folder.path)
    ) {
      _ in throw Fetched()
    }
    var keys: [Int] = []
    for key in 0..<4 where (try? await map.request(key)) != nil { keys.append(key) }
    return keys
  }

  @Test(
    .guarantee(.clearedKeysAreNotWrittenBack),
    arguments: CacherKind.allCases,
    Clearing.allCases
  )
  private func `what one instance has cleared is not written back by another one`(
    kind: CacherKind,
    clearing: Clearing
  ) async throws {
    for isNew in [true, false] {
      let (map, neighbour) = (try fetchingMap(kind), try fetchingMap(kind, id: "neighbour"))
      if !isNew { try await map.clear() }
      for key in 0..<3 {
        _ = try await map.request(key)
        _ = try await neighbour.request(key)
      }
      let other = try fetchingMap(kind)
      try await clearing.clear(other, 1, in: kind.open(folder.path))
      try await map.flush()
      try await neighbour.flush()
      #expect(try await storedKeys(kind) == (clearing == .key ? [0, 2] : []))
      #expect(
        try await storedKeys(kind, id: "neighbour") == (clearing == .everything ? [] : [0, 1, 2])
      )
      // Values that are fetched or stored afterwards are written.
      _ = try await map.refresh(0).request(0)
      map.store(Person(name: "new", age: nil), for: 1)
      try await map.flush()
      #expect(try await storedKeys(kind) == (clearing == .key ? [0, 1, 2] : [0, 1]))
      try await neighbour.clear()
    }
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `a fetch that another instance has cleared meanwhile is not written`(
    kind: CacherKind
  ) async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Person>(cacher: try kind.open(folder.path)) { key in
      try await gate.wait()
      return Person(name: "\(key)", age: key)
    }
    let bulk = MultiplexerMap<Int, Person>.bulk(cacher: try kind.open(folder.path)) { keys in
      try await gate.wait()
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, Person(name: "\($0)", age: $0)) })
    }
    async let value = map.request(1)
    async let values = bulk.request([2, 3])
    await gate.arrivals(2)
    try await fetchingMap(kind, id: nil).clear()
    gate.open()
    _ = try await (value, values)
    try await map.flush()
    try await bulk.flush()
    #expect(try await storedKeys(kind, id: nil) == [])
    _ = try await map.refresh(1).request(1)
    try await map.flush()
    #expect(try await storedKeys(kind, id: nil) == [1])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `a value that was evicted before another instance cleared it is not written`(
    kind: CacherKind
  ) async throws {
    let map = try fetchingMap(kind)
    _ = try await map.request(0)
    try await fetchingMap(kind).clear(0)
    map.clearMemory()
    _ = try await map.request(1)
    try await map.flush()
    #expect(try await storedKeys(kind) == [1])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `what a map fetches while it clears itself is written`(
    kind: CacherKind
  ) async throws {
    let map = try fetchingMap(kind)
    _ = try await map.request(0)
    try await map.clear(3)
    let events = Recorder(map.events())
    // The removal has to wait for the lock, and follows the next fetch.
    let name = try #require(folder.names.first { $0.hasSuffix(".removals") })
    let handle = try FileHandle(forUpdating: folder.url.appending(path: name))
    #expect(flock(handle.fileDescriptor, LOCK_EX) == 0)
    async let clearing: Void = map.clear()
    _ = await events.first(1)
    _ = try await map.request(1)
    map.store(Person(name: "2", age: 2), for: 2)
    try handle.close()
    try await clearing
    try await map.flush()
    #expect(try await storedKeys(kind) == [1, 2])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `after more removals than are remembered, an older value is not written`(
    kind: CacherKind
  ) async throws {
    let map = try fetchingMap(kind)
    _ = try await map.request(0)
    let cacher = try kind.open(folder.path)
    try await cacher.removeEntries(forKeys: Set((0..<2_000).map { "other \($0)" }))
    _ = try await map.request(1)
    try await map.flush()
    #expect(try await storedKeys(kind) == [1])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `a damaged list of removals costs older values, and nothing else`(
    kind: CacherKind
  ) async throws {
    let map = try fetchingMap(kind)
    try await map.clear(3)
    _ = try await map.request(0)
    let name = try #require(folder.names.first { $0.hasSuffix(".removals") })
    try Data("damaged".utf8).write(to: folder.url.appending(path: name))
    try await fetchingMap(kind).clear(3)
    _ = try await map.request(1)
    try await map.flush()
    #expect(try await storedKeys(kind) == [1])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases)
  private func `a damaged list of removals is replaced by the next fetch`(
    kind: CacherKind
  ) async throws {
    try await fetchingMap(kind).clear(3)
    let name = try #require(folder.names.first { $0.hasSuffix(".removals") })
    // The rest of a file that was not made durable, after a power failure.
    try Data(count: 88).write(to: folder.url.appending(path: name))
    let map = try fetchingMap(kind)
    _ = try await map.request(0)
    try await map.flush()
    #expect(try await storedKeys(kind) == [0])
    try await fetchingMap(kind).clear(0)
    map.clearMemory()
    _ = try await map.request(1)
    try await map.flush()
    #expect(try await storedKeys(kind) == [1])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases, [false, true])
  private func `what is fetched after the directory was removed is written`(
    kind: CacherKind,
    isClearedByOther: Bool
  ) async throws {
    let map = try fetchingMap(kind)
    try await map.clear(3)
    _ = try await map.request(0)
    try await map.flush()
    try FileManager.default.removeItem(at: folder.url)
    _ = try await map.request(1)
    try await map.flush()
    #expect(try await storedKeys(kind) == [1])
    try await (isClearedByOther ? fetchingMap(kind) : map).clear()
    _ = try await map.refresh(2).request(2)
    try await map.flush()
    #expect(try await storedKeys(kind) == [2])
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack), arguments: CacherKind.allCases, [false, true])
  private func `what was cleared before the directory was removed is not written`(
    kind: CacherKind,
    isBegunAnew: Bool
  ) async throws {
    let map = try fetchingMap(kind)
    try await map.clear(3)
    _ = try await map.request(0)
    try await fetchingMap(kind).clear(0)
    try FileManager.default.removeItem(at: folder.url)
    if isBegunAnew { try await fetchingMap(kind).clear(3) }
    try await map.flush()
    #expect(try await storedKeys(kind) == [])
  }

  @Test(arguments: CacherKind.allCases)
  private func `two maps of one directory that are flushed at once lose nothing`(
    kind: CacherKind
  ) async throws {
    func make() throws -> MultiplexerMap<Int, Person> {
      MultiplexerMap(policy: policy, cacher: try kind.open(folder.path)) { _ in throw Fetched() }
    }
    let maps = [try make(), try make()]
    try await withThrowingTaskGroup { group in
      for (half, map) in maps.enumerated() {
        group.addTask {
          for round in 0..<10 {
            for key in 0..<10 {
              map.store(Person(name: "\(round)", age: key), for: 2 * key + half)
            }
            try await map.flush()
          }
        }
      }
      try await group.waitForAll()
    }
    let reader = try make()
    for key in 0..<20 { #expect(try await reader.request(key).name == "9") }
  }

  @Test(.guarantee(.hangingCachersAreMisses), arguments: CacherKind.allCases)
  private func `requests are answered while a stopped process keeps the log locked`(
    kind: CacherKind
  ) async throws {
    let map = MultiplexerMap<Int, Person>(policy: policy, cacher: try kind.open(folder.path)) {
      Person(name: "\($0)", age: $0)
    }
    for key in 0..<3 { _ = try await map.request(key) }
    try await map.flush()
    // The lock of a process that was stopped while it wrote.
    let handles = try folder.files.map { try FileHandle(forUpdating: $0) }
    for handle in handles { #expect(flock(handle.fileDescriptor, LOCK_EX) == 0) }
    let reader = MultiplexerMap<Int, Person>(policy: policy, cacher: try kind.open(folder.path)) {
      _ in throw Fetched()
    }
    for key in 0..<3 { #expect(try await reader.request(key).name == "\(key)") }
    for handle in handles { try handle.close() }
  }

  private struct Name: LosslessStringConvertible, Hashable, Sendable {
    let description: String

    init(_ description: String) { self.description = description }
  }

  /// Two equal descriptions of different keys.
  private struct Bytes: LosslessStringConvertible, Hashable, Sendable {
    let description: String

    init(_ description: String) { self.description = description }

    static func == (left: Self, right: Self) -> Bool {
      left.description.utf8.elementsEqual(right.description.utf8)
    }

    func hash(into hasher: inout Hasher) {
      for byte in description.utf8 { hasher.combine(byte) }
    }
  }

  private func store<Key: Hashable & Sendable & LosslessStringConvertible>(
    _ keys: [Key],
    _ kind: CacherKind
  ) async throws -> MultiplexerMap<Key, Person> {
    let map = MultiplexerMap<Key, Person>(id: "map", cacher: try kind.open(folder.path)) { _ in
      throw Fetched()
    }
    for (index, key) in keys.enumerated() {
      map.store(Person(name: "\(index)", age: nil), for: key)
      try await map.flush()
    }
    return MultiplexerMap(id: "map", policy: policy, cacher: try kind.open(folder.path)) { _ in
      throw Fetched()
    }
  }

  @Test(.guarantee(.equalKeysShareOneEntry), arguments: CacherKind.allCases)
  private func `equal keys have one entry, however they are spelled`(
    kind: CacherKind
  ) async throws {
    let composed = "caf\u{e9} \u{212b} \u{ac01}"
    let decomposed = "cafe\u{301} A\u{30a} \u{1100}\u{1161}\u{11a8}"
    let texts = try await store([composed, decomposed], kind)
    #expect(try await texts.request(composed).name == "1")
    #expect(try await texts.request(decomposed).name == "1")
    try await texts.clear(decomposed)
    await #expect(throws: Fetched.self) { try await texts.request(composed) }
    let names = try await store([Name(composed), Name(decomposed)], kind)
    #expect(try await names.request(Name(composed)).name == "1")
    try await names.clear()
    let numbers = try await store([0.0, -0.0], kind)
    #expect(try await numbers.request(0.0).name == "1")
    #expect(try await numbers.request(-0.0).name == "1")
    try await numbers.clear(0.0)
    await #expect(throws: Fetched.self) { try await numbers.request(-0.0) }
  }

  @Test(.guarantee(.equalKeysShareOneEntry), arguments: CacherKind.allCases)
  private func `keys that are not equal have an entry each, also with equal descriptions`(
    kind: CacherKind
  ) async throws {
    let scalars: [Unicode.Scalar] = ["\u{212b}", "\u{c5}", "a", "A", "%", "/"]
    let map = try await store(scalars, kind)
    for (index, key) in scalars.enumerated() {
      #expect(try await map.request(key).name == "\(index)")
    }
    try await map.clear()
    let bytes = [
      "\u{212b}", "\u{c5}", "A\u{30a}", "%\u{c5}", "%%c3%85", "%c3%85", "-0.0", "0.0", "%", "%%25",
    ].map { Bytes($0) }
    let others = try await store(bytes, kind)
    for (index, key) in bytes.enumerated() {
      #expect(try await others.request(key).name == "\(index)")
    }
  }

  @Test(.guarantee(.idIsTheNamespace), arguments: CacherKind.allCases)
  private func `maps with different ids have namespaces, which they clear alone`(
    kind: CacherKind
  ) async throws {
    let ids: [String?] = [nil, "a", "A", "a/b", "a%2Fb", "", "%", "caf\u{e9}"]
    func make(_ id: String?) throws -> MultiplexerMap<String, Person> {
      MultiplexerMap(id: id, policy: policy, cacher: try kind.open(folder.path)) { _ in
        throw Fetched()
      }
    }
    let keys = ["1", "b/1", "a/1", "/1", "/a/1", "%/1", ""]
    for (index, id) in ids.enumerated() {
      let map = try make(id)
      for key in keys { map.store(Person(name: "\(index) \(key)", age: index), for: key) }
      try await map.flush()
    }
    let single = Multiplexer(id: "a/1", policy: policy, cacher: try kind.open(folder.path)) {
      Person(name: "single", age: nil)
    }
    for (index, id) in ids.enumerated() {
      let map = try make(id)
      for key in keys { #expect(try await map.request(key).name == "\(index) \(key)") }
    }
    _ = try await single.refresh().request()
    try await single.flush()
    #expect(try await make("a").request("1").name == "1 1")
    for (index, id) in ids.enumerated().reversed() where id != nil {
      try await make(id).clear()
      for (other, id) in ids.enumerated() {
        let map = try make(id)
        for key in keys where (id, key) != (nil, "a/1") {
          let name = try? await map.request(key).name
          let isThere = other < index || id == nil
          #expect(name == (isThere ? "\(other) \(key)" : nil), "\(id ?? "nil") \(key)")
        }
      }
      if index == 1 { break }
    }
  }

  @Test(.guarantee(.idIsTheNamespace), arguments: CacherKind.allCases)
  private func `a map with an id clears keys, too, that begin with a mark`(
    kind: CacherKind
  ) async throws {
    // After a slash they are part of its character.
    let keys = ["\u{301}", "\u{338}=", "\u{200d}a", "\u{fe0f}", "\u{1f3fd}"]
    func make() throws -> MultiplexerMap<String, Person> {
      MultiplexerMap(id: "map", policy: policy, cacher: try kind.open(folder.path)) { _ in
        throw Fetched()
      }
    }
    let map = try make()
    for key in keys { map.store(Person(name: key, age: nil), for: key) }
    try await map.flush()
    let reader = try make()
    for key in keys { #expect(try await reader.request(key).name == key) }
    try await map.clear()
    let other = try make()
    for key in keys { await #expect(throws: Fetched.self) { try await other.request(key) } }
  }

  @Test(.guarantee(.fileNamesAreSafeAndUnique), arguments: CacherKind.allCases)
  private func `hostile keys have a value each, inside the directory`(
    kind: CacherKind
  ) async throws {
    // Two keys that are equal in Swift are one key of a map.
    let keys = Set(hostileKeys)
    let map = MultiplexerMap<String, Person>(cacher: try kind.open(folder.path)) { key in
      Person(name: key, age: key.utf8.count)
    }
    for key in keys { _ = try await map.request(key) }
    try await map.flush()
    let before = try FileManager.default.contentsOfDirectory(
      atPath: folder.url.deletingLastPathComponent().path(percentEncoded: false)
    )
    #expect(before == ["cache"])
    #expect(folder.names.allSatisfy { $0.utf8.count <= 120 })
    // One file lists the removals.
    if kind == .files { #expect(folder.names.count == keys.count + 1) }
    let reopened = MultiplexerMap<String, Person>(
      policy: policy,
      cacher: try kind.open(folder.path)
    ) { _ in throw Fetched() }
    for key in keys {
      #expect(try await reopened.request(key) == Person(name: key, age: key.utf8.count))
    }
    #expect(reopened.statistics.restorations == keys.count)
    for key in keys.prefix(10) { try await reopened.clear(key) }
    for key in keys.prefix(10) {
      await #expect(throws: Fetched.self) { try await reopened.request(key) }
    }
  }

  @Test(.guarantee(.evictedValuesAreWrittenFirst), arguments: CacherKind.allCases)
  private func `a bounded map finds evicted values on disk`(
    kind: CacherKind
  ) async throws {
    let map = MultiplexerMap<Int, Person>(
      policy: policy,
      capacity: .count(10),
      cacher: try kind.open(folder.path)
    ) { Person(name: "\($0)", age: $0) }
    for key in 0..<200 { _ = try await map.request(key) }
    try await map.flush()
    for key in 0..<200 { #expect(try await map.request(key).age == key) }
    #expect(map.statistics.fetches == 200)
    #expect(map.statistics.evictions >= 190)
  }
}

/// The number of times that each of the following tests kills a process.
private let killCount = Effort.count(12)

@Suite(.fewAtOnce, .serialized)
struct `Maps in processes that are killed` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// A process stores and flushes, records acknowledged operations, and is killed by a thread of its own at a random
  /// time.
  @Test(.startsProcess, arguments: CacherKind.allCases, 0..<killCount)
  private func `maps in processes that are killed lose nothing that a flush has acknowledged`(
    kind: CacherKind,
    round: Int
  ) async throws {
    let (path, notesPath) = (folder.path, folder.notesPath)
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [kind, path = path as String, notesPath = notesPath as String] in
      let map = MultiplexerMap<Int, Person>(capacity: .count(6), cacher: try kind.open(path)) {
        Person(name: "\($0)", age: 0)
      }
      try Data().write(to: URL(filePath: notesPath))
      let notes = try FileHandle(forWritingTo: URL(filePath: notesPath))
      let last = Int.random(in: 1...12)
      for number in 1... {
        if number == last {
          Thread {
            // A time that is independent of the other threads.
            for _ in 0..<Int.random(in: 0..<100_000) { _ = getpid() }
            kill(getpid(), SIGKILL)
          }.start()
        }
        // More than the memory can hold.
        for key in 0..<8 { map.store(Person(name: "\(key)", age: number), for: key) }
        try await map.flush()
        try notes.write(contentsOf: Data([UInt8(ascii: ".")]))
      }
    }
    let acknowledged = try Data(contentsOf: URL(filePath: notesPath)).count
    let cacher = try kind.open(path)
    for key in 0..<8 {
      let person = try await cacher.value("\(key)")
      if acknowledged > 0 { try #require(person != nil) }
      #expect(person?.name ?? "\(key)" == "\(key)")
      #expect(person?.age ?? 0 >= acknowledged && person?.age ?? 0 <= acknowledged + 1)
    }
    let map = MultiplexerMap<Int, Person>(cacher: cacher) { Person(name: "\($0)", age: 0) }
    map.store(Person(name: "after", age: 1), for: 1)
    try await map.flush()
    #expect(try await kind.open(path).name("1") == "after")
  }
}
