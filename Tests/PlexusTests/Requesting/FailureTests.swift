import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A failed fetch` {
  let clock = ManualClock()

  private func policy(_ change: (inout CachePolicy) -> Void = { _ in }) -> CachePolicy {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    change(&policy)
    return policy
  }

  @Test(.guarantee(.failuresKeepTheValue), arguments: CacheKind.allCases, [true, false])
  func `a failed fetch keeps the value, which is used if the other side could not be reached`(
    kind: CacheKind,
    isConnectivityFailure: Bool
  ) async throws {
    let failure = Offline(isConnectivityFailure: isConnectivityFailure)
    let origin = ScriptedFetcher<Int>([.success(1), .failure(failure), .success(3)])
    let cache = kind.make(policy: policy(), clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: .seconds(70))

    if isConnectivityFailure {
      let response = try await cache.response()
      #expect(response.value == 1)
      #expect(response.isStale)
      #expect(response.age == .seconds(70))
      #expect(response.source == .memory)
      #expect(response.error as? Offline == failure)
    } else {
      await #expect(throws: failure) { try await cache.request() }
    }
    #expect(cache.cachedValue == 1)
    #expect(try await cache.request() == 3, "Its deadline is not extended")
    #expect(cache.statistics.counts == CacheStatistics(misses: 3, fetches: 3, failures: 1))
  }

  @Test(.guarantee(.failuresKeepTheValue), arguments: CacheKind.allCases)
  func `a failed fetch of a refresh keeps the value, and the next request tries again`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([
      .success(1), .failure(Offline()), .failure(Broken()), .success(4),
    ])
    let cache = kind.make(policy: policy(), clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    let refreshed = cache.refresh()
    let response = try await refreshed.response()
    #expect(response.value == 1)
    #expect(response.isStale)
    #expect(response.error is Offline)
    await #expect(throws: Broken()) { try await cache.request() }
    #expect(cache.cachedValue == 1)
    #expect(try await cache.request() == 4)
    #expect(try await refreshed.request() == 4)
    #expect(origin.count == 4)
  }

  @Test(.guarantee(.failuresKeepTheValue), arguments: CacheKind.allCases)
  func `a failed fetch asks the policy once whether to use the value`(kind: CacheKind) async throws
  {
    let gate = Gate()
    let asked = Tally()
    let policy = policy {
      $0.usesCachedValue = { error in
        asked.increment()
        return error as? Broken == Broken(reason: "mild")
      }
    }
    let origin = ScriptedFetcher<Int>(
      [.success(1), .failure(Broken(reason: "mild")), .failure(Broken(reason: "bad"))],
      gate: gate
    )
    gate.open()
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    gate.close()
    clock.advance(by: .seconds(60))
    let callers = (0..<10).map { _ in begin { try await cache.request() } }
    gate.open()
    for caller in callers { #expect(try await caller.value == 1) }
    #expect(asked.value == 1)
    await #expect(throws: Broken(reason: "bad")) { try await cache.request() }
    #expect(asked.value == 2)
  }

  @Test(.guarantee(.failuresReachAllCallers), arguments: CacheKind.allCases, [(9, 1), (10, 2)])
  func `a failed fetch is remembered for its time to live and not longer`(
    kind: CacheKind,
    expected: (seconds: Int, fetches: Int)
  ) async throws {
    let origin = ScriptedFetcher<Int>([.failure(Broken())])
    let policy = policy { $0.failureTimeToLive = .seconds(10) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    await #expect(throws: Broken()) { try await cache.request() }
    clock.advance(by: .seconds(expected.seconds))
    await #expect(throws: Broken()) { try await cache.request() }
    #expect(origin.count == expected.fetches)
    #expect(cache.statistics.misses == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a failed fetch that is remembered still uses the value`(kind: CacheKind) async throws {
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Offline())])
    let policy = policy { $0.failureTimeToLive = .seconds(10) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    for age in [60, 61] {
      let response = try await cache.response()
      #expect(response.value == 1)
      #expect(response.error is Offline)
      #expect(response.isStale)
      #expect(response.age == .seconds(age))
      clock.advance(by: .seconds(1))
    }
    #expect(
      cache.statistics.counts == CacheStatistics(staleHits: 1, misses: 2, fetches: 2, failures: 1)
    )
  }

  @Test(
    .guarantee(.storedValuesWinOverFetches),
    arguments: CacheKind.allCases,
    ["store", "refresh", "clear", "clearMemory"]
  )
  func `a failed fetch that is remembered ends with a store, a refresh and a clear`(
    kind: CacheKind,
    command: String
  ) async throws {
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2)])
    let policy = policy { $0.failureTimeToLive = .seconds(1_000) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    await #expect(throws: Broken()) { try await cache.request() }
    switch command {
    case "store": cache.store(7)
    case "refresh": cache.refresh()
    case "clear": try await cache.clear()
    default: cache.clearMemory()
    }
    #expect(try await cache.request() == (command == "store" ? 7 : 2))
  }

  @Test(arguments: CacheKind.allCases)
  func `a failed fetch is not remembered if a refresh came while it ran`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .failure(Broken())], gate: gate)
    let policy = policy { $0.failureTimeToLive = .seconds(1_000) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let first = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    gate.admit(1)
    await #expect(throws: Broken()) { try await first.value }
    await gate.arrivals(2)
    let second = begin { try await refreshed.request() }
    #expect(cache.statistics.joins == 1)
    gate.admit(1)
    await #expect(throws: Broken()) { try await second.value }
    await #expect(throws: Broken(), "This one is remembered") { try await cache.request() }
    #expect(origin.count == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a failed fetch that is remembered keeps a stale value from being renewed meanwhile`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    let policy = policy {
      $0.failureTimeToLive = .seconds(10)
      $0.staleWhileRevalidate = .seconds(1_000)
    }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    _ = await states.first(3)
    for _ in 0..<10 {
      #expect(try await cache.request() == 1)
      clock.advance(by: .seconds(1))
    }
    #expect(origin.count == 2)
    #expect(try await cache.request() == 1)
    #expect(await states.first(5).last?.value == 3)
  }

  @Test func `a failed fetch of a key is dropped in the end, so that failing keys use no memory`()
    async throws
  {
    let map = MultiplexerMap<Int, Int> { _ in throw Broken() }
    weak var forgotten: Payload?
    let payloads = MultiplexerMap<Payload, Int> { _ in throw Broken() }
    do {
      let payload = Payload(number: 0)
      forgotten = payload
      await #expect(throws: Broken()) { try await payloads.request(payload) }
    }
    for number in 1...10_000 {
      await #expect(throws: Broken()) { try await payloads.request(Payload(number: number)) }
      if forgotten == nil { break }
    }
    // The task of its fetch can still be about to end.
    while forgotten != nil, !Task.isCancelled { await Task.detached {}.value }
    #expect(forgotten == nil)
    await #expect(throws: Broken()) { try await map.request(1) }
  }

  @Test
  func `a failed fetch of a subscribed key is published to later ones, however many keys fail`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(capacity: .count(1)) { _ in throw Broken() }
    let subscription = map.subscription(to: 0)
    for number in 0...1_000 {
      await #expect(throws: Broken()) { try await map.request(number) }
    }
    #expect(await map.subscription(to: 0).first(1).map(\.name) == ["failed Broken"])
    #expect(await map.subscription(to: 1).first(1).map(\.name) == ["unknown"], "It is forgotten")
    withExtendedLifetime(subscription) {}
  }
}

/// A key that reports its release. It is identified by a number, because addresses are reused, with the same hash
/// values.
private final class Payload: Hashable, Sendable {
  private let number: Int

  init(number: Int) {
    self.number = number
  }

  static func == (left: Payload, right: Payload) -> Bool { left.number == right.number }

  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
