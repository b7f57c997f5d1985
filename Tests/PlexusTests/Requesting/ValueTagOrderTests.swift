import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Values that get a tag, or are read with one, that was cleared before.
@Suite(.fewAtOnce) struct `A tag of a value that was cleared before the value had it` {
  struct Row: Hashable, Sendable {
    var tenant: Int
    var name = ""
  }

  let clock = ManualClock()
  let cacher = ControlledCacher<Row>()

  private static func tag(_ tenant: Int) -> CacheTag { CacheTag("tenant:\(tenant)") }

  private func map(
    read: CachePolicy.CacherRead = .beforeFetch,
    timeToLive: Duration = CachePolicy().timeToLive,
    onKeyFetch: @escaping @concurrent @Sendable (Int) async throws -> Row = { _ in
      throw Offline()
    }
  ) -> MultiplexerMap<Int, Row> {
    var policy = CachePolicy()
    policy.cacherRead = read
    policy.timeToLive = timeToLive
    return MultiplexerMap(
      id: "rows",
      policy: policy,
      cacher: cacher,
      valueTagging: { _, row in [Self.tag(row.tenant)] },
      clock: clock,
      onKeyFetch: onKeyFetch
    )
  }

  // MARK: - Updates

  @Test(.guarantee(.valueTagsAreFenced))
  func `an update to a tag that was cleared before is written`() async throws {
    let map = map()
    map.store(Row(tenant: 1), for: 1)
    try await map.flush()
    try await map.clear(tags: [Self.tag(2)])
    #expect(map.update(1) { $0.tenant = 2 } == Row(tenant: 2))
    try await map.flush()
    #expect(cacher.entries.values.map(\.value.tenant) == [2])
    map.clearMemory()
    #expect(try await map.request(1).tenant == 2)
  }

  @Test func `a committed update to a tag that was cleared before is written`() async throws {
    let map = map()
    map.store(Row(tenant: 1), for: 1)
    try await map.flush()
    try await map.clear(tags: [Self.tag(2)])
    try await map.update(
      1,
      optimistically: { $0.tenant = 2 },
      commit: {
        // The value without the change is the one to write.
        try await map.flush()
        #expect(cacher.entries.values.map(\.value.tenant) == [1])
      }
    )
    try await map.flush()
    #expect(cacher.entries.values.map(\.value.tenant) == [2])
  }

