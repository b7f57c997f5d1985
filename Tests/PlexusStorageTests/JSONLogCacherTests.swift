import Foundation
import Plexus
import PlexusStorage
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A log cacher` {
  private let folder: TemporaryFolder
  private let cacher: JSONLogCacher<Person>

  init() throws {
    folder = try TemporaryFolder()
    cacher = try JSONLogCacher(directory: folder.url)
  }

  private func reopened() throws -> JSONLogCacher<Person> {
    try JSONLogCacher(directory: folder.url)
  }

  private func log() throws -> URL {
    try #require(folder.files.first { $0.pathExtension == "log" })
  }

  private func logByteCount() throws -> Int { try Data(contentsOf: log()).count }

  // MARK: - Entries

  @Test func `a log cacher returns what was stored, in full, also after it was opened again`()
    async throws
  {
    let times: [Duration] = [
      .zero, .seconds(-5), .seconds(1_700_000_000) + .nanoseconds(1),
      Duration(secondsComponent: 1, attosecondsComponent: 999_999_999_999_999_999),
      .seconds(Int64.max), .seconds(Int64.min),
      Duration(secondsComponent: -1, attosecondsComponent: -1),
    ]
    for validator in [nil, "", "W/\"1\""] {
      for time in times {
        let person = Person(name: "\u{0}\"\\/😀\n", age: nil)
        let entry = CacheEntry(value: person, storedAt: time, validator: validator)
        try await cacher.store(["me": entry])
        #expect(try await cacher.entry(forKey: "me") == entry)
        #expect(try await reopened().entry(forKey: "me") == entry)
      }
    }
  }

  @Test func `a log cacher stores values of any JSON, also none, a number or a list`() async throws
  {
    let numbers = try JSONLogCacher<Int>(directory: folder.url)
    let nothing = try JSONLogCacher<Int?>(directory: folder.url)
    let lists = try JSONLogCacher<[String: [Double]]>(directory: folder.url)
    try await numbers.store(["x": CacheEntry(value: 7, storedAt: .zero)])
    try await nothing.store(["x": CacheEntry(value: nil, storedAt: .zero)])
    try await lists.store(["x": CacheEntry(value: ["y": [0.1, -1e300]], storedAt: .zero)])
    #expect(try await numbers.value("x") == 7)
    #expect(try await nothing.entry(forKey: "x") == CacheEntry(value: nil, storedAt: .zero))
    #expect(try await lists.value("x") == ["y": [0.1, -1e300]])
    #expect(try await cacher.entry(forKey: "x") == nil)
  }

  @Test(.guarantee(.batchesStoreAsMuchAsPossible))
  func `a log cacher names what cannot be encoded, and stores the others`() async throws {
    let doubles = try JSONLogCacher<Double>(directory: folder.url)
    let error = try await #require(throws: CacherError.self) {
      try await doubles.store([
        "a": CacheEntry(value: 1, storedAt: .zero), "b": CacheEntry(value: .nan, storedAt: .zero),
      ])
    }
    #expect(error.keys == ["b"])
    #expect(error.failures["b"] is EncodingError)
    #expect(try await doubles.value("a") == 1)
  }

  @Test(.guarantee(.filesBelongToTheirOwner))
  func `hostile keys have their own value, in a file that only the owner can read`()
    async throws
  {
    var entries: [String: CacheEntry<Person>] = [:]
    for (index, key) in hostileKeys.enumerated() { entries[key] = CacheEntry("\(index)") }
    try await cacher.store(entries)
    for cacher in [cacher, try reopened()] {
      for (index, key) in hostileKeys.enumerated() {
        #expect(try await cacher.name(key) == "\(index)")
      }
    }
    #expect(try folder.permissions(of: folder.url) == 0o700)
    #expect(try folder.permissions(of: log()) == 0o600)
    #expect(folder.names.count == 1)
  }

  @Test func `a log cacher removes some entries, or all, durably`() async throws {
    try await cacher.store(["a": CacheEntry("a"), "b": CacheEntry("b")])
    try await cacher.removeEntries(forKeys: ["a", "absent"])
    try await cacher.removeEntries(forKeys: [])
    #expect(try await reopened().name("a") == nil)
    #expect(try await reopened().name("b") == "b")
    try await cacher.removeAllEntries()
    #expect(try await cacher.name("b") == nil)
    #expect(try await reopened().name("b") == nil)
    #expect(try logByteCount() == 78)
    try await cacher.store("again", for: "a")
    #expect(try await cacher.name("a") == "again")
  }

  @Test func `a log cacher names what a cancelled store omits, and completes a cancelled removal`()
    async throws
  {
    try await cacher.store("a", for: "a")
    let cacher = cacher
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      let error = await #expect(throws: CacherError.self) { try await cacher.store("b", for: "b") }
      #expect(error?.failures["b"] is CancellationError)
      #expect(try await cacher.name("a") == "a")
      try await cacher.removeEntries(forKeys: ["a"])
    }
    try await task.value
    #expect(try await cacher.name("a") == nil)
    #expect(try await cacher.name("b") == nil)
  }

  // MARK: - Damage

  @Test(.guarantee(.damagedEntriesAreMisses), arguments: [0, 1, 77, 78, 5_000])
  func `a foreign file is replaced by an empty log`(length: Int) async throws {
    try Data(repeating: 0x50, count: length).write(to: log())
    let reopened = try reopened()
    #expect(try await reopened.entry(forKey: "a") == nil)
    try await reopened.store("ada", for: "a")
    #expect(try await reopened.name("a") == "ada")
    #expect(try await cacher.name("a") == "ada")
  }

  @Test func `entries of another schema are removed, values that cannot be decoded are misses`()
    async throws
  {
    try await cacher.store("ada", for: "me")
    enum Changed {
      struct Person: Codable, Sendable { var surname: String }
    }
    let changed = try JSONLogCacher<Changed.Person>(directory: folder.url)
    #expect(try await changed.entry(forKey: "me") == nil)
    #expect(try await cacher.name("me") == "ada")
    let newer = try JSONLogCacher<Person>(directory: folder.url, schema: "person 2")
    #expect(try await newer.entry(forKey: "me") == nil)
    try await newer.store("grace", for: "me")
    #expect(try await newer.name("me") == "grace")
  }

  @Test func `a file that was truncated or removed while it is open costs only its content`()
    async throws
  {
    try await cacher.store("ada", for: "a")
    let half = try Data(contentsOf: log())
    try await cacher.store("bob", for: "b")
    let handle = try FileHandle(forUpdating: log())
    try handle.truncate(atOffset: UInt64(half.count))
    #expect(try await cacher.name("a") == "ada")
    #expect(try await cacher.name("b") == nil)

    try FileManager.default.removeItem(at: folder.url)
    #expect(try await cacher.name("a") == nil)
    try await cacher.store("grace", for: "a")
    #expect(try await cacher.name("a") == "grace")
    #expect(try await reopened().name("a") == "grace")
  }

  @Test func `a log that cannot be opened is an error that says why`() throws {
    try FileManager.default.removeItem(at: folder.url)
    try Data([1]).write(to: folder.url)
    let error = #expect(throws: StorageError.self) { try reopened() }
    #expect(error?.description.contains("Not a directory (20)") == true)
    try FileManager.default.removeItem(at: folder.url)

    let path = try JSONLogCacher<Int>(directory: folder.url)
    _ = path
    let file = folder.files[0]
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    #expect(throws: StorageError.self) { try JSONLogCacher<Int>(directory: folder.url) }
    try FileManager.default.removeItem(at: file)
    #expect(mkfifo(file.path(percentEncoded: false), 0o600) == 0)
    #expect(throws: StorageError.self) { try JSONLogCacher<Int>(directory: folder.url) }
  }

  // MARK: - Several of them

  @Test func `two instances see what the other has stored, removed and compacted`() async throws {
    let other = try reopened()
    try await cacher.store("ada", for: "me")
    #expect(try await other.name("me") == "ada")
    try await other.store("grace", for: "me")
    #expect(try await cacher.name("me") == "grace")
    for round in 0..<25 {
      try await cacher.store(String(repeating: "x", count: 200), for: "k\(round % 3)")
    }
    #expect(try await other.name("me") == "grace")
    #expect(try await other.name("k1")?.utf8.count == 200)
    try await other.removeEntries(forKeys: ["me"])
    #expect(try await cacher.name("me") == nil)
    try await cacher.removeAllEntries()
    #expect(try await other.name("k1") == nil)
    try await other.store("back", for: "me")
    #expect(try await cacher.name("me") == "back")
  }

  @Test(.guarantee(.processesShareADirectory))
  func `instances that write at once lose and mix up nothing`() async throws {
    let cachers = try (0..<4).map { _ in try reopened() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, cacher) in cachers.enumerated() {
        group.addTask {
          for round in 0..<20 {
            let filling = String(repeating: "x", count: 100)
            try await cacher.store([
              "shared": CacheEntry("\(number) \(round) \(filling)"),
              "own \(number)": CacheEntry("\(round)"),
            ])
            #expect(try await cacher.name("shared") != nil)
            #expect(try await cacher.name("own \(number)") == "\(round)")
            try await cacher.removeEntries(forKeys: ["absent", "gone \(number)"])
          }
        }
      }
      try await group.waitForAll()
    }
    for number in 0..<4 { #expect(try await reopened().name("own \(number)") == "19") }
    #expect(try await reopened().name("shared")?.contains(" 19 ") == true)
  }

  // MARK: - Size

  @Test(.guarantee(.logCompactsItself))
  func `obsolete bytes do not exceed half of the file for long`() async throws {
    let filling = String(repeating: "x", count: 500)
    for round in 0..<50 { try await cacher.store("\(round) \(filling)", for: "\(round % 5)") }
    #expect(folder.byteCount <= 2 * 5 * 600)
    #expect(folder.names.count == 1)
    for key in 0..<5 { #expect(try await reopened().name("\(key)") == "\(45 + key) \(filling)") }
  }

  @Test(.guarantee(.byteLimitIsMetFirst))
  func `before the file exceeds the limit the oldest by time of storing are removed`()
    async throws
  {
    try await cacher.store("0", for: "0", at: 3000)
    let size = folder.byteCount - 78
    let limited = try JSONLogCacher<Person>(directory: folder.url, byteLimit: 78 + 3 * size)
    try await limited.store("1", for: "1", at: 1000)
    try await limited.store("2", for: "2", at: 2000)
    #expect(folder.byteCount == 78 + 3 * size)
    try await limited.store("3", for: "3", at: 4000)
    #expect(try await limited.name("1") == nil)
    for key in ["0", "2", "3"] { #expect(try await limited.name(key) == key) }
    try await limited.store("4", for: "3", at: 5000)
    for key in ["0", "2"] { #expect(try await limited.name(key) == key) }
    #expect(try await limited.name("3") == "4")
    #expect(folder.byteCount <= 78 + 3 * size)
    try await limited.removeEntries(forKeys: ["2"])
    #expect(try await limited.name("2") == nil)
    #expect(try logByteCount() <= 78 + 3 * size)
  }

  @Test func `entries that another cacher has removed do not count toward the limit`() async throws
  {
    try await cacher.store("0", for: "0", at: 0)
    let size = folder.byteCount - 78
    let limited = try JSONLogCacher<Person>(directory: folder.url, byteLimit: 78 + 3 * size)
    for round in 1...5 {
      try await cacher.removeAllEntries()
      for number in 0..<3 { try await limited.store("\(round)", for: "\(number)", at: round) }
      for number in 0..<3 { #expect(try await limited.name("\(number)") == "\(round)") }
    }
  }

  @Test func `a log cacher refuses an entry larger than the limit, and evicts nothing for it`()
    async throws
  {
    let limited = try JSONLogCacher<Person>(directory: folder.url, byteLimit: 300)
    try await limited.store("ada", for: "me")
    let large = String(repeating: "x", count: 300)
    let error = try await #require(throws: CacherError.self) {
      try await limited.store(["me": CacheEntry(large), "you": CacheEntry("bob")])
    }
    #expect(error.keys == ["me"])
    guard case .entryTooLarge(_, limit: 300)? = error.failures["me"] as? StorageError else {
      Issue.record("\(error)")
      return
    }
    #expect(try await limited.name("me") == "ada")
    #expect(try await limited.name("you") == "bob")
  }

  @Test func `a log cacher keeps the newest entries of a batch larger than the limit`() async throws
  {
    let limited = try JSONLogCacher<Person>(directory: folder.url, byteLimit: 2_000)
    var entries: [String: CacheEntry<Person>] = [:]
    for number in 0..<100 { entries["\(number)"] = CacheEntry("\(number)", at: number) }
    try await limited.store(entries)
    #expect(folder.byteCount <= 2_000)
    var kept: [Int] = []
    for number in 0..<100 where try await limited.entry(forKey: "\(number)") != nil {
      kept.append(number)
    }
    #expect(kept.count > 20)
    #expect(kept == Array((100 - kept.count)..<100))
  }

  @Test func `a limit above 1 MiB is kept by making an eighth free`() async throws {
    let limit = 2 << 20
    let limited = try JSONLogCacher<Person>(directory: folder.url, byteLimit: limit)
    let large = String(repeating: "x", count: 50_000)
    var sizes: [Int] = []
    for number in 0..<60 {
      try await limited.store(large, for: "\(number)", at: number)
      sizes.append(folder.byteCount)
    }
    #expect(sizes.allSatisfy { $0 <= limit })
    #expect(zip(sizes, sizes.dropFirst()).count { $0 > $1 } == 4)
    #expect(try await limited.name("59") == large)
    #expect(try await limited.name("0") == nil)
  }

  @Test func `large batches and values are stored in full`() async throws {
    var entries: [String: CacheEntry<Person>] = [:]
    for number in 0..<300 {
      entries["\(number)"] = CacheEntry(String(repeating: "\(number) ", count: 2_000))
    }
    entries["huge"] = CacheEntry(String(repeating: "huge", count: 500_000))
    try await cacher.store(entries)
    let reopened = try reopened()
    for (key, entry) in entries { #expect(try await reopened.entry(forKey: key) == entry) }
  }

  @Test(.startsProcess)
  func `for a log cacher, a directory that is no file URL and a limit of nothing are mistakes`()
    async
  {
    await #expect(processExitsWith: .failure) {
      _ = try JSONLogCacher<Person>(directory: URL(string: "https://example.com"))
    }
    await #expect(processExitsWith: .failure) { _ = try JSONLogCacher<Person>(byteLimit: -1) }
  }
}
