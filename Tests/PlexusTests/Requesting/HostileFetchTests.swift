import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A fetch that does more than fetch` {
  @Test func `a fetch can request very many others at once`() async throws {
    let parts = MultiplexerMap<Int, Int> { $0 }
    let whole = Multiplexer { try await (0..<2_000).map { parts[$0] }.values().count }
    #expect(try await whole.request() == 2_000)
  }

  @Test func `no cycle is reported for a waiter that has its answer and has not resumed yet`()
    async throws
  {
    let actor = HeldActor()
    let zBegins = Gate()
    let zAsks = Gate()
    let own = OwnCache<Multiplexer<Int>>()
    let z = Multiplexer<Int>(id: "z") {
      zBegins.open()
      try await zAsks.wait()
      guard let x = await own.first() else { return 0 }
      return try await x.request() + 10
    }
    let y = Multiplexer<Int>(id: "y") {
      // It does not wait for the work that it starts.
      Task { try await z.request() }
      try await zBegins.wait()
      return 1
    }
    let x = Multiplexer<Int>(id: "x") { try await actor.ask(y) }
    own.send(x)

    let caller = begin { try await x.request() }
    // The answer can come while the request is being made, and has to wait.
    await actor.executor.step(atMost: 1)
    #expect(try await y.request() == 1)
    // The fetch of x has its answer now, and is suspended.
    let last = begin { try await z.request() }
    zAsks.open()
    while x.statistics.joins == 0 { await Task.detached {}.value }
    await actor.executor.step()
    #expect(try await caller.value == 1)
    #expect(try await last.value == 11)
  }

  @Test(arguments: [false, true])
  func `a fetch is not accused of a cycle for one whose answer can be seen already`(
    isStored: Bool
  ) async throws {
    let zBegins = Gate()
    let zAsks = Gate()
    let forever = Gate()
    let own = OwnCache<Multiplexer<Int>>()
    let isRefused = Guarded(false)
    let z = Multiplexer<Int>(id: "z") {
      zBegins.open()
      try await zAsks.wait()
      guard let x = await own.first() else { return 0 }
      do {
        return try await x.request() + 10
      } catch {
        isRefused.withLock { $0 = true }
        throw error
      }
    }
    let asked = Guarded<Multiplexer<Int>?>(nil)
    // Its name is read when the answer exists and has not been returned.
    let key = TellingKey {
      zAsks.open()
      // Another thread continues meanwhile; without one, nothing is tested.
      for _ in 0..<100_000 where !isRefused.withLock({ $0 }) {
        guard let x = asked.withLock({ $0 }), x.statistics.joins == 0 else { break }
      }
    }
    let y = MultiplexerMap<TellingKey, Int>(id: "y") { _ in
      Task { try await z.request() }
      try await zBegins.wait()
      if isStored { try await forever.wait() }
      return 1
    }
    let events = y.events()
    let x = Multiplexer<Int>(id: "x") { try await y.request(key) }
    own.send(x)
    asked.withLock { $0 = x }
    defer { asked.withLock { $0 = nil } }

    let caller = begin { try await x.request() }
    if isStored {
      await zAsks.arrivals(1)
      y.store(1, for: key)
    }
    #expect(try await caller.value == 1)
    #expect(try await z.request() == 11)
    #expect(!isRefused.withLock { $0 })
    withExtendedLifetime(events) {}
    forever.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch that leaves a task behind does not retain its value`(
    kind: CacheKind
  ) async throws {
    let forever = Gate()
    let begun = Gate()
    weak var seen: Payload?
    let cache = kind.make {
      Task {
        begun.open()
        try await forever.wait()
      }
      try await begun.wait()
      return Payload()
    }
    do {
      let value = try await cache.request()
      seen = value
      #expect(seen != nil)
    }
    await forever.arrivals(1)
    try await cache.clear()
    // The task of the fetch must end, too.
    while seen != nil, !Task.isCancelled { await Task.detached {}.value }
    #expect(seen == nil)
    forever.open()
  }

  @Test(arguments: [1, 2])
  func `a fetch does not retain the keys that it has requested`(count: Int) async throws {
    let map = MultiplexerMap<Name, Int> { _ in 1 }
    weak var seen: Name?
    do {
      let names = (0..<count).map { _ in Name() }
      seen = names.last
      let cache = Multiplexer<Int> {
        guard count == 1 else { return await map.request(names).count }
        return try await map.request(names[0])
      }
      #expect(try await cache.request() == count)
    }
    try await map.clear()
    // The tasks of the fetches must end, too.
    while seen != nil, !Task.isCancelled { await Task.detached {}.value }
    #expect(seen == nil)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch can handle its cancellation and call its cache`(kind: CacheKind) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let tally = Tally()
    let cache = kind.make(policy: policy) {
      let number = tally.increment()
      guard number == 1 else { return number }
      return try await withTaskCancellationHandler {
        try await gate.wait()
        return number
      } onCancel: {
        for cache in own.elements {
          cache.refresh()
          cache.clearMemory()
          cache.store(100)
          cache.refresh()
        }
      }
    }
    own.send(cache)
    _ = await own.first()
    let caller = Task.detached { try await cache.request() }
    await gate.arrivals(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(cache.cachedValue == 100)
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `a fetch is cancelled with all that it requested, however deep`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    let map = MultiplexerMap<Int, Int>(policy: policy) { number in
      guard number > 0, let map = await own.first() else {
        try await gate.wait()
        return 0
      }
      return try await map.request(number - 1) + 1
    }
    own.send(map)
    let depth = 2_000
    let caller = Task.detached { try await map.request(depth) }
    await gate.arrivals(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    gate.open()
    #expect(try await map.request(depth) == depth)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stale value is returned with the error of the fetch that failed behind it`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    var policy = CachePolicy()
    policy.staleWhileRevalidate = .seconds(1_000)
    policy.failureTimeToLive = .seconds(10)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: policy.timeToLive)
    let states = Recorder(cache.subscribe())
    #expect(try await cache.response().error == nil)
    _ = await states.first(3)
    let response = try await cache.response()
    #expect(response.isStale)
    #expect(response.value == 1)
    #expect(response.error is Broken)
  }
}

/// An actor that is blocked until the test releases it.
/// A key that runs a closure whenever its name is read.
private struct TellingKey: Hashable, Sendable, CustomStringConvertible {
  let onDescription: @Sendable () -> Void

  init(onDescription: @escaping @Sendable () -> Void) {
    self.onDescription = onDescription
  }

  static func == (left: Self, right: Self) -> Bool { true }

  func hash(into hasher: inout Hasher) {}

  var description: String {
    onDescription()
    return "key"
  }
}

private actor HeldActor {
  nonisolated let executor = SteppedExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  func ask(_ multiplexer: Multiplexer<Int>) async throws -> Int {
    try await multiplexer.request()
  }
}

private final class Payload: Sendable {}

/// A key that reports its release.
private final class Name: Hashable, Sendable {
  static func == (left: Name, right: Name) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
