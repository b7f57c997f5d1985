import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A live subscription` {
  @Test(.guarantee(.liveSubscriptionsShareOneFetch))
  func `a live subscription fetches a missing value, once for all and for requests`() async throws {
    let origin = LiveOrigin(isHeldUp: true)
    let cache = origin.multiplexer()
    let streams = (0..<3).map { _ in cache.subscription(refetching: .whenStale) }
    await origin.gate.arrivals(1)
    let request = Task { try await cache.request() }
    origin.gate.open()
    #expect(try await request.value == 1)
    for stream in streams { await stream.loaded(1) }
    #expect(cache.statistics.fetches == 1)
  }

  @Test(.guarantee(.liveSubscriptionsShareOneFetch))
  func `a live subscription fetches what is stale, and nothing that is fresh`() async {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    cache.store(7)
    let first = cache.subscription(refetching: .whenStale)
    #expect(cache.statistics.fetches == 0)
    origin.clock.advance(by: .seconds(60))
    let second = cache.subscription(refetching: .whenStale)
    await second.loaded(1)
    await first.loaded(1)
    #expect(cache.statistics.fetches == 1)
  }

  @Test(.guarantee(.liveSubscriptionsShareOneFetch))
  func `a live subscription fetches when the value goes stale, again and again`() async {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await states.loaded(1)
    for number in 2...4 {
      await origin.clock.sleepers(1)
      origin.clock.advance(by: .seconds(59))
      #expect(cache.statistics.fetches == number - 1)
      origin.clock.advance(by: .seconds(1))
      await states.loaded(number)
    }
  }

  @Test(.guarantee(.liveSubscriptionsShareOneFetch))
  func `a live subscription does not fetch over and over what is stale when it arrives`() async {
    let origin = LiveOrigin()
    let cache = origin.multiplexer(CachePolicy(timeToLive: .zero))
    let states = cache.subscription(refetching: .whenStale)
    await states.loaded(1)
    cache.store(9)
    await states.loaded(9)
    #expect(cache.statistics.fetches == 1)
    #expect(origin.clock.sleeperCount == 0)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `a live subscription fetches with every interval from the subscription on, fresh or stale`()
    async
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    origin.clock.advance(by: .seconds(3))
    let states = cache.subscription(refetching: .every(.seconds(10)))
    await states.loaded(1)
    for number in 2...4 {
      await origin.clock.sleepers(1)
      origin.clock.advance(by: .seconds(10))
      await states.loaded(number)
    }
    // Several intervals that have passed at once count as one.
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(35))
    await states.loaded(5)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(5))
    await states.loaded(6)
    #expect(cache.statistics.fetches == 6)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `a live subscription bears an interval that no clock can measure`()
    async
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let interval = Duration(secondsComponent: 0, attosecondsComponent: 1)
    var stream: Subscription<LoadState<Int>>? = cache.subscription(refetching: .every(interval))
    if let stream { await stream.loaded(1) }
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .nanoseconds(1))
    if let stream { await stream.loaded(2) }
    stream = nil
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `live subscriptions of several intervals follow the shortest`()
    async
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let slow = cache.subscription(refetching: .every(.seconds(30)))
    await slow.loaded(1)
    var fast: Subscription? = cache.subscription(
      refetching: .every(.seconds(10)).and(.every(.seconds(20)))
    )
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await slow.loaded(2)
    withExtendedLifetime(fast) {}
    fast = nil
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(19))
    #expect(cache.statistics.fetches == 2)
    origin.clock.advance(by: .seconds(1))
    await slow.loaded(3)
  }

  @Test(
    .guarantee(.interruptedLiveRefreshesFetchAgain),
    arguments: [CachePolicy.UnobservedFetch.cancel, .finishAndStore],
    [true, false]
  )
  func `a live subscription fetches after a refresh whose fetch an update has cut off`(
    whenUnobserved: CachePolicy.UnobservedFetch,
    isQueued: Bool
  ) async {
    let origin = LiveOrigin(isHeldUp: true)
    let cache = origin.multiplexer(CachePolicy(whenUnobserved: whenUnobserved))
    let signals = LiveSignals()
    cache.store(7)
    let states = cache.subscription(refetching: .on(signals), bufferingPolicy: .unbounded)
    if isQueued {
      await signals.send()
      await origin.gate.arrivals(1)
    }
    cache.refresh()
    await origin.gate.arrivals(1)
    #expect(cache.update { $0 += 1 } == 8)
    await origin.gate.arrivals(2)
    origin.gate.open()
    await states.loaded(2)
    #expect(cache.cachedValue == 2)
  }

  @Test(.guarantee(.signalsFetchFreshValues))
  func `a live subscription fetches a fresh value with every signal, and joins a fetch in flight`()
    async
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let signals = Messenger<Void>()
    let states = cache.subscription(refetching: .on(signals.subscription()))
    await states.loaded(1)
    signals.send()
    await states.loaded(2)
    origin.gate.close()
    signals.send()
    await origin.gate.arrivals(1)
    let received = Log<Void>()
    let witness = signals.observe { received.append(()) }
    signals.send()
    await received.first(1)
    let request = Task { try await cache.request() }
    #expect((try? await request.value) == 2, "a fresh value is at hand meanwhile")
    origin.gate.open()
    await states.loaded(3)
    #expect(cache.statistics.fetches == 3)
    withExtendedLifetime(witness) {}
  }

  @Test(.guarantee(.signalsFetchFreshValues))
  func `a live subscription continues without signals when their sequence has ended or failed`()
    async
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let failing = AsyncThrowingStream<Int, any Error> { $0.finish(throwing: Broken()) }
    let states = cache.subscription(refetching: .on(failing).and(.whenStale))
    await states.loaded(1)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(60))
    await states.loaded(2)
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `a live subscription fetches after a refresh and after a clear`()
    async throws
  {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await states.loaded(1)
    cache.refresh()
    await states.loaded(2)
    try await cache.clear()
    await states.loaded(3)
    cache.clearMemory()
    await states.loaded(4)
    #expect(cache.statistics.fetches == 4)
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `a live subscription fetches again when it is cleared during a fetch`() async throws {
    let origin = LiveOrigin(isHeldUp: true)
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await origin.gate.arrivals(1)
    try await cache.clear()
    await origin.fetches.first(2)
    origin.gate.open()
    await states.loaded(2)
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `a live subscription rests after clearAll until the value is requested`() async throws {
    let origin = LiveOrigin()
    let repository = MuxRepository()
    let cache = origin.multiplexer().register(in: repository)
    let signals = Messenger<Void>()
    let states = cache.subscription(
      refetching: .whenStale.and(.every(.seconds(10))).and(.on(signals.subscription()))
    )
    await states.loaded(1)
    try await repository.clearAll()
    #expect(cache.current.name == "unknown")
    cache.refresh()
    try await cache.clear()
    #expect(origin.clock.nextDeadline == nil, "it does not even wake")
    #expect(cache.statistics.fetches == 1)
    #expect(try await cache.request() == 2)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await states.loaded(3)

    try await repository.clearAll()
    signals.send()
    await states.loaded(4)

    try await repository.clearAll()
    let another = cache.subscription(refetching: .whenStale)
    await another.loaded(5)
    await states.loaded(5)
    #expect(cache.statistics.fetches == 5)
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `a live subscription of a key rests after its tags were cleared until it is requested`()
    async throws
  {
    let origin = LiveOrigin()
    let map = MultiplexerMap<Int, Int>(
      tagging: { _ in ["account"] },
      clock: origin.clock,
      onKeyFetch: { _ in try await origin.fetch() }
    )
    let states = map[7].subscription(refetching: .whenStale)
    await states.loaded(1)
    try await map.clear(tags: ["account"])
    #expect(map[7].current.name == "unknown")
    #expect(map.statistics.fetches == 1)
    #expect(try await map[7].request() == 2)
    await states.loaded(2)
    // Any other removal of the value is a reason to fetch it.
    map.clearMemory(7)
    await states.loaded(3)
  }

  @Test(.guarantee(.nothingRunsWithoutLiveSubscriptions))
  func `live subscriptions leave nothing running when the last one has left`() async {
    let origin = LiveOrigin(isHeldUp: true)
    let cache = origin.multiplexer(CachePolicy(whenUnobserved: .cancel))
    let signals = Messenger<Void>()
    var streams = [
      cache.subscribe(
        refetching: .whenStale.and(.every(.seconds(1))).and(.on(signals.subscription()))
      ),
      cache.subscribe(refetching: .whenStale),
    ]
    await origin.gate.arrivals(1)
    await origin.clock.sleepers(1)
    #expect(cache.subscriberCount == 2)
    streams.removeFirst()
    #expect(cache.subscriberCount == 1)
    streams = []
    #expect(cache.subscriberCount == 0)
    for await count in signals.subscriberCounts() where count == 0 { break }
    // The fetch is cancelled with its caller.
    for await state in cache.subscription() where !state.isLoading { break }
    #expect(cache.current.name == "unknown")
    origin.gate.open()
    cache.refresh()
    #expect(cache.statistics.fetches == 1)
  }

  @Test(.guarantee(.nothingRunsWithoutLiveSubscriptions))
  func `a live subscription does not keep its cache, and ends with it`() async {
    let origin = LiveOrigin()
    var cache: Multiplexer<Int>? = origin.multiplexer()
    weak let weakCache = cache
    guard let states = cache?.subscription(refetching: .whenStale.and(.every(.seconds(1)))) else {
      return
    }
    await states.loaded(1)
    cache = nil
    #expect(weakCache == nil)
    for await _ in states {}
    let clock = origin.clock
    clock.advance(by: .seconds(100))
    #expect(origin.fetches.count == 1)
  }

  @Test(.guarantee(.liveKeysAreNotEvicted))
  func `a live subscription keeps its key from being evicted, and fetches that key only`()
    async throws
  {
    let fetches = Log<Int>()
    let map = MultiplexerMap<Int, Int>(capacity: .count(16)) { key in
      fetches.append(key)
      return key
    }
    let entry = map[7]
    let states = entry.subscription(refetching: .whenStale)
    for await state in states where state.value == 7 { break }
    for key in 100..<300 { _ = try await map.request(key) }
    #expect(entry.cachedValue == 7)
    map.store(8, for: 7)
    for key in 300..<500 { _ = try await map.request(key) }
    #expect(entry.cachedValue == 8)
    #expect(fetches.entries.filter { $0 == 7 }.count == 1)
  }

  @Test(.guarantee(.liveKeysAreNotEvicted))
  func `a key can be evicted once its live subscription has ended`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(capacity: .count(16)) { $0 }
    do {
      let states = map[7].subscription(refetching: .whenStale)
      for await state in states where state.value == 7 { break }
    }
    for key in 100..<400 { _ = try await map.request(key) }
    #expect(map.cachedValue(7) == nil)
  }

  @Test(.guarantee(.liveSubscriptionsHaveTheirPolicy))
  func `a live subscription takes states like every other subscription, under its policy`() async {
    let origin = LiveOrigin()
    let cache = origin.multiplexer()
    cache.store(1)
    let all = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    let newest = cache.subscribe(refetching: .whenStale)
    for number in 2...5 { cache.store(number) }
    #expect(await all.first(5).map(\.name) == (1...5).map { "loaded \($0)" })
    #expect(await newest.first(1).map(\.name) == ["loaded 5"])
  }
}
