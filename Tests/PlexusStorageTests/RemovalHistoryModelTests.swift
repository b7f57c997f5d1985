import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `A history of removals` {
  private let disk = SimulatedDisk()
  private let path = "/cache/x.removals"

  private func open() -> RemovalHistory {
    RemovalHistory(path: path, folder: "/cache", fileSystem: disk)
  }

  private func outdated(
    _ history: RemovalHistory,
    _ keys: [String],
    _ generation: CacheGeneration
  ) throws -> Set<String> {
    try history.outdated(keys.map { .init(key: $0, generation: generation) })
  }

  /// Whether a key has been removed since a number, determined from all removals.
  private func isOutdated(
    _ key: String,
    since number: Int,
    _ removals: [RemovalHistory.Removal]
  ) -> Bool {
    if number < removals.count - Int(RemovalHistory.capacity) { return true }
    return removals[number...].contains { removal in
      switch removal {
      case .everything: true
      case .key(let removed): removed == key
      case .prefix(let prefix): key.utf8.starts(with: prefix.utf8)
      }
    }
  }

  @Test
  func `a history of removals keeps a bounded number of refreshes, and judges by all of them`() {
    var marks = StoredMarks(epoch: 1)
    for key in 0..<10_000 {
      marks.note(.init(.refreshedKey, "\(key)"))
      #expect(marks.numbers.count <= StoredMarks.limit)
    }
    for key in [0, 5_000, 9_999] {
      let verdict = marks.judge("\(key)", tags: [], since: .init(epoch: 1, marks: UInt64(key)))
      #expect(verdict.isOutdated)
    }
    #expect(!marks.judge("9999", tags: [], since: .init(epoch: 1, marks: 10_000)).isOutdated)
  }

  @Test(arguments: 0..<8)
  func `a history of removals reports removals since any generation, also to others`(
    seed: Int
  ) async throws {
    var random = SeededRandom(seed: UInt64(seed))
    let histories = [open(), open()]
    let keys = ["", "a", "b", "a/", "a/1", "a/2", "b/1", "\u{e9}/1"]
    let all: [RemovalHistory.Removal] = keys.map { .key($0) } + [.prefix("a/"), .prefix("")]
    var removals: [RemovalHistory.Removal] = []
    var generations = [histories[0].generation]
    for round in 0..<200 {
      let count = round % 40 == 39 ? Int.random(in: 1...1_500, using: &random) : 1
      var batch: [RemovalHistory.Removal] = []
      for _ in 0..<count {
        let isComplete = Int.random(in: 0..<40, using: &random) == 0
        batch.append(isComplete ? .everything : all[.random(in: all.indices, using: &random)])
      }
      try await histories[round % 2].note(batch)
      removals += batch
      generations.append(histories[(round + seed) % 2].generation)
      #expect(generations.last?.number == UInt64(removals.count))
      for generation in [generations.randomElement(using: &random), generations.last] {
        guard let generation else { continue }
        let expected = keys.filter { isOutdated($0, since: Int(generation.number), removals) }
        #expect(try outdated(histories[round % 2], keys, generation) == Set(expected))
      }
    }
  }

  @Test func `a history of removals counts what cannot be read as a removal of everything`()
    async throws
  {
    let history = open()
    try await history.note([.key("a")])
    let first = history.generation
    try await history.note([.key("b")])
    #expect(try outdated(history, ["a", "b"], first) == ["b"])
    var content = try #require(disk.content(at: path))
    content[32 + 56 + 20] ^= 1
    disk.put(content, at: path)
    #expect(try outdated(history, ["a", "b"], first) == ["a", "b"])
    #expect(try outdated(history, ["a", "b"], history.generation) == [])
    // The largest number, which has no successor.
    content.replaceSubrange(
      16..<32,
      with: Array(repeating: 0xff, count: 8) + Array(repeating: 0, count: 8)
    )
    disk.put(content, at: path)
    #expect(try outdated(history, ["a"], first) == ["a"])
    try await history.note([.key("d")])
    #expect(try outdated(history, ["a"], first) == ["a"])
    disk.put([1, 2, 3], at: path)
    #expect(try outdated(history, ["a"], first) == ["a"])
    #expect(try outdated(history, ["a"], CacheGeneration()) == ["a"])
    try await open().note([.key("c")])
    #expect(try outdated(history, ["a"], first) == ["a"], "Another epoch")
    #expect(try outdated(history, ["a", "c"], open().generation) == [])
  }

  @Test func `a history of removals that cannot be read is started again, unless it is locked`()
    async throws
  {
    let history = open()
    disk.put(Array(repeating: 0, count: 88), at: path)
    let other = try #require(try disk.open(path, .updating))
    #expect(try disk.tryLock(other, .shared))
    #expect(history.generation == CacheGeneration())
    disk.unlock(other)
    let first = history.generation
    #expect(first.epoch != 0 && open().generation == first)
    #expect(try outdated(history, ["a"], CacheGeneration()) == ["a"])
    #expect(try outdated(history, ["a"], first) == [])
    disk.put([], at: path)
    #expect(history.generation == CacheGeneration(), "Nothing has been removed")
  }

  @Test func `a history of removals that was started again by others contains only what came then`()
    async throws
  {
    let history = open()
    try await history.note([.key("c")])
    let before = history.generation
    try await history.note([.key("a")])
    let old = history.generation
    let new = CacheGeneration()
    _ = try disk.remove(path)
    // The file that was open still shows what was removed before.
    #expect(history.generation == new)
    #expect(try outdated(history, ["a", "b"], old) == [])
    #expect(try outdated(history, ["a", "b"], before) == ["a"])
    #expect(try outdated(open(), ["a", "b"], old) == ["a", "b"], "It was never open here")
    #expect(try outdated(history, ["a", "b"], new) == [])
    disk.put([], at: path)
    #expect(try outdated(history, ["a", "b"], old) == [])
    #expect(try outdated(open(), ["a", "b"], old) == ["a", "b"])
    #expect(try outdated(history, ["a", "b"], new) == [])
    try await open().note([.key("b")])
    #expect(try outdated(history, ["a", "b"], old) == ["b"])
    #expect(try outdated(history, ["a", "b"], before) == ["a", "b"])
    #expect(try outdated(history, ["a", "b"], new) == ["b"])
    #expect(history.generation.number == 1)
  }

  @Test func `a history of removals whose number does not fit is damaged`() async throws {
    let history = open()
    try await history.note([.key("a"), .key("b")])
    let last = history.generation
    var content = try #require(disk.content(at: path))
    content[16] ^= 2
    disk.put(content, at: path)
    #expect(try outdated(history, ["c"], last) == ["c"])
  }

  @Test func `a removal is noted in the file that has the name, even if it was replaced meanwhile`()
    async throws
  {
    let history = open()
    try await history.note([.key("a")])
    let other = try #require(try disk.open(path, .updating))
    #expect(try disk.tryLock(other, .exclusive))
    disk.whenPaused { disk in
      disk.put([], at: "/cache/x.removals")
      disk.unlock(other)
    }
    try await history.note([.key("b")])
    #expect(try outdated(open(), ["a", "b"], CacheGeneration()) == ["b"])
  }

  @Test func `a removal that makes room is noted after it is done if the disk was full before`()
    async throws
  {
    let history = open()
    try await history.note([.key("a")])
    let generation = history.generation
    disk.put(Array(repeating: 1, count: 1_000), at: "/cache/entry")
    disk.setCapacity(disk.byteCount)
    try await history.noting([.key("b")]) { _ = try disk.remove("/cache/entry") }
    #expect(try outdated(open(), ["a", "b"], generation) == ["b"])
  }

  @Test func `a history of removals lets nothing be written that is removed meanwhile`()
    async throws
  {
    let history = open()
    let candidate = RemovalHistory.Candidate(key: "a", generation: history.generation)
    var isWritten = try await history.write(candidate) {
      let other = try disk.open(path, .updating)
      #expect(try disk.tryLock(#require(other), .exclusive) == false)
    }
    #expect(isWritten)
    try await open().note([.key("a")])
    isWritten = try await history.write(candidate) { Issue.record("It is outdated") }
    #expect(!isWritten)
  }
}
