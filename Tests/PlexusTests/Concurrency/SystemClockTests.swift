import Plexus
import TestSupport
import Testing

/// The default clock of all types that measure time is the system's.
///
/// The tests do not sleep: each duration has passed by the next instruction, and each test polls for the effect.
@Suite(.fewAtOnce) struct `The clock of the system` {
  private let instant = Duration.nanoseconds(1)

  /// Polls a condition until it is true or a long time has passed.
  private func comesTrue(_ isTrue: () async throws -> Bool) async rethrows -> Bool {
    let end = ContinuousClock.now.advanced(by: .seconds(600))
    while ContinuousClock.now < end {
      if try await isTrue() { return true }
    }
    return false
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `the clock of the system makes the value of a publisher stale`()
    async
  {
    let publisher = DataPublisher<Int>(staleAfter: instant)
    publisher.update(1)
    #expect(await comesTrue { publisher.isStale })
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `the clock of the system expires a retained event`() async {
    struct Brief: Event {
      var persistence: EventPersistence { .persistent(.neverClear, timeToLive: .nanoseconds(1)) }
    }
    let bus = EventBus()
    bus.post(Brief())
    #expect(await comesTrue { bus.pendingEvents(of: Brief.self).isEmpty })
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `the clock of the system makes the values of caches stale`()
    async throws
  {
    var policy = CachePolicy()
    policy.timeToLive = instant
    let cacher = SimpleCacher()
    let (first, second) = (Tally(), Tally())
    let caches = [
      Multiplexer(policy: policy) { first.increment() },
      Multiplexer(policy: policy) { _ in .value(second.increment()) },
    ]
    for cache in caches {
      #expect(try await comesTrue { try await cache.request() > 1 })
    }
    let tally = Tally()
    let maps = [
      MultiplexerMap<Int, Int>(policy: policy) { _ in tally.increment() },
      MultiplexerMap<Int, Int>(policy: policy) { _, _ in .value(tally.increment()) },
      MultiplexerMap<Int, Int>.bulk(policy: policy) { _ in [1: tally.increment()] },
      MultiplexerMap<Int, Int>(policy: policy, cacher: cacher) { _ in tally.increment() },
      MultiplexerMap<Int, Int>(policy: policy, cacher: cacher) { _, _ in .value(tally.increment())
      },
      MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: cacher) { _ in [1: tally.increment()] },
    ]
    for map in maps {
      let begin = try await map.request(1)
      #expect(try await comesTrue { try await map.request(1) > begin })
    }
  }

  @Test(.guarantee(.timeToLiveContinuesDuringSleep))
  func `the clock of the system makes a value stale after its millisecond, not a tick later`()
    async throws
  {
    let tally = Tally()
    let map = MultiplexerMap<Int, Int>(policy: CachePolicy(timeToLive: .milliseconds(1))) { _ in
      tally.increment()
    }
    for round in 0..<50 {
      let first = try await map.refresh(1).request(1)
      // The time to live begins before this.
      let end = ContinuousClock.now.advanced(by: .milliseconds(1))
      while ContinuousClock.now < end {}
      #expect(try await map.request(1) == first + 1, "round \(round)")
    }
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `the clock of the system fires debouncers and throttlers`() async {
    let debouncer = Debouncer(delay: instant)
    let variable = DebouncerVar(0, delay: instant)
    let throttler = Throttler(interval: instant, leading: false)
    let (firings, values, others) = (
      debouncer.subscription(), variable.subscription(), throttler.subscription()
    )
    debouncer.touch()
    variable.value = 1
    throttler.touch()
    #expect(await firings.first(1).count == 1)
    #expect(await values.first(1) == [1])
    #expect(await others.first(1).count == 1)
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `the clock of the system advances debounced and throttled sequences`() async {
    let source = Messenger<Int>()
    let debounced = source.subscription().debounced(for: instant)
    let throttled = source.subscription().throttled(for: instant, leading: false)
    source.send(1)
    var first = debounced.makeAsyncIterator()
    var second = throttled.makeAsyncIterator()
    #expect(await first.next() == 1)
    #expect(await second.next() == 1)
  }
}
