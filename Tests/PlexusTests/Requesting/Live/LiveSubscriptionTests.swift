import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A live subscription` {
  /// A multiplexer whose fetches are counted, and can be suspended and fail.
  final class Origin: Sendable {
    let clock = ManualClock()
    let gate = Gate()
    let fetches = Log<Int>()
    private let failures = Guarded<Set<Int>>([])

    init(isHeldUp: Bool = false) {
      if !isHeldUp { gate.open() }
    }

    func fail(_ numbers: Int...) {
      failures.withLock { $0.formUnion(numbers) }
    }

    func fetch() async throws -> Int {
      let number = fetches.count + 1
      fetches.append(number)
      try await gate.wait()
      if failures.withLock({ $0.contains(number) }) { throw Broken() }
      return number
    }

    func multiplexer(
      _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60))
    ) -> Multiplexer<Int> {
      Multiplexer(policy: policy, clock: clock) { try await self.fetch() }
    }
  }

  /// Waits until a stream has delivered a value.
  private func value<States: AsyncSequence & Sendable>(
    _ value: Int,
    in states: States
  ) async where States.Element == LoadState<Int>, States.Failure == Never {
    for await state in states {
      if case .loaded(value) = state { return }
    }
    Issue.record("The stream has ended")
  }

  @Test func `fetches a missing value, once for all and for requests`() async throws {
    let origin = Origin(isHeldUp: true)
    let cache = origin.multiplexer()
    let streams = (0..<3).map { _ in cache.subscription(refetching: .whenStale) }
    await origin.gate.arrivals(1)
    let request = Task { try await cache.request() }
    origin.gate.open()
    #expect(try await request.value == 1)
    for stream in streams { await value(1, in: stream) }
    #expect(cache.statistics.fetches == 1)
  }

  @Test func `fetches nothing that is fresh, and what is stale`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    cache.store(7)
    let first = cache.subscription(refetching: .whenStale)
    #expect(cache.statistics.fetches == 0)
    origin.clock.advance(by: .seconds(60))
    let second = cache.subscription(refetching: .whenStale)
    await value(1, in: second)
    await value(1, in: first)
    #expect(cache.statistics.fetches == 1)
  }

  @Test func `fetches when the value goes stale, again and again`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await value(1, in: states)
    for number in 2...4 {
      await origin.clock.sleepers(1)
      origin.clock.advance(by: .seconds(59))
      #expect(cache.statistics.fetches == number - 1)
      origin.clock.advance(by: .seconds(1))
      await value(number, in: states)
    }
  }

  @Test func `does not fetch over and over what is stale when it arrives`() async {
    let origin = Origin()
    let cache = origin.multiplexer(CachePolicy(timeToLive: .zero))
    let states = cache.subscription(refetching: .whenStale)
    await value(1, in: states)
    cache.store(9)
    await value(9, in: states)
    #expect(cache.statistics.fetches == 1)
    #expect(origin.clock.sleeperCount == 0)
  }

  @Test func `fetches with every interval from the subscription on, fresh or stale`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    origin.clock.advance(by: .seconds(3))
    let states = cache.subscription(refetching: .every(.seconds(10)))
    await value(1, in: states)
    for number in 2...4 {
      await origin.clock.sleepers(1)
      origin.clock.advance(by: .seconds(10))
      await value(number, in: states)
    }
    // Several intervals that have passed at once count as one.
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(35))
    await value(5, in: states)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(5))
    await value(6, in: states)
    #expect(cache.statistics.fetches == 6)
  }

  @Test func `bears an interval that no clock can measure`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    let interval = Duration(secondsComponent: 0, attosecondsComponent: 1)
    var stream: Subscription<LoadState<Int>>? = cache.subscription(refetching: .every(interval))
    if let stream { await value(1, in: stream) }
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .nanoseconds(1))
    if let stream { await value(2, in: stream) }
    stream = nil
  }

  @Test func `of several intervals keeps to the shortest`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    let slow = cache.subscription(refetching: .every(.seconds(30)))
    await value(1, in: slow)
    var fast: Subscription? = cache.subscription(
      refetching: .every(.seconds(10)).and(.every(.seconds(20)))
    )
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await value(2, in: slow)
    withExtendedLifetime(fast) {}
    fast = nil
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(19))
    #expect(cache.statistics.fetches == 2)
    origin.clock.advance(by: .seconds(1))
    await value(3, in: slow)
  }

  @Test func `fetches a fresh value with every signal, and joins a fetch in flight`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    let signals = Messenger<Void>()
    let states = cache.subscription(refetching: .on(signals.subscription()))
    await value(1, in: states)
    signals.send()
    await value(2, in: states)
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
    await value(3, in: states)
    #expect(cache.statistics.fetches == 3)
    withExtendedLifetime(witness) {}
  }

  @Test func `continues without signals when their sequence has ended or failed`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    let failing = AsyncThrowingStream<Int, any Error> { $0.finish(throwing: Broken()) }
    let states = cache.subscription(refetching: .on(failing).and(.whenStale))
    await value(1, in: states)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(60))
    await value(2, in: states)
  }

  @Test func `fetches after a refresh and after a clear`() async throws {
    let origin = Origin()
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await value(1, in: states)
    cache.refresh()
    await value(2, in: states)
    try await cache.clear()
    await value(3, in: states)
    cache.clearMemory()
    await value(4, in: states)
    #expect(cache.statistics.fetches == 4)
  }

  @Test func `fetches again when it is cleared during a fetch`() async throws {
    let origin = Origin(isHeldUp: true)
    let cache = origin.multiplexer()
    let states = cache.subscription(refetching: .whenStale)
    await origin.gate.arrivals(1)
    try await cache.clear()
    await origin.fetches.first(2)
    origin.gate.open()
    await value(2, in: states)
    #expect(cache.statistics.fetches == 2)
  }

  @Test func `rests after clearAll until the value is requested`() async throws {
    let origin = Origin()
    let repository = MuxRepository()
    let cache = origin.multiplexer().register(in: repository)
    let signals = Messenger<Void>()
    let states = cache.subscription(
      refetching: .whenStale.and(.every(.seconds(10))).and(.on(signals.subscription()))
    )
    await value(1, in: states)
    try await repository.clearAll()
    #expect(cache.current.name == "unknown")
    cache.refresh()
    try await cache.clear()
    #expect(origin.clock.nextDeadline == nil, "it does not even wake")
    #expect(cache.statistics.fetches == 1)
    #expect(try await cache.request() == 2)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await value(3, in: states)

    try await repository.clearAll()
    signals.send()
    await value(4, in: states)

    try await repository.clearAll()
    let another = cache.subscription(refetching: .whenStale)
    await value(5, in: another)
    await value(5, in: states)
    #expect(cache.statistics.fetches == 5)
  }

  @Test func `of a key rests after its tags were cleared until it is requested`() async throws {
    let origin = Origin()
    let map = MultiplexerMap<Int, Int>(
      tagging: { _ in ["account"] },
      clock: origin.clock,
      onKeyFetch: { _ in try await origin.fetch() }
    )
    let states = map[7].subscription(refetching: .whenStale)
    await value(1, in: states)
    try await map.clear(tags: ["account"])
    #expect(map[7].current.name == "unknown")
    #expect(map.statistics.fetches == 1)
    #expect(try await map[7].request() == 2)
    await value(2, in: states)
    // Any other removal of the value is a reason to fetch it.
    map.clearMemory(7)
    await value(3, in: states)
  }

  @Test func `waits after a failure for the next signal, interval or refresh`() async throws {
    let origin = Origin()
    origin.fail(1, 3)
    let cache = origin.multiplexer()
    let signals = Messenger<Void>()
    let states = cache.subscription(
      refetching: .whenStale.and(.on(signals.subscription())),
      bufferingPolicy: .unbounded
    )
    func failure() async {
      for await state in states {
        if case .failed = state { return }
      }
    }
    await failure()
    #expect(cache.statistics.fetches == 1)
    #expect(origin.clock.sleeperCount == 0)
    signals.send()
    await value(2, in: states)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(60))
    await failure()
    #expect(cache.statistics.fetches == 3)
    cache.refresh()
    await value(4, in: states)
    #expect(cache.statistics.fetches == 4)
  }

  @Test func `leaves nothing running when the last one has left`() async {
    let origin = Origin(isHeldUp: true)
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

  @Test func `does not keep the cache, and ends with it`() async {
    let origin = Origin()
    var cache: Multiplexer<Int>? = origin.multiplexer()
    weak let weakCache = cache
    guard let states = cache?.subscription(refetching: .whenStale.and(.every(.seconds(1)))) else {
      return
    }
    await value(1, in: states)
    cache = nil
    #expect(weakCache == nil)
    for await _ in states {}
    let clock = origin.clock
    clock.advance(by: .seconds(100))
    #expect(origin.fetches.count == 1)
  }

  @Test func `of a key keeps it from being evicted, and fetches that key only`() async throws {
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

  @Test func `of a key lets it be evicted afterwards`() async throws {
    let map = MultiplexerMap<Int, Int>(capacity: .count(16)) { $0 }
    do {
      let states = map[7].subscription(refetching: .whenStale)
      for await state in states where state.value == 7 { break }
    }
    for key in 100..<400 { _ = try await map.request(key) }
    #expect(map.cachedValue(7) == nil)
  }

  @Test func `takes states like every other subscription, under its policy`() async {
    let origin = Origin()
    let cache = origin.multiplexer()
    cache.store(1)
    let all = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    let newest = cache.subscribe(refetching: .whenStale)
    for number in 2...5 { cache.store(number) }
    #expect(await all.first(5).map(\.name) == (1...5).map { "loaded \($0)" })
    #expect(await newest.first(1).map(\.name) == ["loaded 5"])
  }
}
