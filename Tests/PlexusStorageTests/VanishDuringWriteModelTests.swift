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
