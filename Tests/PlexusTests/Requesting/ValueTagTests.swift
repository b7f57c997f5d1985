import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Tags of values` {
  struct Row: Codable, Hashable, Sendable {
    var tenant: Int
    var name = ""
  }

  let clock = ManualClock()

  private static func tag(_ tenant: Int) -> CacheTag { CacheTag("tenant:\(tenant)") }

  /// A map whose values have the tag of their tenant, and whose keys have that of their last digit.
  private func map(
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Row> = .unbounded,
    cacher: (any Cacher<Row>)? = nil,
    onKeyFetch: @escaping @concurrent @Sendable (Int) async throws -> Row = { Row(tenant: $0 % 10) }
  ) -> MultiplexerMap<Int, Row> {
    MultiplexerMap(
      id: "rows",
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      tagging: { [CacheTag("digit:\($0 % 10)")] },
      valueTagging: { _, row in [Self.tag(row.tenant)] },
      clock: clock,
      onKeyFetch: onKeyFetch
    )
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `tags of values clear and refresh the values that have them, like tags of keys`()
    async throws
  {
    let map = map()
    map.store([1: Row(tenant: 5), 2: Row(tenant: 6), 3: Row(tenant: 5), 12: Row(tenant: 7)])
    map.refresh(tags: [Self.tag(6)])
    #expect(try await map.request(2) == Row(tenant: 2))
    try await map.clear(tags: [Self.tag(5)])
    #expect(map.keys.sorted() == [2, 12])
    try await map.clear(tags: ["digit:2"])
    #expect(map.count == 0)
  }

  @Test func `tags of values need no tags of keys`() async throws {
    let map = MultiplexerMap<Int, Row>(
      valueTagging: { _, row in [Self.tag(row.tenant)] },
      clock: clock,
      onKeyFetch: { Row(tenant: $0) }
    )
    _ = await map.request([1, 2])
    try await map.clear(tags: [Self.tag(1)])
    #expect(map.keys == [2])
    map.clearMemory(2)
    try await map.clear(tags: [Self.tag(2)])
    #expect(map.count == 0)
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `a fetched value whose tag was cleared since the fetch began is not stored`() async throws {
    let gate = Gate()
    let map = map { key in
      try await gate.wait()
      return Row(tenant: 5, name: "\(key)")
    }
    let states = Recorder(map.subscribe(to: 1, bufferingPolicy: .unbounded))
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(5)])
    let joining = begin { try await map.request(1) }
    let other = begin { try await map.request(2) }
    await gate.arrivals(2)
    gate.open()
    #expect(try await caller.value.name == "1")
    #expect(try await joining.value.name == "1")
    #expect(try await other.value.name == "2")
    #expect(map.keys == [2], "Its fetch began after the clear")
    #expect(await states.first(3).map(\.kind) == ["unknown", "loading", "unknown"])
    #expect(try await map.request(1).tenant == 5)
    #expect(map.cachedValue(1) != nil)
  }

  @Test func `a fetched value whose tag was cleared leaves the older value as it is`() async throws
  {
    let gate = Gate()
    let map = map { _ in
      try await gate.wait()
      return Row(tenant: 5)
    }
    map.store(Row(tenant: 6), for: 1)
    clock.advance(by: CachePolicy().timeToLive)
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(5)])
    gate.open()
    #expect(try await caller.value.tenant == 5)
    #expect(map.cachedValue(1)?.tenant == 6)
    #expect(try await map.request(1).tenant == 5)
    #expect(map.cachedValue(1)?.tenant == 5)
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `a fetched value whose tag was refreshed since the fetch began is fetched again`()
    async throws
  {
    let gate = Gate()
    let tally = Tally()
    let map = map { _ in
      let number = tally.increment()
      try await gate.wait()
      return Row(tenant: 5, name: "\(number)")
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    map.refresh(tags: [Self.tag(5)])
    gate.open()
    #expect(try await caller.value.name == "1")
    #expect(map.cachedValue(1)?.name == "1")
    #expect(try await map.request(1).name == "2")
    #expect(try await map.request(1).name == "2")
  }

  @Test func `a fetch of several keys is judged value by value`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Row>.bulk(
      valueTagging: { _, row in [Self.tag(row.tenant)] },
      clock: clock,
      onFetch: { keys in
        try await gate.wait()
        return Dictionary(uniqueKeysWithValues: (keys + [8, 9]).map { ($0, Row(tenant: $0 % 2)) })
      }
    )
    let caller = begin { await map.request([1, 2]) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(1)])
    gate.open()
    #expect(try await caller.value.count == 2)
    #expect(map.keys.sorted() == [2, 8], "Nor are unrequested values stored")
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `an update moves an entry to its new tags`() async throws {
    let map = map()
    map.store([1: Row(tenant: 5), 2: Row(tenant: 5)])
    map.update(1) { $0.tenant = 6 }
    try await map.clear(tags: [Self.tag(5)])
    #expect(map.keys == [1])
    map.store(Row(tenant: 7), for: 1)
    try await map.clear(tags: [Self.tag(6)])
    #expect(map.keys == [1])
    try await map.clear(tags: [Self.tag(7)])
    #expect(map.count == 0)
  }

  @Test(arguments: [true, false])
  func `an optimistic update has the tags before and after until it has ended`(
    fails: Bool
  ) async throws {
    let gate = Gate()
    let map = map()
    for key in 1...3 { map.store(Row(tenant: 5), for: key) }
    let updates = (1...3).map { key in
      begin {
        try await map.update(key, optimistically: { $0.tenant = 6 }) {
          try await gate.wait()
          if fails { throw Broken() }
        }
      }
    }
    await gate.arrivals(3)
    map.refresh(tags: [])
    #expect(map.cachedValue(1)?.tenant == 6)
    gate.open()
    for update in updates { _ = await update.result }
    try await map.clear(tags: [Self.tag(fails ? 6 : 5)])
    #expect(map.count == 3)
    try await map.clear(tags: [Self.tag(fails ? 5 : 6)])
    #expect(map.count == 0)
  }

  @Test(arguments: [5, 6])
  func `a clear during an optimistic update concerns the tags before it and after it`(
    tenant: Int
  ) async throws {
    let gate = Gate()
    let map = map()
    map.store(Row(tenant: 5), for: 1)
    let update = begin {
      try await map.update(1, optimistically: { $0.tenant = 6 }, commit: { try await gate.wait() })
    }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(tenant)])
    #expect(map.count == 0)
    gate.open()
    try await update.value
  }

  @Test func `a value that is evicted and not written yet is cleared by its tag`() async throws {
    let cacher = RowCacher()
    let map = map(capacity: .count(1), cacher: cacher)
    map.store(Row(tenant: 5), for: 1)
    map.store(Row(tenant: 6), for: 2)
    map.store(Row(tenant: 6), for: 3)
    try await map.clear(tags: [Self.tag(5)])
    try await map.flush()
    #expect(cacher.tenants.allSatisfy { $0 == 6 })
  }

  @Test func `subscribers of a key that is not in memory get nothing of a cleared tag`()
    async throws
  {
    let map = map()
    map.store(Row(tenant: 5), for: 1)
    let states = map.subscribe(to: 1, bufferingPolicy: .unbounded)
    map.store(Row(tenant: 5, name: "unread"), for: 1)
    map.clearMemory(1)
    try await map.clear(tags: [Self.tag(5)])
    var seen: [String] = []
    for await state in states {
      seen.append(state.kind)
      if state.kind == "unknown" { break }
    }
    #expect(seen == ["unknown"])
  }

  @Test func `the closure for tags of values can use the map`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Row>>()
    let map = MultiplexerMap<Int, Row>(
      valueTagging: { key, row in
        for map in own.elements { _ = map.cachedValue(key) }
        return [Self.tag(row.tenant)]
      },
      clock: clock,
      onKeyFetch: { Row(tenant: $0) }
    )
    own.send(map)
    _ = await own.first()
    map.store(Row(tenant: 1), for: 1)
    map.update(1) { $0.tenant = 2 }
    #expect(try await map.request(3).tenant == 3)
    try await map.update(1, optimistically: { $0.tenant = 4 }, commit: {})
    try await map.clear(tags: [Self.tag(4)])
    #expect(map.keys == [3])
  }

  @Test func `many tags, equal tags and no tags are moved, and none remains`() async throws {
    let map = MultiplexerMap<Int, [String]>(
      valueTagging: { _, names in names.map { CacheTag($0) } },
      clock: clock,
      onKeyFetch: { _ in [] }
    )
    let names = (0..<1_000).map { "\($0)" }
    map.store(["a", "a", ""], for: 1)
    map.update(1) { $0 = names }
    try await map.clear(tags: ["a", ""])
    #expect(map.count == 1)
    map.update(1) { $0 = [] }
    try await map.clear(tags: Set(names.map { CacheTag($0) }))
    #expect(map.count == 1)
    map.update(1) { $0 = ["b", "b"] }
    try await map.clear(tags: ["b"])
    #expect(map.count == 0)
  }

  @Test func `thousands of cleared tags do not keep later values out`() async throws {
    let map = map { Row(tenant: $0) }
    for tenant in 0..<10_000 { try await map.clear(tags: [Self.tag(tenant)]) }
    #expect(try await map.request(7).tenant == 7)
    #expect(map.keys == [7])
  }
}

// MARK: - Stored copies

extension `Tags of values` {
  private var policy: CachePolicy {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    return policy
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `a stored copy is judged by the tags of its value`() async throws {
    let cacher = RowCacher()
    let first = map(policy: policy, cacher: cacher) { _ in Row(tenant: 5) }
    _ = await first.request([1, 2])
    first.store(Row(tenant: 6), for: 3)
    try await first.flush()
    let second = map(policy: policy, cacher: cacher) { _ in Row(tenant: 0) }
    try await second.clear(tags: [Self.tag(5)])
    #expect(try await second.request(1).tenant == 0)
    #expect(try await second.response(3).source == .cacher)
    #expect(try await second.request(3).tenant == 6)
  }

  @Test func `a value whose tag was cleared since its fetch began is not written`() async throws {
    let (cacher, gate) = (RowCacher(), Gate())
    let map = map(policy: policy, cacher: cacher) { _ in
      try await gate.wait()
      return Row(tenant: 5)
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: [Self.tag(5)])
    gate.open()
    _ = try await caller.value
    try await map.flush()
    #expect(cacher.tenants.isEmpty)
  }

  @Test func `a copy that is being read while its tag is cleared is not used`() async throws {
    let reading = Gate()
    let cacher = RowCacher(reading: reading)
    cacher.put(Row(tenant: 5), "rows/1")
    let map = map(policy: policy, cacher: cacher) { _ in Row(tenant: 0) }
    let caller = begin { try await map.request(1) }
    await reading.arrivals(1)
    try await map.clear(tags: [Self.tag(5)])
    reading.open()
    #expect(try await caller.value.tenant == 0)
    #expect(map.cachedValue(1)?.tenant == 0)
  }
}

extension LoadState {
  fileprivate var kind: String {
    switch self {
    case .unknown: "unknown"
    case .loading: "loading"
    case .loaded: "loaded"
    case .failed: "failed"
    }
  }
}

/// A cacher of rows in memory.
private final class RowCacher: Cacher {
  typealias Row = `Tags of values`.Row

  private let entries = Guarded<[String: CacheEntry<Row>]>([:])
  private let reading: Gate?

  init(reading: Gate? = nil) { self.reading = reading }

  var tenants: [Int] { entries.withLock { $0.values.map(\.value.tenant) } }

  func put(_ row: Row, _ key: String) {
    entries.withLock {
      $0[key] = CacheEntry(value: row, storedAt: .seconds(1), timeToLive: .seconds(1e11))
    }
  }

  func entry(forKey key: String) async throws -> CacheEntry<Row>? {
    let entry = entries.withLock { $0[key] }
    try await reading?.wait()
    return entry
  }

  func store(_ new: [String: CacheEntry<Row>]) async throws {
    entries.withLock { $0.merge(new) { $1 } }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    entries.withLock { entries in for key in keys { entries[key] = nil } }
  }

  func removeAllEntries() async throws { entries.withLock { $0 = [:] } }
}
