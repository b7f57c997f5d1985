import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A stored copy, read after an error` {
  let cacher = ControlledCacher<Int>()

  @Test(arguments: CacheKind.allCases)
  func `a copy for errors is not read before a fetch, nor after one that succeeds`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = kind.make(storedIn: cacher) { 1 }
    #expect(try await cache.response().source == .fetch)
    #expect(cacher.calls.isEmpty)
    #expect(cache.statistics.restorations == 0)
  }

  @Test(.guarantee(.cachersAreReadAfterFailures), arguments: CacheKind.allCases)
  func `a copy is not read after an error for which it must not be used`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = kind.make(storedIn: cacher) { throw Broken() }
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(cacher.calls.isEmpty)
    #expect(cache.cachedValue == nil)
  }

  @Test(arguments: CacheKind.allCases, [Duration.seconds(10), .seconds(100_000)])
  func `a stored copy replaces a value that cannot be fetched, however old`(
    kind: CacheKind,
    age: Duration
  ) async throws {
    let time = RealTime()
    cacher.entries["key"] = CacheEntry(7, age: age)
    let origin = ScriptedFetcher<Int>([.failure(Offline()), .success(2)])
    let cache = kind.make(storedIn: cacher) { try await origin.fetch() }
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(response.isStale)
    #expect(response.error as? Offline == Offline())
    #expect(time.allows(response.age, for: age))
    #expect(cache.cachedValue == 7)
    #expect(cache.statistics.restorations == 1)
    #expect(try await cache.request() == 2, "Nothing says that the copy is still the right one")
    #expect(cacher.count(of: .read) == 1)
  }

  @Test(.guarantee(.failuresKeepTheValue), arguments: CacheKind.allCases)
  func `a copy read after an error is used from memory after the next one, and not read again`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = kind.make(storedIn: cacher) { throw Offline() }
    _ = try await cache.request()
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .memory)
    #expect(response.isStale)
    #expect(response.error is Offline)
    #expect(cacher.count(of: .read) == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `a copy read after an error is used for as long as the failure is remembered`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(60)
    let cache = kind.make(storedIn: cacher, policy: policy) { throw Offline() }
    for _ in 0..<3 { #expect(try await cache.request() == 7) }
    #expect(cache.statistics.fetches == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `without a stored copy the callers get the error of the fetch`(kind: CacheKind) async throws
  {
    let cache = kind.make(storedIn: cacher) { throw Offline() }
    await #expect(throws: Offline.self) { try await cache.request() }
    #expect(cache.statistics.restorations == 0)
  }

  @Test(.guarantee(.cachersAreReadAfterFailures), arguments: CacheKind.allCases)
  func `a copy read after an error is returned to all callers, and renewed by the next fetch`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10), validator: "tag")
    let gate = cacher.hold(.read)
    let contexts = RecordedChannel<FetchContext<Int>>()
    let cache = kind.makeInformed(storedIn: cacher) { (context: FetchContext<Int>) in
      contexts.send(context)
      guard context.previousValue != nil else { throw Offline() }
      return .notModified()
    }
    let callers = (0..<3).map { _ in begin { try await cache.response() } }
    await gate.arrivals(1)
    gate.open()
    for caller in callers { #expect(try await caller.value.source == .cacher) }
    let renewed = try await cache.response()
    #expect(renewed.value == 7)
    #expect(renewed.source == .fetch)
    let last = await contexts.recorder.first(2).last
    #expect(last?.previousValue == 7)
    #expect(last?.validator == "tag")
    #expect(try await cache.response().source == .memory)
  }

  @Test(arguments: CacheKind.allCases)
  func `a copy from the future is used for its stale-if-error time only`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    var entry = CacheEntry(7, age: .seconds(-3_600), timeToLive: .seconds(1_000))
    entry.directives.staleIfError = .seconds(100)
    cacher.entries["key"] = entry
    let cache = kind.make(storedIn: cacher, policy: .readingFirst(), clock: clock) {
      throw Broken()
    }
    #expect(try await cache.request() == 7)
    clock.advance(by: .seconds(99))
    #expect(try await cache.request() == 7)
    clock.advance(by: .seconds(1))
    await #expect(throws: Broken.self) { try await cache.request() }
  }

  @Test(arguments: CacheKind.allCases)
  func `a copy is used after errors until its time to live ends, also with revalidation`(
    kind: CacheKind
  ) async throws {
    var entry = CacheEntry(7, age: .seconds(10))
    entry.directives.requiresRevalidation = true
    cacher.entries["key"] = entry
    let clock = ManualClock()
    let cache = kind.make(storedIn: cacher, clock: clock) { throw Offline() }
    for _ in 0..<3 { #expect(try await cache.request() == 7) }
    clock.advance(by: .seconds(3_600))
    await #expect(throws: Offline.self) { try await cache.request() }
  }
}
