import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `A file cacher on a failing disk` {
  private let folder = "/home/user/.cache/app"

  private func cacher(_ disk: SimulatedDisk, byteLimit: Int? = nil) -> JSONFileCacher<Person> {
    JSONFileCacher(path: folder, byteLimit: byteLimit, schema: nil, fileSystem: disk)
  }

  /// A disk with two entries.
  private func filledDisk(byteLimit: Int? = nil) async throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    try await cacher(disk, byteLimit: byteLimit).store([
      "a": CacheEntry("old a"), "b": CacheEntry("old b"),
    ])
    return disk
  }

  @Test
  func `what a writer left behind is removed at the first use, but not during a write`()
    async throws
  {
    let disk = try await filledDisk()
    disk.prepare(.stops(at: 9))
    _ = try? await cacher(disk).store("new", for: "a")
    disk.crash(.everything)
    let stray = try #require(disk.paths.first { $0.hasSuffix(".tmp") })

    let writer = try #require(try disk.open(folder, .folder))
    #expect(try disk.tryLock(writer, .shared))
    let patient = cacher(disk)
    #expect(try await patient.name("a") == "old a")
    #expect(disk.paths.contains(stray))

    disk.close(writer)
    #expect(try await patient.name("a") == "old a")
    #expect(!disk.paths.contains(stray))
  }

  @Test func `removing everything removes what a writer left behind, and no foreign files`()
    async throws
  {
    let disk = try await filledDisk()
    let names = FileNames(Person.self)
    disk.put([1], at: "\(folder)/\(names.temporary(7))")
    disk.put([1], at: "\(folder)/notes.txt")
    disk.put([1], at: "\(folder)/\(FileNames(type: "Account").file(forKey: "a"))")
    try await cacher(disk).removeAllEntries()
    let others = disk.paths.filter { !$0.hasSuffix(".removals") }
    #expect(others.map { $0.dropFirst(folder.count + 1).prefix(5) } == ["accou", "notes"])
  }

  @Test(.guarantee(.crashesLeaveNoPartialEntry))
  func `on a full disk what fits is stored and the rest is named`() async throws {
    let disk = try await filledDisk()
    disk.setCapacity(disk.byteCount + 400)
    var entries: [String: CacheEntry<Person>] = [:]
    for number in 0..<10 { entries["k\(number)"] = CacheEntry("\(number)") }
    let all = entries
    let error = try await #require(throws: CacherError.self) { try await cacher(disk).store(all) }
    #expect((1...9).contains(error.keys.count))
    for failure in error.failures.values {
      guard case .system("pwrite", _, 28)? = failure as? StorageError else {
        Issue.record("\(failure)")
        continue
      }
    }
    for key in all.keys {
      #expect(
        try await cacher(disk).name(key)
          == (error.keys.contains(key) ? nil : String(key.dropFirst()))
      )
    }
    #expect(try await cacher(disk).name("a") == "old a")
    #expect(!disk.paths.contains { $0.hasSuffix(".tmp") })
  }

  @Test func `on a full disk nothing is removed for the limit`() async throws {
    let disk = try await filledDisk(byteLimit: 400)
    disk.setCapacity(disk.byteCount)
    await #expect(throws: CacherError.self) {
      try await cacher(disk, byteLimit: 400).store(["c": CacheEntry("new c")])
    }
    #expect(try await cacher(disk).name("a") == "old a")
    #expect(try await cacher(disk).name("b") == "old b")
  }

  @Test(.guarantee(.unwrittenEntriesEvictNoFile))
  func `nothing is evicted for an entry that is not written, because it was removed since`()
    async throws
  {
    let disk = try await filledDisk(byteLimit: 400)
    let limited = cacher(disk, byteLimit: 400)
    try await limited.removeEntries(forKeys: ["x"])
    var entry = CacheEntry<Person>("new c", at: 1_800_000_000)
    entry.generation = limited.generation
    try await limited.removeEntries(forKeys: ["c"])
    try await limited.store(["c": entry])
    #expect(try await limited.name("c") == nil)
    #expect(try await limited.name("a") == "old a")
    #expect(try await limited.name("b") == "old b")
  }

  @Test(.guarantee(.unwrittenEntriesEvictNoFile))
  func `nothing is evicted for an entry that cannot take its place`() async throws {
    for stop in 0..<40 {
      let disk = try await filledDisk(byteLimit: 400)
      disk.prepare(.fails(at: stop, code: 5))
      let new = CacheEntry<Person>("new c", at: 1_800_000_000)
      try? await cacher(disk, byteLimit: 400).store(["c": new])
      disk.prepare(nil)
      let names = [try await cacher(disk).name("a"), try await cacher(disk).name("b")]
      let isStored = try await cacher(disk).name("c") != nil
      #expect(isStored || names == ["old a", "old b"], "\(stop)")
    }
  }

  @Test func `an entry from the future counts as the oldest for the limit`() async throws {
    let disk = SimulatedDisk()
    let limited = cacher(disk, byteLimit: 400)
    try await limited.store("future", for: "a", at: 4_000_000_000)
    try await limited.store("old", for: "b", at: 5)
    try await limited.store("new", for: "c", at: 10)
    #expect(try await limited.name("a") == nil)
    #expect(try await limited.name("b") == "old")
    #expect(try await limited.name("c") == "new")
  }

  @Test
  func `a locked folder makes storing fail, and does not prevent removing`()
    async throws
  {
    let disk = try await filledDisk()
    let other = try #require(try disk.open(folder, .folder))
    #expect(try disk.tryLock(other, .exclusive))
    let error = try await #require(throws: CacherError.self) {
      try await cacher(disk).store("new", for: "a")
    }
    #expect(error.failures["a"] as? StorageError == .locked(path: folder))
    #expect(try await cacher(disk).name("a") == "old a")
    try await cacher(disk).removeAllEntries()
    #expect(try await cacher(disk).name("a") == nil)
  }

  @Test func `a disk that cannot be read is an error, not a miss`() async throws {
    let disk = try await filledDisk()
    disk.prepare(.failsAlways(code: 5))
    await #expect(throws: StorageError.self) { try await cacher(disk).name("a") }
  }
}
