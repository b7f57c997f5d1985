import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce, .serialized)
struct `A folder that vanishes during a write` {
  /// Stores two entries in a folder that vanishes, beside one that was stored before.
  private func store(
    _ kind: CacherKind,
    byteLimit: Int? = nil,
    vanishing: @escaping @Sendable (_ call: Int, _ operation: String) -> Bool
  ) async throws -> (disk: VanishingFolder, error: (any Error)?, areStored: Bool) {
    let folder = try TemporaryFolder()
    let disk = VanishingFolder(folder.path)
    let cacher = try open(kind, folder.path, byteLimit, disk)
    try await cacher.store(["before": CacheEntry("before")])
    try await cacher.removeEntries(forKeys: ["before"])
    disk.vanish(at: vanishing)
    var caught: (any Error)?
    do {
      try await cacher.store(["ada": CacheEntry("ada"), "grace": CacheEntry("grace")])
    } catch {
      caught = error
    }
    let reader = try kind.open(folder.path)
    let names = [try await reader.name("ada"), try await reader.name("grace")]
    return (disk, caught, names == ["ada", "grace"])
  }

  private func open(
    _ kind: CacherKind,
    _ path: String,
    _ byteLimit: Int?,
    _ disk: VanishingFolder
  ) throws -> any Cacher<Person> {
    switch kind {
    case .files:
      JSONFileCacher(path: path, byteLimit: byteLimit, schema: nil, fileSystem: disk)
    case .log:
      try JSONLogCacher(path: path, byteLimit: byteLimit, schema: nil, fileSystem: disk)
    }
  }

  @Test(.guarantee(.vanishedFoldersAreMadeOrFail), arguments: CacherKind.allCases, [nil, 100_000])
  private func `a folder that vanishes during a write is made again, at whichever call it vanishes`(
    kind: CacherKind,
    byteLimit: Int?
  ) async throws {
    for number in 1...200 {
      let run = try await store(kind, byteLimit: byteLimit) { call, _ in call == number }
      guard run.disk.hasVanished else { return }
      let error = run.error.map { "\($0)" }
      #expect(error == nil, "after call \(number)")
      // After the last call, the entries were there.
      #expect(run.areStored || run.disk.isOver, "after call \(number)")
    }
    Issue.record("The number of calls is unknown")
  }

  @Test(
    .guarantee(.vanishedFoldersAreMadeOrFail),
    arguments: CacherKind.allCases,
    ["write", "rename", "fsync", "fsync folder", "open"]
  )
  private func `a folder that vanishes again and again during a write is an error`(
    kind: CacherKind,
    operation: String
  ) async throws {
    let run = try await store(kind) { _, name in name == operation }
    #expect(run.error != nil || run.areStored || !run.disk.hasVanished)
  }
}

/// The files of the system, whose folder is removed after chosen calls.
private final class VanishingFolder: FileSystem {
  private struct State {
    var calls = 0
    var isVanishing: (@Sendable (_ call: Int, _ operation: String) -> Bool)?
    var last: Int?
  }

  private let base = POSIXFileSystem()
  private let path: String
  private let state = Guarded(State())

  init(_ path: String) {
    self.path = path
  }

  /// Counts calls from here on, and removes the folder after those for which the closure returns `true`.
  func vanish(at isVanishing: @escaping @Sendable (_ call: Int, _ operation: String) -> Bool) {
    state.withLock { $0 = State(isVanishing: isVanishing) }
  }

  /// Whether the folder was removed after the last call, or was not removed.
  var isOver: Bool { state.withLock { $0.last == nil || $0.last == $0.calls } }

  /// Whether the folder was removed.
  var hasVanished: Bool { state.withLock { $0.last != nil } }

  private func call<Result>(_ operation: String, _ body: () throws -> Result) rethrows -> Result {
    defer {
      let vanishes = state.withLock { state in
        state.calls += 1
        guard state.isVanishing?(state.calls, operation) == true else { return false }
        state.last = state.calls
        return true
      }
      if vanishes { try? FileManager.default.removeItem(atPath: path) }
    }
    return try body()
  }

  func makeFolder(_ path: String) throws -> Bool { try call("mkdir") { try base.makeFolder(path) } }

  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor? {
    try call("open") { try base.open(path, mode) }
  }

  func close(_ descriptor: Descriptor) { base.close(descriptor) }

  func status(of descriptor: Descriptor) throws -> FileStatus {
    try call("fstat") { try base.status(of: descriptor) }
  }

  func status(atPath path: String) throws -> FileStatus? {
    try call("lstat") { try base.status(atPath: path) }
  }

  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8] {
    try call("read") { try base.read(descriptor, at: offset, count: count) }
  }

  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws {
    try call("write") { try base.write(bytes, to: descriptor, at: offset) }
  }

  func setLength(of descriptor: Descriptor, to length: Int) throws {
    try call("truncate") { try base.setLength(of: descriptor, to: length) }
  }

  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws {
    try call("utimes") { try base.setModificationTime(of: descriptor, to: time) }
  }

  func synchronize(_ descriptor: Descriptor) throws {
    try call(descriptor.path == path ? "fsync folder" : "fsync") {
      try base.synchronize(descriptor)
    }
  }

  func rename(_ path: String, to newPath: String) throws {
    try call("rename") { try base.rename(path, to: newPath) }
  }

  func remove(_ path: String) throws -> Bool { try call("unlink") { try base.remove(path) } }

  func names(inFolder path: String) throws -> [String] {
    try call("opendir") { try base.names(inFolder: path) }
  }

  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool {
    try call("flock") { try base.tryLock(descriptor, kind) }
  }

  func unlock(_ descriptor: Descriptor) { base.unlock(descriptor) }

  func pause() async { await base.pause() }

  func now() -> Duration { base.now() }
}
