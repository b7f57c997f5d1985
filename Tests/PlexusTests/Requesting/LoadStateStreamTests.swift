import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A subscriber of a cache` {
  @Test(.guarantee(.subscribersCauseNoFetch), arguments: CacheKind.allCases)
  func `a subscriber of a cache receives the current state and every change, and starts no fetch`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    let cache = kind.make { try await origin.fetch() }
    let states = Recorder(cache.subscribe())
    #expect(await states.first(1).map(\.name) == ["unknown"])
    #expect(origin.count == 0)

    _ = try await cache.request()
    cache.refresh()
    _ = try? await cache.request()
    _ = try await cache.request()
    cache.store(7)
    // Unread states are skipped after a clear.
    _ = await states.first(8)
    try await cache.clear()
    cache.store(8)
    cache.clearMemory()
    let all = await states.first(11).map(\.name)
    #expect(
      all == [
        "unknown", "loading", "loaded 1", "loading 1", "failed Broken 1", "loading 1", "loaded 3",
        "loaded 7", "unknown", "loaded 8", "unknown",
      ]
    )
  }

  @Test(arguments: CacheKind.allCases)
  func `a subscriber of a cache that is added late receives the current state`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken())], gate: gate)
    let cache = kind.make { try await origin.fetch() }
    func current() async -> String? { await Recorder(cache.subscribe()).first(1).first?.name }

    let first = begin { try await cache.request() }
    #expect(await current() == "loading")
    gate.open()
    _ = try await first.value
    #expect(await current() == "loaded 1")
    _ = try? await cache.refresh().request()
    #expect(await current() == "failed Broken 1")
    cache.clearMemory()
    #expect(await current() == "unknown")
  }

  @Test(arguments: CacheKind.allCases)
  func `a subscriber of a cache that is added after a failure without a value receives it`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make(Int.self) { throw Broken() }
    _ = try? await cache.request()
    #expect(await Recorder(cache.subscribe()).first(1).map(\.name) == ["failed Broken"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a subscriber of a cache is counted until its stream is dropped`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make { 1 }
    #expect(cache.subscriberCount == 0)
    do {
      let first = cache.subscribe()
      let second = cache.refresh().subscribe()
      #expect(cache.subscriberCount == 2)
      withExtendedLifetime((first, second)) {}
    }
    #expect(cache.subscriberCount == 0)
    let third = cache.subscribe()
    #expect(cache.subscriberCount == 1)
    _ = try await cache.request()
    var iterator = third.makeAsyncIterator()
    #expect(await iterator.next()?.name.hasPrefix("unknown") == true)
  }

  @Test(.guarantee(.releasedCachesEndTheirStreams), arguments: CacheKind.allCases)
  func `the stream of a subscriber ends with the last reference, also those from refreshes`(
    kind: CacheKind
  ) async throws {
    var cache: CacheUnderTest? = kind.make { 1 }
    var refreshed = cache?.refresh()
    let states = Recorder(try #require(cache).subscribe())
    cache = nil
    #expect(try await refreshed?.request() == 1)
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "loaded 1"])
    #expect(!states.isFinished)
    refreshed = nil
    #expect(await states.finished().count == 3)
  }

  @Test func `a subscriber of a cache of one key receives nothing of the others`() async throws {
    let map = MultiplexerMap<Int, Int> { $0 * 10 }
    let states = Recorder(map.subscription(to: 1, bufferingPolicy: .unbounded))
    _ = try await map.request(2)
    _ = try await map.request(1)
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "loaded 10"])
    #expect(map.subscriberCount(of: 2) == 0)
  }

  @Test func `a subscriber of a cache receives changes in the order in which they were made`()
    async throws
  {
    let watch = Watch()
    let map = MultiplexerMap<WatchedKey, Int> { $0.number }
    let keys = (0..<64).map { WatchedKey(number: $0, watch: watch) }
    let streams = keys.map { map.subscription(to: $0, bufferingPolicy: .unbounded) }
    for key in keys { map.store(1, for: key) }
    // Keys are not cleared all at once: when the last one is cleared, the first is free again.
    watch.begin(last: keys.count) { first in
      withoutLocks { map.store(2, for: first) }
    }
    map.clearMemory()
    let first = try #require(watch.first)
    #expect(map.cachedValue(first) == 2)
    let states = await streams[first.number].first(4)
    #expect(states.map(\.name) == ["unknown", "loaded 1", "unknown", "loaded 2"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a subscriber of a cache receives every value before the caller that gets it continues`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make { 1 }
    let stream = cache.subscribe()
    let caller = begin {
      _ = try await cache.request()
      var iterator = stream.makeAsyncIterator()
      _ = await iterator.next()
      _ = await iterator.next()
      return await iterator.next()?.name
    }
    #expect(try await caller.value == "loaded 1")
  }
}

/// A key that reports when it is compared.
private struct WatchedKey: Hashable, Sendable {
  let number: Int
  let watch: Watch

  static func == (left: WatchedKey, right: WatchedKey) -> Bool {
    left.watch.compared(left)
    return left.number == right.number
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(number)
  }
}

/// A closure that runs when keys are compared.
private final class Watch: Sendable {
  private struct State {
    var rest = 0
    var first: WatchedKey?
    var onLast: (@Sendable (WatchedKey) -> Void)?
  }

  private let state = Guarded(State())

  /// The first key that was compared.
  var first: WatchedKey? { state.withLock { $0.first } }

  /// Calls a closure with the first key of a comparison, counted from now on.
  func begin(last count: Int, _ onLast: @escaping @Sendable (WatchedKey) -> Void) {
    state.withLock { $0 = State(rest: count, onLast: onLast) }
  }

  func compared(_ key: WatchedKey) {
    let call = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.rest > 0 else { return nil }
      state.rest -= 1
      let first = state.first ?? key
      state.first = first
      guard state.rest == 0, let onLast = state.onLast else { return nil }
      state.onLast = nil
      return { onLast(first) }
    }
    call?()
  }
}
