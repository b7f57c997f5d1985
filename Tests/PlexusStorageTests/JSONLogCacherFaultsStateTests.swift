import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `A log cacher on a failing disk` {
  private let disk = SimulatedDisk()
  private let folder = "/cache"

  private var path: String { "\(folder)/\(FileNames(Person.self).log)" }

  private func open(byteLimit: Int? = nil) throws -> JSONLogCacher<Person> {
    try JSONLogCacher(path: folder, byteLimit: byteLimit, schema: nil, fileSystem: disk)
  }

  @Test(.guarantee(.crashesLeaveNoPartialEntry))
  func `on a full disk the batch is named and the older entries stay`() async throws {
    let cacher = try open()
    try await cacher.store(["a": CacheEntry("old a"), "b": CacheEntry("old b")])
    let size = disk.byteCount
    // A size limit for one of the two records, which is written and removed again.
    disk.setCapacity(size + 100)
    let error = try await #require(throws: CacherError.self) {
      try await cacher.store(["a": CacheEntry("new a"), "c": CacheEntry("new c")])
    }
    #expect(error.keys == ["a", "c"])
    #expect(
      error.failures["a"] as? StorageError == .system(operation: "pwrite", path: path, code: 28)
    )
    #expect(disk.byteCount == size)
    for cacher in [cacher, try open()] {
      #expect(try await cacher.name("a") == "old a")
      #expect(try await cacher.name("c") == nil)
    }
    disk.setCapacity(.max)
    try await cacher.store("new a", for: "a")
    #expect(try await cacher.name("a") == "new a")
  }

  @Test(.guarantee(.fullDisksAllowRemovals))
  func `a log is compacted on a full disk, and keeps entries that were not replaced`()
    async throws
  {
    let cacher = try open()
    let other = try open()
    try await cacher.store("first", for: "0")
    try await cacher.store(String(repeating: "x", count: 2_500), for: "a")
    try await cacher.store("last", for: "b")
    #expect(try await other.name("b") == "last")
    disk.setCapacity(disk.byteCount + 2_700)
    try await cacher.store(String(repeating: "y", count: 2_500), for: "a")
    try await cacher.store("short", for: "a")
    #expect(disk.byteCount < 600)
    for cacher in [cacher, other, try open()] {
      #expect(try await cacher.name("a") == "short")
      #expect(try await cacher.name("0") == "first")
      #expect(try await cacher.name("b") == "last")
    }
  }

  @Test(.guarantee(.fullDisksAllowRemovals)) func `entries can be removed on a full disk`()
    async throws
  {
    let cacher = try open()
    let other = try open()
    for key in ["a", "b", "c"] { try await cacher.store("old \(key)", for: key) }
    #expect(try await other.name("a") == "old a")
    disk.setCapacity(disk.byteCount)
    try await cacher.removeEntries(forKeys: ["a"])
    disk.crash(.nothing)
    for cacher in [try open(), try open()] {
      #expect(try await cacher.name("a") == nil)
      #expect(try await cacher.name("b") == "old b")
      #expect(try await cacher.name("c") == "old c")
    }
  }

  @Test(.guarantee(.fullDisksAllowRemovals))
  func `an entry that was removed on a full disk is removed for other instances, too`()
    async throws
  {
    let cacher = try open()
    let other = try open()
    for key in ["a", "b"] { try await cacher.store("old \(key)", for: key) }
    #expect(try await other.name("a") == "old a")
    disk.setCapacity(disk.byteCount)
    try await cacher.removeEntries(forKeys: ["a"])
    #expect(try await other.name("a") == nil)
    #expect(try await other.name("b") == "old b")
  }

  @Test(.guarantee(.fullDisksAllowRemovals)) func `everything can be removed on a full disk`()
    async throws
  {
    let cacher = try open()
    let other = try open()
    let filling = String(repeating: "x", count: 100)
    for key in ["a", "b"] { try await cacher.store(filling, for: key) }
    #expect(try await other.name("a") == filling)
    disk.setCapacity(disk.byteCount)
    try await cacher.removeAllEntries()
    for cacher in [cacher, other, try open()] {
      #expect(try await cacher.name("a") == nil)
      #expect(try await cacher.name("b") == nil)
    }
    try await other.store("new", for: "a")
    #expect(try await cacher.name("a") == "new")
  }

  @Test(.guarantee(.fullDisksAllowRemovals))
  func `entries with a prefix can be removed on a full disk`() async throws {
    let cacher = try open()
    let other = try open()
    let names = ["map/a", "map/b", "map", "other/a"]
    for key in names { try await cacher.store("old \(key)", for: key) }
    #expect(try await other.name("map/a") == "old map/a")
    disk.setCapacity(disk.byteCount)
    try await cacher.removeEntries(withPrefix: "map/")
    for cacher in [cacher, other, try open()] {
      #expect(try await cacher.name("map/a") == nil)
      #expect(try await cacher.name("map/b") == nil)
      #expect(try await cacher.name("map") == "old map")
      #expect(try await cacher.name("other/a") == "old other/a")
    }
    disk.crash(.nothing)
    #expect(try await open().name("map/b") == nil)
    #expect(try await open().name("other/a") == "old other/a")
  }

  @Test(.guarantee(.fullDisksAllowRemovals))
  func `a log is compacted on a full disk when entries with a prefix have been removed`()
    async throws
  {
    let cacher = try open()
    let other = try open()
    try await cacher.store("first", for: "0")
    for number in 0..<12 {
      try await cacher.store(String(repeating: "x", count: 500), for: "map/\(number)")
    }
    try await cacher.store("last", for: "z")
    #expect(try await other.name("z") == "last")
    disk.setCapacity(disk.byteCount)
    try await cacher.removeEntries(withPrefix: "map/")
    #expect(disk.byteCount < 600)
    for cacher in [cacher, other, try open()] {
      for number in 0..<12 { #expect(try await cacher.name("map/\(number)") == nil) }
      #expect(try await cacher.name("0") == "first")
      #expect(try await cacher.name("z") == "last")
    }
    // The freed space can be used.
    try await other.store(String(repeating: "y", count: 500), for: "map/0")
    #expect(try await cacher.name("map/0")?.count == 500)
  }

  @Test(.guarantee(.compactedLogsAreLockedFirst))
  func `a compacted log is locked before others can find it`() async throws {
    let cacher = try open()
    let found = Guarded<Bool?>(nil)
    disk.whenRenamed { [path] disk in
      guard let other = try? disk.open(path, .reading) else { return }
      let isLocked = (try? disk.tryLock(other, .exclusive)) == false
      found.withLock { $0 = isLocked }
      disk.close(other)
    }
    // The file is created, which renames nothing, and compacted by the second entry.
    try await cacher.store(String(repeating: "x", count: 5_000), for: "a")
    try await cacher.store("short", for: "a")
    #expect(found.withLock { $0 } == true)
    // Another instance can lock it afterwards.
    try await open().store("other", for: "b")
    #expect(try await cacher.name("a") == "short")
    #expect(try await cacher.name("b") == "other")
  }

  @Test(.guarantee(.readsDoNotWaitForWriters))
  func `reading waits for no process that keeps the file locked`() async throws {
    let cacher = try open()
    let writer = try open()
    try await writer.store("old", for: "a")
    #expect(try await cacher.name("a") == "old")
    try await writer.store("new", for: "a")
    try await writer.store("new", for: "b")
    let other = try #require(try disk.open(path, .updating))
    #expect(try disk.tryLock(other, .exclusive))
    // A record that the other process has written partly.
    let whole = try #require(disk.content(at: path))
    try disk.write([0xff, 0x50, 1, 0, 3], to: other, at: whole.count)
    for cacher in [cacher, try open()] {
      #expect(try await cacher.name("a") == "new")
      #expect(try await cacher.name("b") == "new")
    }
    #expect(disk.content(at: path)?.count == whole.count + 5, "It is the other process's to finish")
    disk.close(other)
    #expect(try await cacher.name("b") == "new")
    #expect(disk.content(at: path) == whole)
  }

  @Test func `a locked file is an error, and does not prevent reading`()
    async throws
  {
    let cacher = try open()
    try await cacher.store("old", for: "a")
    let other = try #require(try disk.open(path, .updating))
    #expect(try disk.tryLock(other, .exclusive))
    let error = try await #require(throws: CacherError.self) {
      try await cacher.store("new", for: "a")
    }
    #expect(error.failures["a"] as? StorageError == .locked(path: path))
    #expect(try await cacher.name("a") == "old")
    await #expect(throws: StorageError.locked(path: path)) { try await cacher.removeAllEntries() }
    disk.close(other)
    try await cacher.store("new", for: "a")
    #expect(try await cacher.name("a") == "new")
  }

  @Test func `what a compaction left behind is removed when the log is used again`() async throws {
    try await open().store("old", for: "a")
    disk.put([1, 2, 3], at: path + ".new")
    #expect(try await open().name("a") == "old")
    #expect(disk.paths == [path])
  }

  @Test
  func `an entry removed by a killed process is durably removed when removed again`()
    async throws
  {
    try await open().store(["a": CacheEntry("old a"), "b": CacheEntry("old b")])
    let killed = try open()
    #expect(try await killed.name("a") == "old a")
    // Nine calls that record the removal; flock, lstat, fstat, pwrite, and then fsync.
    disk.prepare(.stops(at: 14))
    await #expect(throws: CacherError.self) { try await killed.removeEntries(forKeys: ["a"]) }
    disk.kill()

    let survivor = try open()
    #expect(try await survivor.name("a") == nil)
    try await survivor.removeEntries(forKeys: ["a"])
    disk.crash(.nothing)
    #expect(try await open().name("a") == nil)
    #expect(try await open().name("b") == "old b")
  }

  @Test func `damage while a log is open is a miss, also after compaction`() async throws {
    let cacher = try open()
    try await cacher.store("kept", for: "kept")
    try await cacher.store("damaged", for: "damaged")
    var content = try #require(disk.content(at: path))
    content[content.count - 3] ^= 1
    let file = try #require(try disk.open(path, .updating))
    try disk.write(content, to: file, at: 0)
    disk.close(file)
    #expect(try await cacher.name("damaged") == nil)

    try await cacher.store(String(repeating: "x", count: 5_000), for: "junk")
    try await cacher.removeEntries(forKeys: ["junk"])
    #expect(disk.byteCount < 400)
    for cacher in [cacher, try open()] {
      #expect(try await cacher.name("damaged") == nil)
      #expect(try await cacher.name("kept") == "kept")
    }
  }

  /// A log in which one entry was replaced, one removed, and one is unchanged.
  private func fill() async throws -> [UInt8] {
    let cacher = try open()
    try await cacher.store("first", for: "removed")
    try await cacher.store("old", for: "replaced")
    try await cacher.store("kept", for: "kept")
    try await cacher.store("new", for: "replaced")
    try await cacher.removeEntries(forKeys: ["removed"])
    return try #require(disk.content(at: path))
  }

  @Test(.guarantee(.damagedEntriesAreMisses))
  func `whichever byte is changed, no value is wrong and none comes back`() async throws {
    let whole = try await fill()
    var readable = 0
    for index in whole.indices {
      for bit in 0..<8 {
        var damaged = whole
        damaged[index] ^= 1 << bit
        disk.put(damaged, at: path)
        let reopened = try open()
        #expect(try await reopened.name("removed") == nil, "byte \(index)")
        let replaced = try await reopened.name("replaced")
        #expect(replaced == nil || replaced == "new", "byte \(index)")
        let kept = try await reopened.name("kept")
        #expect(kept == nil || kept == "kept", "byte \(index)")
        if kept != nil { readable += 1 }
      }
    }
    #expect(readable > whole.count * 8 / 3)
  }

  @Test func `the rest of a write after a crash is truncated when the log is used again`()
    async throws
  {
    let whole = try await fill()
    let torn = LogRecord.encode(.entry, key: "torn", payload: "payload".utf8)
    for length in 1..<torn.count {
      disk.put(whole + torn.prefix(length), at: path)
      #expect(try await open().name("kept") == "kept")
      #expect(disk.content(at: path) == whole)
    }
  }

  @Test(.guarantee(.damagedEntriesAreMisses))
  func `a log cut at any length has what was stored until then, and stays usable`()
    async throws
  {
    let whole = try await fill()
    for length in 0...whole.count {
      disk.put(Array(whole.prefix(length)), at: path)
      let reopened = try open()
      let removed = try await reopened.name("removed")
      #expect(removed == nil || removed == "first" && length < whole.count)
      let replaced = try await reopened.name("replaced")
      #expect([nil, "old", "new"].contains(replaced))
      #expect(try await [nil, "kept"].contains(reopened.name("kept")))
      try await reopened.store("more", for: "more")
      let again = try open()
      #expect(try await again.name("more") == "more")
      #expect(try await again.name("replaced") == replaced)
      #expect(try await again.name("removed") == removed)
    }
  }

  @Test func `reading takes no lock and looks at the file once while nothing changes`() async throws
  {
    let cacher = try open()
    try await cacher.store("ada", for: "a")
    disk.prepare(nil)
    #expect(try await cacher.name("a") == "ada")
    // lstat and pread, and lstat of the record of marks.
    #expect(disk.callCount == 3)
  }

  @Test func `a batch is one write and one synchronisation`() async throws {
    let cacher = try open()
    try await cacher.store("ada", for: "a")
    var entries: [String: CacheEntry<Person>] = [:]
    for number in 0..<1_000 { entries["\(number)"] = CacheEntry("\(number)") }
    disk.prepare(nil)
    try await cacher.store(entries)
    // lstat of the record of marks; flock, lstat, fstat, pwrite, fsync; lstat, whether the folder has vanished.
    #expect(disk.callCount == 7)
  }
}
