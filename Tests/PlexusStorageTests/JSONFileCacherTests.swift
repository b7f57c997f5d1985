import Foundation
import Plexus
import PlexusStorage
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A file cacher` {
  private let folder: TemporaryFolder
  private let cacher: JSONFileCacher<Person>

  init() throws {
    folder = try TemporaryFolder()
    cacher = JSONFileCacher(directory: folder.url)
  }

  private func reopened() -> JSONFileCacher<Person> { JSONFileCacher(directory: folder.url) }

  // MARK: - Entries

  @Test func `a file cacher returns what was stored, in full, also after it was opened again`()
    async throws
  {
    let times: [Duration] = [
      .zero, .seconds(-5), .seconds(1_700_000_000) + .nanoseconds(1),
      Duration(secondsComponent: 1, attosecondsComponent: 999_999_999_999_999_999),
      .seconds(Int64.max), .seconds(Int64.min),
      Duration(secondsComponent: -1, attosecondsComponent: -1),
    ]
    for time in times {
      let entry = CacheEntry(
        value: Person(name: "\u{0}\"\\/😀\n", age: nil),
        storedAt: time,
        validator: "W/\"1\""
      )
      try await cacher.store(["me": entry])
      #expect(try await cacher.entry(forKey: "me") == entry)
      #expect(try await reopened().entry(forKey: "me") == entry)
    }
  }

  @Test func `a time beyond what can be written is the nearest that can`() async throws {
    try await cacher.store([
      "me": CacheEntry(value: Person(name: ""), storedAt: .seconds(Int64.max) * 4)
    ])
    #expect(try await cacher.entry(forKey: "me")?.storedAt == .seconds(Int64.max))
  }

  @Test func `an entry from the future is returned as it was stored`() async throws {
    try await cacher.store("ada", for: "me", at: 99_000_000_000)
    #expect(try await cacher.entry(forKey: "me") == CacheEntry("ada", at: 99_000_000_000))
  }

  @Test func `a file cacher has no entry where nothing was stored, and creates nothing to see it`()
    async throws
  {
    #expect(try await cacher.entry(forKey: "me") == nil)
    #expect(cacher.generation == CacheGeneration())
    try await cacher.removeEntries(forKeys: [])
    try await cacher.store([:])
    #expect(!FileManager.default.fileExists(atPath: folder.path))
    // The removal is recorded for others, which can have values in memory.
    try await cacher.removeEntries(forKeys: ["me"])
    try await cacher.removeAllEntries()
    #expect(folder.names.count == 1 && folder.names[0].hasSuffix(".removals"))
    #expect(reopened().generation?.number == 2)
    #expect(try folder.permissions(of: folder.files[0]) == 0o600)
  }

  @Test func `a file cacher stores values of any JSON, also none, a number or a list`() async throws
  {
    let numbers = JSONFileCacher<Int>(directory: folder.url)
    let nothing = JSONFileCacher<Int?>(directory: folder.url)
    let lists = JSONFileCacher<[String: [Double]]>(directory: folder.url)
    try await numbers.store(["x": CacheEntry(value: 7, storedAt: .zero)])
    try await nothing.store(["x": CacheEntry(value: nil, storedAt: .zero)])
    try await lists.store(["x": CacheEntry(value: ["y": [0.1, -1e300]], storedAt: .zero)])
    #expect(try await numbers.value("x") == 7)
    #expect(try await nothing.entry(forKey: "x") == CacheEntry(value: nil, storedAt: .zero))
    #expect(try await lists.value("x") == ["y": [0.1, -1e300]])
  }

  @Test(.guarantee(.batchesStoreAsMuchAsPossible))
  func `a file cacher names what cannot be encoded, and stores the others`() async throws {
    let doubles = JSONFileCacher<Double>(directory: folder.url)
    let error = try await #require(throws: CacherError.self) {
      try await doubles.store([
        "a": CacheEntry(value: 1, storedAt: .zero), "b": CacheEntry(value: .nan, storedAt: .zero),
      ])
    }
    #expect(error.keys == ["b"])
    #expect(error.failures["b"] is EncodingError)
    #expect(try await doubles.value("a") == 1)
  }

  @Test func `the file is one JSON object with the key and the value in it`() async throws {
    try await cacher.store(["me": CacheEntry("ada", validator: "tag")])
    let file = try #require(folder.files.first)
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
    )
    let entry = try #require(object["entry"] as? [String: Any])
    #expect(entry["key"] as? String == "me")
    #expect(entry["schema"] as? String == "PlexusStorageTests.Person")
    #expect((entry["value"] as? [String: Any])?["name"] as? String == "ada")
    #expect(file.lastPathComponent.hasSuffix(".me.json"))
  }

  // MARK: - Removing

  @Test func `a file cacher removes some entries, or all, durably`() async throws {
    try await cacher.store(["a": CacheEntry("a"), "b": CacheEntry("b"), "B": CacheEntry("B")])
    try await cacher.removeEntries(forKeys: ["a", "absent"])
    #expect(try await reopened().name("a") == nil)
    #expect(try await reopened().name("b") == "b")
    #expect(try await reopened().name("B") == "B")
    try await cacher.removeAllEntries()
    #expect(try await reopened().name("B") == nil)
    #expect(folder.names.filter { !$0.hasSuffix(".removals") } == [])
    try await cacher.store("again", for: "a")
    #expect(try await cacher.name("a") == "again")
  }

  @Test func `a file cacher names what a cancelled store omits, and completes a cancelled removal`()
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

  // MARK: - Keys

  @Test(.guarantee(.fileNamesAreSafeAndUnique))
  func `hostile keys have a file each inside the directory, and their own value`()
    async throws
  {
    var entries: [String: CacheEntry<Person>] = [:]
    for (index, key) in hostileKeys.enumerated() { entries[key] = CacheEntry("\(index)") }
    try await cacher.store(entries)
    #expect(folder.names.count == hostileKeys.count)
    #expect(Set(folder.names.map { $0.lowercased() }).count == hostileKeys.count)
    #expect(folder.names.allSatisfy { $0.utf8.count <= 120 })
    let parent = folder.url.deletingLastPathComponent().path(percentEncoded: false)
    #expect(try FileManager.default.contentsOfDirectory(atPath: parent).count == 1)
    for (index, key) in hostileKeys.enumerated() {
      #expect(try await reopened().name(key) == "\(index)")
    }
    try await cacher.removeEntries(forKeys: ["A", ".."])
    #expect(try await cacher.name("a") != nil)
    #expect(try await cacher.name("A") == nil)
  }

  @Test(.guarantee(.fileNamesAreSafeAndUnique))
  func `the stored key is compared when a file is read`() async throws {
    try await cacher.store("ada", for: "a")
    try await cacher.store("bob", for: "b")
    let files = folder.files
    try Data(contentsOf: files[0]).write(to: files[1])
    #expect(try await cacher.name("b") == nil)
    #expect(try await cacher.name("a") == "ada")
  }

  @Test(.guarantee(.filesBelongToTheirOwner)) func `only the owner can read files and folders`()
    async throws
  {
    try await cacher.store("ada", for: "a")
    #expect(try folder.permissions(of: folder.url) == 0o700)
    #expect(try folder.permissions(of: folder.files[0]) == 0o600)
  }

  @Test func `a directory that exists keeps its permissions`() async throws {
    try FileManager.default.createDirectory(
      at: folder.url,
      withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o750]
    )
    try await cacher.store("ada", for: "a")
    #expect(try folder.permissions(of: folder.url) == 0o750)
  }

  // MARK: - Damage

  @Test(.guarantee(.damagedEntriesAreMisses))
  func `whichever byte of a file is changed, it is a miss`() async throws {
    try await cacher.store(["me": CacheEntry("ada", validator: "tag")])
    let file = folder.files[0]
    let whole = try Data(contentsOf: file)
    for index in whole.indices {
      for change: UInt8 in [1, 0x20, 0x80, 0xff] {
        var damaged = whole
        damaged[index] ^= change
        try damaged.write(to: file)
        #expect(try await cacher.entry(forKey: "me") == nil, "byte \(index) with \(change)")
      }
    }
  }

  @Test(.guarantee(.damagedEntriesAreMisses))
  func `a file cut at any length or made longer is a miss`() async throws {
    try await cacher.store("ada", for: "me")
    let file = folder.files[0]
    let whole = try Data(contentsOf: file)
    for length in 0..<whole.count {
      try whole.prefix(length).write(to: file)
      #expect(try await cacher.entry(forKey: "me") == nil, "cut at \(length)")
    }
    try (whole + [10]).write(to: file)
    #expect(try await cacher.entry(forKey: "me") == nil)
    try await cacher.store("ada", for: "me")
    #expect(try await cacher.name("me") == "ada")
  }

  @Test(.guarantee(.damagedEntriesAreMisses))
  func `an entry of another schema, or of a value that has changed, is a miss`()
    async throws
  {
    try await cacher.store("ada", for: "me")
    let newer = JSONFileCacher<Person>(directory: folder.url, schema: "person 2")
    #expect(try await newer.entry(forKey: "me") == nil)
    enum Changed {
      struct Person: Codable, Sendable { var surname: String }
    }
    let changed = JSONFileCacher<Changed.Person>(directory: folder.url)
    #expect(try await changed.entry(forKey: "me") == nil)
    try await newer.store("grace", for: "me")
    #expect(try await cacher.entry(forKey: "me") == nil)
    #expect(try await newer.name("me") == "grace")
  }

  @Test func `a folder, a link or a pipe in place of a file is no entry, and delays no other`()
    async throws
  {
    try await cacher.store("ada", for: "me")
    let file = folder.files[0]
    let path = file.path(percentEncoded: false)
    let elsewhere = folder.url.deletingLastPathComponent().appending(path: "elsewhere")
    try FileManager.default.moveItem(at: file, to: elsewhere)

    try FileManager.default.createSymbolicLink(at: file, withDestinationURL: elsewhere)
    await #expect(throws: StorageError.self) { try await cacher.entry(forKey: "me") }
    try await cacher.store("grace", for: "me")
    #expect(try Data(contentsOf: elsewhere).count == Data(contentsOf: file).count - 2)
    try FileManager.default.removeItem(at: file)

    #expect(mkfifo(path, 0o600) == 0)
    #expect(try await cacher.entry(forKey: "me") == nil)
    try FileManager.default.removeItem(at: file)

    try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    #expect(try await cacher.entry(forKey: "me") == nil)
    await #expect(throws: CacherError.self) { try await cacher.store("ada", for: "me") }
  }

  @Test(.guarantee(.foreignObjectsAffectNoOtherFile), arguments: [false, true])
  func `a folder or a link in place of a file delays no other file, and no removal`(
    isFolder: Bool
  ) async throws {
    let keys: Set = ["map/a", "map/b", "other/c"]
    try await cacher.store(Dictionary(uniqueKeysWithValues: keys.map { ($0, CacheEntry($0)) }))
    let file = try #require(folder.files.first { $0.lastPathComponent.hasSuffix("=b.json") })
    try FileManager.default.removeItem(at: file)
    if isFolder {
      try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    } else {
      try FileManager.default.createSymbolicLink(at: file, withDestinationURL: folder.url)
    }
    #expect(Set(try await cacher.entries(forKeys: keys).keys) == ["map/a", "other/c"])
    if isFolder { try await cacher.removeEntries(forKeys: ["map/b"]) }
    try await cacher.removeEntries(withPrefix: "map/")
    #expect(Set(try await cacher.entries(forKeys: keys).keys) == ["other/c"])
    try await cacher.removeAllEntries()
    #expect(try await cacher.entries(forKeys: keys).isEmpty)
  }

  @Test(.guarantee(.foreignObjectsAffectNoOtherFile))
  func `files that cannot be read are an error if there are no others`() async throws {
    try await cacher.store("ada", for: "me")
    let file = folder.files[0]
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createSymbolicLink(at: file, withDestinationURL: folder.url)
    await #expect(throws: StorageError.self) { try await cacher.entries(forKeys: ["me", "you"]) }
  }

  @Test func `a directory that cannot be one is an error that says why`() async throws {
    try Data([1]).write(to: folder.url)
    let error = try await #require(throws: CacherError.self) {
      try await cacher.store("ada", for: "me")
    }
    #expect(error.description.contains("me: open failed for \(folder.path.dropLast())"))
    #expect(error.description.contains("Not a directory (20)"))
    await #expect(throws: StorageError.self) { try await cacher.entry(forKey: "me") }
  }

  // MARK: - Several of them

  @Test func `two instances on one directory see what the other has stored and removed`()
    async throws
  {
    let other = reopened()
    try await cacher.store("ada", for: "me")
    #expect(try await other.name("me") == "ada")
    try await other.store("grace", for: "me")
    #expect(try await cacher.name("me") == "grace")
    try await cacher.removeAllEntries()
    #expect(try await other.name("me") == nil)
  }

  @Test(.guarantee(.processesShareADirectory))
  func `two instances that write at once lose and mix up nothing`() async throws {
    let cachers = [cacher, reopened(), JSONFileCacher(directory: folder.url, byteLimit: 1 << 20)]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, cacher) in cachers.enumerated() {
        group.addTask {
          for round in 0..<10 {
            try await cacher.store([
              "shared": CacheEntry("\(number) \(round)"), "own \(number)": CacheEntry("\(round)"),
            ])
            #expect(try await cacher.name("shared") != nil)
          }
        }
      }
      try await group.waitForAll()
    }
    for number in 0..<3 { #expect(try await reopened().name("own \(number)") == "9") }
    #expect(try await cacher.name("shared")?.hasSuffix(" 9") == true)
    #expect(folder.names.count == 4)
  }

  @Test func `cachers of several types share a directory without meeting`() async throws {
    let numbers = JSONFileCacher<Int>(directory: folder.url, byteLimit: 200)
    try await cacher.store("ada", for: "1")
    try await numbers.store(["1": CacheEntry(value: 7, storedAt: .zero)])
    #expect(try await cacher.name("1") == "ada")
    #expect(try await numbers.value("1") == 7)
    try await numbers.removeAllEntries()
    #expect(try await cacher.name("1") == "ada")
  }

  // MARK: - Limit

  @Test(.guarantee(.byteLimitIsMetFirst))
  func `before a new entry exceeds the limit the oldest by time of storing are removed`()
    async throws
  {
    try await cacher.store("0", for: "0", at: 1000)
    let size = folder.byteCount
    let limited = JSONFileCacher<Person>(directory: folder.url, byteLimit: 3 * size)
    try await limited.store("2", for: "2", at: 3000)
    try await limited.store("1", for: "1", at: 2000)
    #expect(folder.byteCount == 3 * size)
    try await limited.store("3", for: "3", at: 4000)
    #expect(try await limited.name("0") == nil)
    try await limited.store(["4": CacheEntry("4", at: 5000), "5": CacheEntry("5", at: 6000)])
    #expect(try await limited.name("1") == nil)
    #expect(try await limited.name("2") == nil)
    for key in ["3", "4", "5"] { #expect(try await limited.name(key) == key) }
    #expect(folder.byteCount == 3 * size)
    try await limited.store("6", for: "3", at: 7000)
    for key in ["4", "5"] { #expect(try await limited.name(key) == key) }
    #expect(try await limited.name("3") == "6")
  }

  @Test(arguments: [false, true])
  func `files that others have removed do not count toward the limit`(byCacher: Bool) async throws {
    try await cacher.store("0", for: "0", at: 0)
    let limited = JSONFileCacher<Person>(directory: folder.url, byteLimit: 3 * folder.byteCount)
    for round in 1...5 {
      if byCacher {
        try await reopened().removeAllEntries()
      } else {
        for file in folder.files { try FileManager.default.removeItem(at: file) }
      }
      for number in 0..<3 { try await limited.store("\(round)", for: "\(number)", at: round) }
      for number in 0..<3 { #expect(try await limited.name("\(number)") == "\(round)") }
    }
  }

  @Test func `a file cacher refuses an entry larger than the limit, and evicts nothing for it`()
    async throws
  {
    let limited = JSONFileCacher<Person>(directory: folder.url, byteLimit: 300)
    try await limited.store("ada", for: "me")
    let large = String(repeating: "x", count: 300)
    let error = try await #require(throws: CacherError.self) {
      try await limited.store(large, for: "me")
    }
    guard case .entryTooLarge(let count, limit: 300)? = error.failures["me"] as? StorageError else {
      Issue.record("\(error)")
      return
    }
    #expect(count > 300)
    #expect(error.description.contains("Raise the byte limit"))
    #expect(try await limited.name("me") == "ada")
  }

  @Test func `a file cacher keeps the newest entries of a batch larger than the limit`()
    async throws
  {
    let limited = JSONFileCacher<Person>(directory: folder.url, byteLimit: 2_000)
    var entries: [String: CacheEntry<Person>] = [:]
    for number in 0..<100 { entries["\(number)"] = CacheEntry("\(number)", at: number) }
    try await limited.store(entries)
    #expect(folder.byteCount <= 2_000)
    for number in 0..<100 {
      let isKept = number >= 100 - folder.names.count
      #expect(try await (limited.name("\(number)") != nil) == isKept)
    }
  }

  // MARK: - Creating

  @Test(.guarantee(.byteLimitIsMetFirst), .startsProcess)
  func `the default directory is the program's own in the user's caches`()
    async
  {
    await #expect(processExitsWith: .success) {
      let root = FileManager.default.temporaryDirectory.appending(
        path: "plexus-\(UInt64.random(in: 0 ... .max))"
      )
      defer { try? FileManager.default.removeItem(at: root) }
      setenv("XDG_CACHE_HOME", root.path(percentEncoded: false), 1)
      try await JSONFileCacher<Person>().store("ada", for: "me")
      let name = ProcessInfo.processInfo.processName
      let folder = root.appending(path: name).appending(path: "plexus")
      let names = try FileManager.default.contentsOfDirectory(
        atPath: folder.path(percentEncoded: false)
      )
      #expect(names.count == 1)

      setenv("XDG_CACHE_HOME", "relative", 1)
      setenv("HOME", root.path(percentEncoded: false), 1)
      try await JSONFileCacher<Person>().store("ada", for: "me")
      let home = root.appending(path: ".cache").path(percentEncoded: false)
      #expect(try FileManager.default.contentsOfDirectory(atPath: home) == [name])
    }
  }

  @Test(.startsProcess)
  func `for a file cacher, a directory that is no file URL and a limit of nothing are mistakes`()
    async
  {
    await #expect(processExitsWith: .failure) {
      _ = JSONFileCacher<Person>(directory: URL(string: "https://example.com"))
    }
    await #expect(processExitsWith: .failure) { _ = JSONFileCacher<Person>(byteLimit: 0) }
  }
}
