import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Refreshes of a tag while values that turn out to have it are in flight.
@Suite(.fewAtOnce) struct `A refresh of a tag during the fetch of a value that has it` {
  struct Row: Hashable, Sendable {
    var tenant = 5
    var number: Int
  }

  let gate = Gate()
  let tally = Tally()
  let clock = ManualClock()

  private static func tags(_ row: Row) -> [CacheTag] { [CacheTag("tenant:\(row.tenant)")] }

  private func map(cacher: (any Cacher<Row>)? = nil) -> MultiplexerMap<Int, Row> {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    return MultiplexerMap<Int, Row>(
      id: "rows",
      policy: policy,
      cacher: cacher,
      valueTagging: { Self.tags($1) },
      clock: clock,
      onKeyFetch: { [gate, tally] _ in
        let number = tally.increment()
        try await gate.wait()
        return Row(number: number)
      }
    )
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `a request of the refreshed reference is not answered by the older fetch`() async throws {
    let map = map()
    let first = begin { try await map.request(1) }
    await gate.arrivals(1)
    let newer = map.refresh(tags: ["tenant:5"])
    let caller = begin { try await newer.request(1) }
    let other = begin { try await newer.response(1).value }
    gate.open()
    #expect(try await first.value.number == 1)
    #expect(try await caller.value.number == 2)
    #expect(try await other.value.number == 2)
    #expect(try await newer.request(1).number == 2)
    #expect(tally.value == 2)
  }

  @Test func `a request of several keys of the refreshed reference takes no older values`()
    async throws
  {
    let (gate, tally) = (gate, tally)
    let map = MultiplexerMap<Int, Row>.bulk(
      valueTagging: { Self.tags($1) },
      clock: clock,
      onFetch: { keys in
        let number = tally.increment()
        try await gate.wait()
        return Dictionary(
          uniqueKeysWithValues: keys.map { ($0, Row(tenant: $0 + 3, number: number)) }
        )
      }
    )
    let first = begin { await map.request([1, 2, 3]) }
    await gate.arrivals(1)
    let newer = map.refresh(tags: ["tenant:5"])
    let caller = begin { await newer.request([1, 2, 3]) }
    gate.open()
    #expect(try await first.value.compactMapValues { try $0.get().number } == [1: 1, 2: 1, 3: 1])
    #expect(try await caller.value.compactMapValues { try $0.get().number } == [1: 1, 2: 2, 3: 1])
  }

  @Test func `a request of the refreshed reference takes no older value of a cleared key`()
    async throws
  {
    let map = map()
    let first = begin { try await map.request(1) }
    await gate.arrivals(1)
    let newer = map.refresh(tags: ["tenant:5"])
    // It joins the fetch, which no longer belongs to the key then.
    let caller = begin { try await newer.request(1) }
    try await map.clear(1)
    gate.open()
    #expect(try await first.value.number == 1)
    #expect(try await caller.value.number == 2)
  }

  @Test func `a request of the refreshed reference takes no copy that was read before`()
    async throws
  {
    let cacher = ControlledCacher<Row>()
    gate.open()
    let map = map(cacher: cacher)
    map.store(Row(number: 0), for: 1)
    try await map.flush()
    map.clearMemory()
    let reading = cacher.hold(.read)
    let first = begin { try await map.request(1) }
    await reading.arrivals(1)
    let newer = map.refresh(tags: ["tenant:5"])
    let caller = begin { try await newer.request(1) }
    reading.open()
    _ = try await first.value
    #expect(try await caller.value.number == 1)
  }

  @Test func `a failure is the answer, also of the refreshed reference`() async throws {
    let (gate, tally) = (gate, tally)
    let map = MultiplexerMap<Int, Row>(
      valueTagging: { Self.tags($1) },
      clock: clock,
      onKeyFetch: { _ in
        tally.increment()
        try await gate.wait()
        throw Broken()
      }
    )
    let first = begin { try await map.request(1) }
    await gate.arrivals(1)
    let newer = map.refresh(tags: ["tenant:5"])
    let caller = begin { try await newer.request(1) }
    gate.open()
    await #expect(throws: Broken.self) { try await first.value }
    await #expect(throws: Broken.self) { try await caller.value }
    #expect(tally.value == 1)
  }

  @Test func `live values are fetched again`() async throws {
    let map = map()
    let states = map[1].subscription(refetching: .whenStale)
    await gate.arrivals(1)
    map.refresh(tags: ["tenant:5"])
    gate.open()
    for await state in states {
      if case .loaded(let row) = state, row.number == 2 { break }
    }
    #expect(map.cachedValue(1)?.number == 2)
  }
}
