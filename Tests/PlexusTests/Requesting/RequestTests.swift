import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A request` {
  @Test(.guarantee(.requestsShareOneFetch), arguments: CacheKind.allCases)
  func `concurrent requests share exactly one fetch`(kind: CacheKind) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make { try await origin.fetch() }

    let callers = (0..<100).map { _ in begin { try await cache.request() } }
    await gate.arrivals(1)
    #expect(cache.statistics.counts == CacheStatistics(misses: 1, joins: 99, fetches: 1))
    gate.open()

    for caller in callers { #expect(try await caller.value == 1) }
    #expect(origin.count == 1)
  }

  @Test(.guarantee(.requestsShareOneFetch), arguments: CacheKind.allCases)
  func `requests from many threads at once share exactly one fetch`(
    kind: CacheKind
  ) async throws {
    let tally = Tally()
    let cache = kind.make { tally.increment() }
    let values = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<1_000 { group.addTask { try await cache.request() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(values == [1])
    #expect(tally.value == 1)
  }

  @Test func `keys of a map are fetched apart from each other`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(clock: ManualClock()) { key in
      if key == 1 { try await gate.wait() }
      return key * 10
    }
    let slow = begin { try await map.request(1) }
    await gate.arrivals(1)
    #expect(try await map.request(2) == 20)
    gate.open()
    #expect(try await slow.value == 10)
    #expect(map.statistics.counts == CacheStatistics(misses: 2, fetches: 2))
  }

  @Test(.guarantee(.requestsShareOneFetch), arguments: CacheKind.allCases)
  func `the caller that starts a fetch and one that joins it get the same response`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    let cache = kind.make { try await origin.fetch() }
    let callers = (0..<3).map { _ in begin { try await cache.response() } }
    gate.open()
    for caller in callers {
      let response = try await caller.value
      #expect(response.value == 1)
      #expect(response.source == .fetch)
      #expect(response.age == .zero)
      #expect(!response.isStale)
      #expect(response.error == nil)
    }
  }

  @Test(.guarantee(.cancelledCallersReturnImmediately), arguments: CacheKind.allCases)
  func `of 100,000 callers of one fetch one leaves at once and the others get the value`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make { try await origin.fetch() }
    let callers = (0..<100_000).map { _ in begin { try await cache.request() } }
    await gate.arrivals(1)

    let leaver = callers[50_000]
    leaver.cancel()
    await #expect(throws: CancellationError.self) { try await leaver.value }
    #expect(gate.waiterCount == 1, "The fetch goes on")

    gate.open()
    var sum = 0
    for (index, caller) in callers.enumerated() where index != 50_000 {
      sum += try await caller.value
    }
    #expect(sum == 99_999)
    #expect(cache.statistics.counts == CacheStatistics(misses: 1, joins: 99_999, fetches: 1))
  }

  @Test(.guarantee(.hitDoesNotSuspend), arguments: CacheKind.allCases)
  func `a hit does not suspend`(kind: CacheKind) async throws {
    let cache = kind.make { 1 }
    _ = try await cache.request()
    let tally = Tally()
    let caller = begin {
      _ = try await cache.request()
      tally.increment()
    }
    #expect(tally.value == 1, "It has its value before anything could be resumed")
    try await caller.value
    #expect(cache.statistics.counts == CacheStatistics(hits: 1, misses: 1, fetches: 1))
  }

  @Test(.guarantee(.hitDoesNotSuspend), arguments: CacheKind.allCases)
  func `a hit stays on the actor of its caller`(kind: CacheKind) async throws {
    let cache = kind.make { 1 }
    _ = try await cache.request()
    let actor = CountingActor()
    let before = await actor.jobs
    let after = try await actor.jobsAfter(1_000) { _ = try await cache.request() }
    #expect(after == before + 1, "One job for the call, and none for a thousand hits in it")
  }

  @Test(.guarantee(.failuresReachAllCallers), arguments: CacheKind.allCases)
  func `a failure reaches all callers and is not kept`(kind: CacheKind) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2)], gate: gate)
    let cache = kind.make { try await origin.fetch() }
    let callers = (0..<10).map { _ in begin { try await cache.request() } }
    gate.open()
    for caller in callers { await #expect(throws: Broken()) { try await caller.value } }
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == 2)
    #expect(
      cache.statistics.counts == CacheStatistics(misses: 2, joins: 9, fetches: 2, failures: 1)
    )
  }

  @Test(.guarantee(.readingTheCachedValueFetchesNothing), arguments: CacheKind.allCases)
  func `the cached value is fresh or stale, fetches nothing and is not counted`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    let cache = kind.make(clock: clock) { 1 }
    #expect(cache.cachedValue == nil)
    _ = try await cache.request()
    let statistics = cache.statistics
    #expect(cache.cachedValue == 1)
    clock.advance(by: .seconds(100_000))
    #expect(cache.cachedValue == 1)
    #expect(cache.statistics == statistics)
  }

  @Test func `the request of one key of a map keeps the map alive`() async throws {
    var request: Request<Int>?
    weak var gone: MultiplexerMap<Int, Int>?
    do {
      let map = MultiplexerMap<Int, Int> { $0 * 2 }
      request = Request(map[21])
      gone = map
    }
    #expect(try await request?.request() == 42)
    request = nil
    #expect(gone == nil)
  }

  @Test func `a request made of a closure runs it every time`() async throws {
    let tally = Tally()
    let request = Request { tally.increment() }
    #expect(try await request.request() == 1)
    #expect(try await request.request() == 2)
  }
}

/// An actor that counts the jobs it runs.
private actor CountingActor {
  private final class Executor: SerialExecutor {
    let jobs = Atomic(0)

    func enqueue(_ job: consuming ExecutorJob) {
      jobs.add(1, ordering: .relaxed)
      let job = UnownedJob(job)
      Task.detached { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
  }

  private let executor = Executor()

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  nonisolated var jobs: Int {
    get async { executor.jobs.load(ordering: .relaxed) }
  }

  /// Runs a closure a number of times, on this actor.
  func jobsAfter(_ count: Int, _ body: @Sendable () async throws -> Void) async rethrows -> Int {
    for _ in 0..<count { try await body() }
    return executor.jobs.load(ordering: .relaxed)
  }
}