  @Test(arguments: [true, false])
  func `a value that arrives below a draft with a tag that was cleared before is written`(
    isCommittedFirst: Bool
  ) async throws {
    let (gate, commit, tally) = (Gate(), Gate(), Tally())
    let map = map { _ in
      guard tally.increment() == 1 else { throw Offline() }
      try await gate.wait()
      return Row(tenant: 1, name: "new")
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(2)])
    let update = begin {
      try await map.update(
        1,
        optimistically: { $0.tenant = 2 },
        commit: { try await commit.wait() }
      )
    }
    await commit.arrivals(1)
    for gate in isCommittedFirst ? [commit, gate] : [gate, commit] { gate.open() }
    try await update.value
    _ = try await caller.value
    // The fetch after the commit has failed.
    #expect(try await map.request(1).tenant == 2)
    try await map.flush()
    #expect(cacher.entries.values.map(\.value) == [Row(tenant: 2, name: "new")])
  }

  @Test func `an update to a tag that is cleared afterwards is not written`() async throws {
    let map = map()
    map.store(Row(tenant: 1), for: 1)
    map.update(1) { $0.tenant = 2 }
    try await map.clear(tags: [Self.tag(2)])
    try await map.flush()
    #expect(cacher.entries.isEmpty)
  }

  @Test func `an update that has left memory is there, and not the value before`() async throws {
    let map = map()
    map.store(Row(tenant: 1, name: "old"), for: 1)
    try await map.flush()
    try await map.clear(tags: [Self.tag(2)])
    map.update(1) { $0 = Row(tenant: 2, name: "new") }
    map.clearMemory()
    #expect(try await map.request(1).name == "new")
    try await map.flush()
    map.clearMemory()
    #expect(try await map.request(1).name == "new")
  }

  @Test(arguments: [false, true])
  func `an update of an outdated value is outdated, also with a tag that was cleared before`(
    byTag: Bool
  ) async throws {
    let map = map()
    map.store(Row(tenant: 1), for: 1)
    try await map.flush()
    if byTag { map.refresh(tags: [Self.tag(1)]) } else { map.refresh(1) }
    try await map.clear(tags: [Self.tag(2)])
    map.update(1) { $0.tenant = 2 }
    try await map.flush()
    map.clearMemory()
    let response = try await map.response(1)
    #expect(response.value.tenant == 2)
    #expect(response.error is Offline, "It was fetched, and the copy is a fallback")
  }

  @Test func `an update of a fallback is written, and is still a fallback`() async throws {
    let map = map()
    try await map.clear(tags: [Self.tag(1)])
    map.store(Row(tenant: 1), for: 1)
    try await map.flush()
    map.clearMemory()
    map.refresh(1)
    #expect(try await map.response(1).isStale)
    map.update(1) { $0.name = "new" }
    try await map.flush()
    map.clearMemory()
    let response = try await map.response(1)
    #expect(response.value.name == "new")
    #expect(response.error is Offline)
  }

  @Test func `a value that gets a tag is not fresh for longer than before`() async throws {
    let map = map(timeToLive: .seconds(60))
    map.store(Row(tenant: 1), for: 1)
    clock.advance(by: .seconds(50))
    try await map.clear(tags: [Self.tag(2)])
    map.update(1) { $0.tenant = 2 }
    try await map.flush()
    map.clearMemory()
    #expect(try await map.response(1).source == .cacher)
    clock.advance(by: .seconds(10))
    #expect(try await map.response(1).error is Offline)
  }

  // MARK: - Clears by another map

  @Test func `a value that another map has cleared leaves no older copy`() async throws {
    let (map, other) = (map(), map())
    map.store(Row(tenant: 1), for: 1)
    map.store(Row(tenant: 1), for: 2)
    try await map.flush()
    map.store(Row(tenant: 2), for: 1)
    try await other.clear(tags: [Self.tag(2)])
    try await map.flush()
    #expect(cacher.entries.count == 1)
    map.clearMemory()
    await #expect(throws: Offline.self) { try await map.request(1) }
    #expect(try await map.request(2).tenant == 1)
  }

  @Test func `an update of a value that another map has cleared is not written`() async throws {
    let (map, other) = (map(), map())
    map.store(Row(tenant: 1), for: 1)
    try await map.flush()
    try await other.clear(tags: [Self.tag(1)])
    map.update(1) { $0.name = "new" }
    try await map.flush()
    #expect(cacher.entries.isEmpty)
  }

  // MARK: - Fallbacks

  @Test(arguments: [CachePolicy.CacherRead.beforeFetch, .afterConnectivityError])
  func `a copy that was stored after a clear of its tag is a fallback after a refresh`(
    read: CachePolicy.CacherRead
  ) async throws {
    let map = map(read: read)
    try await map.clear(tags: [Self.tag(5)])
    map.store(Row(tenant: 5), for: 1)
    try await map.flush()
    map.clearMemory()
    let response = try await map.refresh(1).response(1)
    #expect(response.value == Row(tenant: 5))
    #expect(response.isStale)
  }

  @Test(arguments: [true, false])
  func `a copy that was stored after a clear of its tag is a fallback of a bulk fetch`(
    clears: Bool
  ) async throws {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    policy.timeToLive = .zero
    let map = MultiplexerMap<Int, Row>.bulk(
      id: "rows",
      policy: policy,
      cacher: cacher,
      valueTagging: { _, row in [Self.tag(row.tenant)] },
      clock: clock,
      onFetch: { _ -> [Int: Row] in throw Offline() }
    )
    if clears { try await map.clear(tags: [Self.tag(5)]) }
    map.store([1: Row(tenant: 5), 2: Row(tenant: 5)])
    try await map.flush()
    map.clearMemory()
    let results = await map.request([1, 2])
    #expect(results.compactMapValues { try? $0.get().tenant } == [1: 5, 2: 5])
  }

  @Test(arguments: [true, false])
  func `a fallback whose tag is cleared during the fetch is not used`(isBulk: Bool) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    policy.timeToLive = .zero
    let map =
      isBulk
      ? MultiplexerMap<Int, Row>.bulk(
        id: "rows",
        policy: policy,
        cacher: cacher,
        valueTagging: { _, row in [Self.tag(row.tenant)] },
        clock: clock,
        onFetch: { _ -> [Int: Row] in
          try await gate.wait()
          throw Offline()
        }
      )
      : self.map(timeToLive: .zero) { _ in
        try await gate.wait()
        throw Offline()
      }
    map.store(Row(tenant: 5), for: 1)
    try await map.flush()
    map.clearMemory()
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(5)])
    gate.open()
    await #expect(throws: Offline.self) { try await caller.value }
    #expect(map.count == 0)
  }
}
