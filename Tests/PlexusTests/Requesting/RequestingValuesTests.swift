import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The values of the request core` {
  @Test(.guarantee(.publicTypesAreSendable)) func `the types of the request core are sendable`() {
    func requireSendable<Value: Sendable>(_ type: Value.Type) {}
    requireSendable(Multiplexer<Int>.self)
    requireSendable(MultiplexerMap<Int, Int>.self)
    requireSendable(MuxRepository.self)
    requireSendable(MuxRepositoryError.self)
    requireSendable(MultiplexerError.self)
    requireSendable(Request<Int>.self)
    requireSendable(Response<Int>.self)
    requireSendable(Response<Int>.Source.self)
    requireSendable(FetchContext<Int>.self)
    requireSendable(FetchResult<Int>.self)
    requireSendable(CacheDirectives.self)
    requireSendable(CacheEntry<Int>.self)
    requireSendable((any OriginFailure).self)
    requireSendable(CachePolicy.self)
    requireSendable(RetryPolicy.self)
    requireSendable(CachePolicy.UnobservedFetch.self)
    requireSendable(CachePolicy.CacherRead.self)
    requireSendable(CacheStatistics.self)
    requireSendable(Zipper<Request<Int>, Multiplexer<String>>.self)
    requireSendable((any Requestable<Int>).self)
    requireSendable((any RepositoryMember).self)
    requireSendable((any ConnectivityFailure).self)
  }

  @Test(.guarantee(.policyDefaultsAreDocumented))
  func `a policy begins with the documented defaults`() {
    #expect(CachePolicy().timeToLive == .seconds(30 * 60))
    expectDefaults(CachePolicy())
    #expect(CachePolicy(timeToLive: .seconds(1)).timeToLive == .seconds(1))
    expectDefaults(CachePolicy(timeToLive: .seconds(1)))
  }

  /// Expects the defaults of all but the time to live.
  private func expectDefaults(_ policy: CachePolicy) {
    #expect(policy.staleWhileRevalidate == .zero)
    #expect(policy.failureTimeToLive == .zero)
    #expect(policy.retry == .never)
    #expect(policy.fetchTimeout == nil)
    #expect(policy.whenUnobserved == .finishAndStore)
    #expect(policy.cacherRead == .afterConnectivityError)
    #expect(policy.expiryJitter == 0)
    #expect(policy.usesCachedValue(Offline()))
    #expect(!policy.usesCachedValue(Offline(isConnectivityFailure: false)))
    #expect(!policy.usesCachedValue(Broken()))
    #expect(!policy.usesCachedValue(CancellationError()))
    #expect(policy.timeToIdle == nil)
    #expect(policy.refreshAhead == .zero)
    #expect(policy.softTimeout == nil)
    #expect(policy.storageTimeout == .seconds(5))
    #expect(policy.writeBehind == nil)
    #expect(policy.maximumRetryAfter == .seconds(60))
    #expect(!policy.inheritsTaskLocals)
  }

  @Test(.guarantee(.policyDefaultsAreDocumented))
  func `a policy takes every rule by its label, in the order of declaration`() {
    let policy = CachePolicy(
      timeToLive: .seconds(1),
      staleWhileRevalidate: .seconds(2),
      usesCachedValue: { _ in true },
      failureTimeToLive: .seconds(3),
      retry: .exponential(attempts: 4, base: .zero, cap: .zero, jitter: 0),
      fetchTimeout: .seconds(5),
      whenUnobserved: .cancel,
      cacherRead: .beforeFetch,
      expiryJitter: 0.6,
      timeToIdle: .seconds(7),
      refreshAhead: .seconds(8),
      softTimeout: .seconds(9),
      storageTimeout: .seconds(10),
      writeBehind: .seconds(11),
      maximumRetryAfter: .seconds(12),
      inheritsTaskLocals: true,
      staleTimeToLive: .seconds(13),
      maximumConcurrentFetches: 14,
      maximumWaitingFetches: 15
    )
    #expect(policy.timeToLive == .seconds(1))
    #expect(policy.staleWhileRevalidate == .seconds(2))
    #expect(policy.usesCachedValue(Broken()))
    #expect(policy.failureTimeToLive == .seconds(3))
    #expect(policy.retry == .exponential(attempts: 4, base: .zero, cap: .zero, jitter: 0))
    #expect(policy.fetchTimeout == .seconds(5))
    #expect(policy.whenUnobserved == .cancel)
    #expect(policy.cacherRead == .beforeFetch)
    #expect(policy.expiryJitter == 0.6)
    #expect(policy.timeToIdle == .seconds(7))
    #expect(policy.refreshAhead == .seconds(8))
    #expect(policy.softTimeout == .seconds(9))
    #expect(policy.storageTimeout == .seconds(10))
    #expect(policy.writeBehind == .seconds(11))
    #expect(policy.maximumRetryAfter == .seconds(12))
    #expect(policy.inheritsTaskLocals)
    #expect(policy.staleTimeToLive == .seconds(13))
    #expect(policy.maximumConcurrentFetches == 14)
    #expect(policy.maximumWaitingFetches == 15)
    let properties = Mirror(reflecting: policy).children.compactMap(\.label)
    #expect(
      properties == [
        "timeToLive", "staleWhileRevalidate", "usesCachedValue", "failureTimeToLive", "retry",
        "fetchTimeout", "whenUnobserved", "cacherRead", "expiryJitter", "timeToIdle",
        "refreshAhead", "softTimeout", "storageTimeout", "writeBehind", "maximumRetryAfter",
        "inheritsTaskLocals", "staleTimeToLive", "maximumConcurrentFetches",
        "maximumWaitingFetches",
      ]
    )
  }

  @Test(.guarantee(.requestsCountOnce)) func `statistics add up number by number`() {
    let left = CacheStatistics(
      hits: 1,
      staleHits: 2,
      misses: 3,
      joins: 4,
      fetches: 5,
      failures: 6,
      evictions: 7,
      cacherErrors: 8,
      restorations: 9
    )
    let right = CacheStatistics(
      hits: 10,
      staleHits: 20,
      misses: 30,
      joins: 40,
      fetches: 50,
      failures: 60,
      evictions: 70,
      cacherErrors: 80,
      restorations: 90
    )
    let sum = CacheStatistics(
      hits: 11,
      staleHits: 22,
      misses: 33,
      joins: 44,
      fetches: 55,
      failures: 66,
      evictions: 77,
      cacherErrors: 88,
      restorations: 99
    )
    #expect(left + right == sum)
    #expect(left + CacheStatistics() == left)
  }

  @Test func `errors describe their solution`() {
    let recursion = MultiplexerError.recursiveRequest(chain: ["a", "b", "a"])
    #expect(recursion.description.contains("a -> b -> a"))
    #expect(MultiplexerError.fetchTimedOut(after: .seconds(5)).description.contains("5.0 seconds"))
    #expect(MultiplexerError.missingKey("k").description.contains("key k"))
    #expect(MultiplexerError.notModifiedWithoutValue.description.contains(".notModified"))
    let error = MuxRepositoryError(failures: [.init(id: "profile", error: Broken())])
    #expect("\(error)".contains("profile: Broken"))
  }

  @Test func `a response can be made for any requestable`() {
    let response = Response(value: 1, source: .cacher)
    #expect(response.age == .zero)
    #expect(!response.isStale)
    #expect(response.error == nil)
    let context = FetchContext(previousValue: 1)
    #expect(context.attempt == 1)
    #expect(context.validator == nil)
  }

  @Test(arguments: CacheKind.allCases)
  func `a multiplexer without an id is called by its type in errors`(kind: CacheKind) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let cache = kind.make {
      guard let cache = await own.first() else { return 0 }
      return try await cache.request()
    }
    own.send(cache)
    let name = kind == .map ? "MultiplexerMap<String, Int>[key]" : "Multiplexer<Int>"
    await #expect(throws: MultiplexerError.recursiveRequest(chain: [name, name])) {
      try await cache.request()
    }
  }

  @Test(.guarantee(.requestsCountOnce), arguments: CacheKind.allCases)
  func `every request counts once in the statistics`(kind: CacheKind) async throws {
    let clock = ManualClock()
    var policy = CachePolicy()
    policy.staleWhileRevalidate = .seconds(60)
    policy.failureTimeToLive = .seconds(10)
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2), .success(3)])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try? await cache.request()
    _ = try? await cache.request()
    #expect(cache.statistics.counts == CacheStatistics(misses: 2, fetches: 1, failures: 1))
    clock.advance(by: .seconds(10))
    _ = try await cache.request()
    _ = try await cache.response()
    _ = try await cache.refresh().request()
    clock.advance(by: policy.timeToLive)
    _ = try await cache.response()
    #expect(
      cache.statistics
        == CacheStatistics(hits: 1, staleHits: 1, misses: 4, fetches: 4, failures: 1)
    )
  }
}
