import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Two caches of one process, whose cacher counts removals or does not.
@Suite(.fewAtOnce)
struct `A copy of a value whose fetch began before a command of another cache` {
  enum Command: CaseIterable, Sendable {
    case clearTags, refreshTags, refreshKey, refreshAll

    func run(_ map: MultiplexerMap<Int, Int>) async throws {
      switch self {
      case .clearTags: try await map.clear(tags: ["all"])
      case .refreshTags: map.refresh(tags: ["all"])
      case .refreshKey: map.refresh(1)
      case .refreshAll: map.refreshAll()
      }
    }
  }

  private let cacher = ControlledCacher<Int>()
  private let clock = ManualClock()

  private func map(
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Int
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: .readingFirst(),
      cacher: cacher,
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: fetch
    )
  }

  @Test(.guarantee(.clearsByTagOutdateOtherCaches), arguments: Command.allCases, [false, true])
  func `a copy is no answer if another cache had a command after its fetch began`(
    command: Command,
    counts: Bool
  ) async throws {
    if counts { cacher.setGeneration(5) }
    let gate = Gate()
    let first = map { _ in 2 }
    let second = map { _ in
      try await gate.wait()
      return 1
    }
    let caller = begin { try await second.request(1) }
    await gate.arrivals(1)
    try await command.run(first)
    gate.open()
    #expect(try await caller.value == 1)
    try await second.flush()
    #expect(try await first.request(1) == 2)
    #expect(try await map { _ in 3 }.request(1) == 3)
    // A newer one is an answer.
    try await first.flush()
    #expect(try await map { _ in throw Broken() }.request(1) == 2)
  }

  @Test(arguments: Command.allCases)
  func `an overtaken copy is no answer after an update of its value`(command: Command) async throws
  {
    let first = map { _ in 2 }
    let second = map { _ in 1 }
    _ = try await second.request(1)
    try await second.flush()
    try await command.run(first)
    second.update(1) { $0 = 10 }
    try await second.flush()
    #expect(try await first.request(1) == 2)
  }

  @Test(
    .guarantee(.updatesKeepTheAge),
    arguments: Command.allCases,
    [CachePolicy.CacherRead.beforeFetch, .afterConnectivityError]
  )
  func `an overtaken copy is no answer after an update on its way to the cacher`(
    command: Command,
    read: CachePolicy.CacherRead
  ) async throws {
    let isDown = Guarded(false)
    let first = map { _ in 2 }
    let second = fallingBack(read) { _ in
      if isDown.withLock({ $0 }) { throw Broken() }
      return 1
    }
    _ = try await second.request(1)
    let gate = cacher.hold(.store)
    second.clearMemory()
    await gate.arrivals(1)
    try await command.run(first)
    isDown.withLock { $0 = true }
    #expect(try await second.request(1) == 1)
    second.update(1) { $0 = 10 }
    cacher.release()
    gate.open()
    try await second.flush()
    #expect(try await first.request(1) == 2)
  }

  @Test(
    .guarantee(.updatesKeepTheAge),
    arguments: [Command.refreshTags, .refreshKey, .refreshAll],
    [CachePolicy.CacherRead.beforeFetch, .afterConnectivityError]
  )
  func `an overtaken copy is no answer after an update of it as the fallback of a failed fetch`(
    command: Command,
    read: CachePolicy.CacherRead
  ) async throws {
    for isOwn in [false, true] {
      cacher.entries["1"] = CacheEntry(1, age: .seconds(10))
      let first = map { _ in 2 }
      let second = fallingBack(read) { _ in throw Broken() }
      try await command.run(isOwn ? second : first)
      #expect(try await second.request(1) == 1)
      second.update(1) { $0 = 10 }
      try await second.flush()
      #expect(try await first.request(1) == 2)
    }
  }

  /// A map that uses stored copies after every error.
  private func fallingBack(
    _ read: CachePolicy.CacherRead,
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Int
  ) -> MultiplexerMap<Int, Int> {
    var policy = CachePolicy(cacherRead: read)
    policy.usesCachedValue = { _ in true }
    return MultiplexerMap(
      policy: policy,
      cacher: cacher,
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: fetch
    )
  }

  @Test func `a copy is an answer if only another namespace was refreshed or cleared`() async throws
  {
    let other = MultiplexerMap<Int, Int>(
      id: "other",
      cacher: cacher,
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { $0 }
    )
    let map = MultiplexerMap<Int, Int>(
      id: "map",
      policy: .readingFirst(),
      cacher: cacher,
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { _ in 7 }
    )
    _ = try await map.request(1)
    for command in Command.allCases { try await command.run(other) }
    try await map.flush()
    map.clearMemory()
    #expect(try await map.response(1).source == .cacher)
  }

  @Test func `a value is as old as the start of its fetch`() async throws {
    let gate = Gate()
    let map = map { _ in
      try await gate.wait()
      return 1
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    clock.advance(by: .seconds(60))
    gate.open()
    _ = try await caller.value
    #expect(try await map.response(1).age == .seconds(60))
  }

  @Test(.guarantee(.futureCopiesAreRemoved), arguments: CacheKind.allCases)
  func `a copy is removed when its time lies in the future`(kind: CacheKind) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(-3_600))
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { throw Broken() }
    await #expect(throws: Broken.self) { try await cache.request() }
    try await cache.flush()
    #expect(cacher.entries["key"] == nil)
  }
}
