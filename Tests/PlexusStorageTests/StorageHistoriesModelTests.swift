import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `Any history of storage` {
  @Test(arguments: 0..<30 as Range<UInt64>, [false, true])
  func `several instances, reopened and crashing, always hold what a dictionary would`(
    seed: UInt64,
    isLog: Bool
  ) async throws {
    var random = SeededRandom(seed: seed)
    let disk = SimulatedDisk()
    var cachers = [try disk.openCacher(isLog: isLog), try disk.openCacher(isLog: isLog)]
    var expected: [String: CacheEntry<Person>] = [:]
    let keys = (0..<6).map { "k\($0)" }
    for step in 0..<60 {
      let cacher = cachers[.random(in: 0..<2, using: &random)]
      let some = keys.filter { _ in .random(using: &random) }
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let text = String(repeating: "\(step) ", count: .random(in: 0..<100, using: &random))
        let entries = Dictionary(uniqueKeysWithValues: some.map { ($0, CacheEntry<Person>(text)) })
        try await cacher.store(entries)
        expected.merge(entries) { _, new in new }
      case 5, 6:
        try await cacher.removeEntries(forKeys: Set(some))
        for key in some { expected[key] = nil }
      case 7 where seed % 4 == 0:
        try await cacher.removeAllEntries()
        expected = [:]
      case 8:
        disk.crash(SimulatedDisk.Survival.allCases.randomElement(using: &random) ?? .nothing)
        cachers = [try disk.openCacher(isLog: isLog), try disk.openCacher(isLog: isLog)]
      default:
        cachers[.random(in: 0..<2, using: &random)] = try disk.openCacher(isLog: isLog)
      }
      for cacher in cachers {
        for key in keys {
          #expect(try await cacher.entry(forKey: key) == expected[key], "step \(step)")
        }
      }
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `a log with a limit holds the newest that fit, and is never larger`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let disk = SimulatedDisk()
    let limit = 1_000
    let cacher = try JSONLogCacher<Person>(
      path: "/x",
      byteLimit: limit,
      schema: nil,
      fileSystem: disk
    )
    var newest: [String] = []
    for step in 0..<100 {
      let key = "k\(Int.random(in: 0..<20, using: &random))"
      try await cacher.store(
        String(repeating: "x", count: .random(in: 0..<200, using: &random)),
        for: key,
        at: step
      )
      newest = newest.filter { $0 != key } + [key]
      #expect(disk.byteCount <= limit)
      var isKept: [Bool] = []
      for key in newest { isKept.append(try await cacher.entry(forKey: key) != nil) }
      #expect(isKept.last == true)
      #expect(
        isKept == isKept.filter { !$0 } + isKept.filter { $0 },
        "older ones stayed at step \(step)"
      )
      if let first = isKept.firstIndex(of: true) { newest.removeFirst(first) }
    }
  }
}
