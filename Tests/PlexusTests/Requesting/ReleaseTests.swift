import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Releasing` {
  @Test(.guarantee(.releasedCachesEndTheirStreams), arguments: CacheKind.allCases)
  func `releasing a cache while a fetch runs still gives the callers their result`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    var cache: CacheUnderTest? = kind.make { try await origin.fetch() }
    let callers = (0..<3).map { _ in begin { [cache] in try await cache?.request() } }
    await gate.arrivals(1)
    cache = nil
    gate.open()
    for caller in callers { #expect(try await caller.value == 1) }
  }

  @Test(.guarantee(.releasedCachesEndTheirStreams), arguments: CacheKind.allCases)
  func `releasing a cache frees its closure, its values and its errors`(
    kind: CacheKind
  ) async throws {
    let tokens = Tokens()
    do {
      let cache = kind.make { [token = tokens.make()] in
        withExtendedLifetime(token) {}
        return tokens.make()
      }
      _ = try await cache.request()
      _ = try await cache.refresh().request()
      cache.store(tokens.make())
      let states = Recorder(cache.subscribe())
      _ = await states.first(1)
    }
    await tokens.allGone()
  }

  @Test(arguments: CacheKind.allCases)
  func `releasing a cache whose fetch runs unobserved frees everything when the fetch ends`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let tokens = Tokens()
    do {
      let cache = kind.make { [token = tokens.make()] in
        try await gate.wait()
        return token
      }
      let caller = begin { try await cache.request() }
      await gate.arrivals(1)
      caller.cancel()
      _ = await caller.result
    }
    gate.open()
    await tokens.allGone()
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns), arguments: CacheKind.allCases)
  func `a value that calls back into its cache is released under no lock`(
    kind: CacheKind
  ) async throws {
    let (made, released) = (Tally(), Log<Void>())
    let owner = CacheReference()
    let tokens = Tokens()
    @Sendable func value() -> Caller {
      made.increment()
      return Caller(owner: owner, released: released)
    }
    do {
      let cache = kind.make { [token = tokens.make()] in
        withExtendedLifetime(token) { value() }
      }
      owner.adopt(cache)
      for round in 1...10 {
        cache.store(value())
        cache.store(value())
        _ = try await cache.refresh().request()
        try await cache.clear()
        _ = try await cache.request()
        cache.clearMemory()
        #expect(made.value >= 4 * round)
      }
    }
    // A value that is released late refreshes, and can cause one more fetch. The closure is released with the last of
    // them.
    await tokens.allGone()
    await released.first(made.value)
    #expect(released.count == made.value)
  }

  @Test(arguments: CacheKind.allCases)
  func `an error that calls back into its cache is released under no lock`(
    kind: CacheKind
  ) async throws {
    let (made, released) = (Tally(), Log<Void>())
    let owner = CacheReference()
    let tokens = Tokens()
    @Sendable func caller() -> Caller {
      made.increment()
      return Caller(owner: owner, released: released)
    }
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(100)
    do {
      let cache: CacheUnderTest<Caller> = kind.make(policy: policy) { [token = tokens.make()] in
        try withExtendedLifetime(token) { throw Failure(caller: caller()) }
      }
      owner.adopt(cache)
      _ = try? await cache.request()
      _ = try? await cache.request()
      _ = try? await cache.refresh().request()
      try await cache.clear()
      _ = try? await cache.request()
      cache.store(caller())
      cache.clearMemory()
      #expect(made.value >= 4)
    }
    // As above: the last notified subscriber releases the value a moment later, and can cause one more fetch.
    await tokens.allGone()
    await released.first(made.value)
    #expect(released.count == made.value)
  }

  @Test func `a map frees a key that has no value, fetch or subscriber`()
    async throws
  {
    let released = Tally()
    let map = MultiplexerMap<KeyThatCalls, Int> { _ in 1 }
    do {
      let key = KeyThatCalls { released.increment() }
      let streams = [map.subscription(to: key), map.subscription(to: key)]
      #expect(map.subscriberCount(of: key) == 2)
      withExtendedLifetime(streams) {}
    }
    #expect(released.value == 1)
  }

  @Test func `a fetch that has waited for another one does not keep its key`() async throws {
    let gate = Gate()
    let inner = MultiplexerMap<KeyThatCalls, Int> { _ in
      try await gate.wait()
      return 1
    }
    let released = Log<Void>()
    do {
      let outer = MultiplexerMap<KeyThatCalls, Int> { try await inner.request($0) }
      let key = KeyThatCalls { released.append(()) }
      let caller = Task { try await outer.request(key) }
      await gate.arrivals(1)
      gate.open()
      #expect(try await caller.value == 1)
      try await inner.clear()
    }
    await released.first(1)
    #expect(released.count == 1)
  }

  @Test func `a key that calls back into its map is released under no lock`() async throws {
    let released = Log<Void>()
    let map = MultiplexerMap<KeyThatCalls, Int> { _ in 1 }
    for _ in 0..<100 {
      let key = KeyThatCalls { [weak map] in
        withoutLocks { map?.clearMemory() }
        released.append(())
      }
      _ = try await map.request(key)
      try await map.clear(key)
    }
    // The tasks of the last fetches can still be about to end.
    await released.first(100)
    #expect(released.count == 100)
  }
}

/// Objects whose release can be awaited.
private final class Tokens: Sendable {
  final class Token: Sendable {
    private let gone: Gate

    init(gone: Gate) {
      self.gone = gone
    }

    deinit {
      let gone = gone
      Task { try await gone.wait() }
    }
  }

  private let gone = Gate()
  private let made = Tally()

  func make() -> Token {
    made.increment()
    return Token(gone: gone)
  }

  func allGone() async {
    await gone.arrivals(made.value)
    #expect(gone.waiterCount == made.value)
    gone.open()
  }
}

/// A reference from a value to its cache.
private final class CacheReference: Sendable {
  private let channel = RecordedChannel<@Sendable () -> Void>()

  func adopt(_ cache: CacheUnderTest<Caller>) {
    let call: @Sendable () -> Void
    switch cache {
    case .multiplexer(let cache):
      call = { [weak cache] in
        _ = cache?.cachedValue
        _ = cache?.statistics
        cache?.refresh()
      }
    case .map(let cache):
      call = { [weak cache] in
        _ = cache?.cachedValue("key")
        _ = cache?.statistics
        cache?.refresh("key")
      }
    }
    channel.send(call)
  }

  func call() {
    for call in channel.recorder.elements { call() }
  }
}

/// A value that uses its cache when it is released.
private final class Caller: Sendable {
  private let owner: CacheReference
  private let released: Log<Void>

  init(owner: CacheReference, released: Log<Void>) {
    self.owner = owner
    self.released = released
  }

  deinit {
    let owner = owner
    withoutLocks { owner.call() }
    released.append(())
  }
}

private struct Failure: Error {
  let caller: Caller
}

/// A key that uses its map when it is released.
private final class KeyThatCalls: Hashable, Sendable {
  private let onRelease: @Sendable () -> Void

  init(onRelease: @escaping @Sendable () -> Void) {
    self.onRelease = onRelease
  }

  deinit { onRelease() }

  static func == (left: KeyThatCalls, right: KeyThatCalls) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
