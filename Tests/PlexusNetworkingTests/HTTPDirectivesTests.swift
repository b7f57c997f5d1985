import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `What a server says about keeping a value` {
  let origin: LoopbackOrigin
  let clock = ManualClock()
  let headers = Guarded<OriginHeaders>([:])
  let body = Guarded("one")
  /// The time of day that fetches go by.
  let now = Guarded(1000.0)

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/value", methods: [.get, .post]) { [headers, body] _ in
      var response = OriginResponse(text: body.withLock { $0 })
      for field in headers.withLock({ $0 }).fields { response.headers.add(field.name, field.value) }
      return response
    }
  }

  private func set(_ cacheControl: String) {
    headers.withLock { $0 = ["Cache-Control": cacheControl, "ETag": "\"v1\""] }
  }

  private func fetcher(
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> HTTPFetcher<String> {
    var request = URLRequest(url: try #require(URL(string: origin.address + "/value")))
    change(&request)
    return HTTPFetcher(
      request,
      transport: patientTransport,
      rules: .patient,
      now: { [now] in Date(timeIntervalSince1970: now.withLock { $0 }) },
      decode: { String(decoding: $0, as: UTF8.self) }
    )
  }

  /// A cache of the value, which has been fetched.
  private func cache(
    _ cacheControl: String,
    _ change: (inout CachePolicy) -> Void = { _ in },
    cacher: (any Cacher<String>)? = nil
  ) async throws -> Multiplexer<String> {
    set(cacheControl)
    var policy = CachePolicy.http
    change(&policy)
    let cache = Multiplexer(
      id: "value",
      policy: policy,
      cacher: cacher,
      clock: clock,
      onFetch: try fetcher().fetch
    )
    #expect(try await cache.request() == "one")
    return cache
  }

  /// Time goes by on both clocks.
  private func pass(_ seconds: Int) {
    now.withLock { $0 += Double(seconds) }
    clock.advance(by: .seconds(seconds))
  }

  // MARK: - stale-while-revalidate

  @Test func `stale-while-revalidate is how long a value is returned while it is renewed`()
    async throws
  {
    let cache = try await cache("max-age=10, stale-while-revalidate=20")
    pass(29)
    origin.inject(.stall(), for: "/value")
    #expect(try await cache.response().isStale)
    await origin.requests(2, for: "/value")
    #expect(try await cache.request() == "one")
    #expect(origin.statistics.requestCount == 2, "One fetch renews it")

    let late = try await self.cache("max-age=10, stale-while-revalidate=20")
    pass(30)
    #expect(try await late.response().source == .fetch)
  }

  @Test func `stale-while-revalidate wins over the policy, which holds without it`() async throws {
    let patient = { @Sendable (policy: inout CachePolicy) in
      policy.staleWhileRevalidate = .seconds(60)
    }
    let own = try await cache("max-age=10, stale-while-revalidate=0", patient)
    pass(10)
    #expect(try await own.response().source == .fetch)
    let other = try await cache("max-age=10", patient)
    pass(69)
    #expect(try await other.response().isStale)
  }

  @Test(arguments: ["must-revalidate, max-age=10", "no-cache", "no-cache=\"Set-Cookie\""])
  func `must-revalidate and no-cache forbid the use of a stale value while it is renewed`(
    directives: String
  ) async throws {
    let cache = try await cache(directives + ", stale-while-revalidate=60") {
      $0.staleWhileRevalidate = .seconds(60)
    }
    pass(10)
    let response = try await cache.response()
    #expect(response.source == .fetch)
    #expect(!response.isStale)
  }

  // MARK: - stale-if-error

  @Test(arguments: [500, 502, 503, 504])
  func `stale-if-error says how long a value is used after a failure, whatever the policy`(
    status: Int
  ) async throws {
    let cache = try await cache("max-age=10, stale-if-error=100") {
      $0.usesCachedValue = { _ in false }
    }
    pass(109)
    origin.inject(.status(status), for: "/value", count: 2)
    let response = try await cache.response()
    #expect(response.value == "one")
    #expect(response.isStale)
    #expect((response.error as? HTTPStatusError)?.status == status)
    #expect((response.error as? HTTPStatusError)?.allowsStaleValue == true)
    pass(1)
    let error = await #expect(throws: HTTPStatusError.self) { try await cache.request() }
    #expect(error?.status == status)
    #expect(error?.allowsStaleValue == false)
    #expect(try await cache.request() == "one")
  }

  @Test(arguments: [400, 401, 403, 404, 410, 429])
  func `stale-if-error does not bring back what the server refuses`(status: Int) async throws {
    let cache = try await cache("max-age=10, stale-if-error=100")
    pass(10)
    origin.inject(.status(status), for: "/value")
    let error = await #expect(throws: HTTPStatusError.self) { try await cache.request() }
    #expect(error?.status == status)
    #expect(error?.allowsStaleValue == false)
  }

  @Test func `stale-if-error counts for a body that cannot be read, and for a broken transfer`()
    async throws
  {
    set("max-age=10, stale-if-error=100")
    let url = try #require(URL(string: origin.address + "/value"))
    let fetcher = HTTPFetcher(
      URLRequest(url: url),
      transport: patientTransport,
      rules: .patient,
      now: { [now] in Date(timeIntervalSince1970: now.withLock { $0 }) },
      decode: { data in
        guard data == Data("one".utf8) else { throw CocoaError(.coderReadCorrupt) }
        return data
      }
    )
    var policy = CachePolicy.http
    policy.usesCachedValue = { _ in false }
    let cache = Multiplexer(policy: policy, clock: clock, onFetch: fetcher.fetch)
    _ = try await cache.request()
    clock.advance(by: .seconds(10))
    headers.withLock { $0 = ["ETag": "\"v2\""] }
    body.withLock { $0 = "unreadable" }
    #expect(try await cache.response().error is CocoaError)
    origin.inject(.truncation(afterBytes: 1), for: "/value")
    #expect(try await cache.response().error is URLError)
  }

  @Test(arguments: ["must-revalidate, max-age=10", "no-cache"])
  func `must-revalidate and no-cache forbid the use of a stale value after any failure`(
    directives: String
  ) async throws {
    let cache = try await cache(directives + ", stale-if-error=100") {
      $0.usesCachedValue = { _ in true }
    }
    pass(10)
    origin.inject(.status(500), for: "/value")
    let error = await #expect(throws: HTTPStatusError.self) { try await cache.request() }
    #expect(error?.status == 500)
    #expect(error?.allowsStaleValue == false)
    await origin.goOffline()
    await #expect(throws: HTTPRevalidationError.self) { try await cache.request() }
    #expect(cache.cachedValue == "one", "It is not dropped")
  }

  @Test func `must-revalidate forbids nothing while the value is fresh`() async throws {
    let cache = try await cache("must-revalidate, max-age=10")
    await origin.goOffline()
    let response = try await cache.refresh().response()
    #expect(response.value == "one")
    #expect(response.error is URLError)
    pass(10)
    await #expect(throws: HTTPRevalidationError.self) { try await cache.request() }
  }

  @Test func `what is old on arrival has the less time`() async throws {
    headers.withLock {
      $0 = [
        "Cache-Control": "max-age=10, stale-while-revalidate=20, stale-if-error=30", "Age": "25",
      ]
    }
    let cache = Multiplexer(policy: .http, clock: clock, onFetch: try fetcher().fetch)
    _ = try await cache.request()
    pass(4)
    origin.inject(.status(500), for: "/value", count: 10)
    #expect(try await cache.response().isStale)
    for await state in cache.subscribe() where state.error != nil { break }
    pass(1)
    #expect(try await cache.response().error is HTTPStatusError)
    pass(10)
    await #expect(throws: HTTPStatusError.self) { try await cache.request() }
  }

  // MARK: - 304

  @Test func `304 without a word about freshness renews by what the value came with`()
    async throws
  {
    let cache = try await cache("max-age=10, stale-if-error=100")
    headers.withLock { $0 = ["ETag": "\"v1\""] }
    for _ in 0..<2 {
      pass(10)
      #expect(try await cache.response().source == .fetch)
      pass(9)
      #expect(try await cache.response().source == .memory)
      pass(1)
    }
    origin.inject(.status(500), for: "/value")
    #expect(try await cache.response().error is HTTPStatusError)
  }

  @Test func `304 replaces what the value came with`() async throws {
    let cache = try await cache("max-age=10, stale-if-error=1000, stale-while-revalidate=1000")
    pass(1010)
    set("max-age=20, must-revalidate")
    #expect(try await cache.response().source == .fetch)
    pass(20)
    origin.inject(.status(500), for: "/value")
    await #expect(throws: HTTPStatusError.self) { try await cache.request() }
  }

  @Test func `304 with no-store lets the value go`() async throws {
    let cacher = Shelf()
    let cache = try await cache("max-age=10", cacher: cacher)
    try await cache.flush()
    #expect(cacher.entries["value"]?.value == "one")
    pass(10)
    set("no-store")
    body.withLock { $0 = "never sent" }
    #expect(try await cache.request() == "one")
    #expect(cache.cachedValue == nil)
    try await cache.flush()
    #expect(cacher.entries.isEmpty)
    #expect(try await cache.request() == "never sent")
  }

  // MARK: - no-store

  @Test func `no-store keeps a value nowhere, and what was kept is removed`() async throws {
    let cacher = Shelf()
    let cache = try await cache("max-age=10", cacher: cacher)
    try await cache.flush()
    pass(10)
    headers.withLock { $0 = ["Cache-Control": "no-store, max-age=60", "ETag": "\"v2\""] }
    body.withLock { $0 = "two" }
    #expect(try await cache.request() == "two")
    try await cache.flush()
    #expect(cacher.entries.isEmpty)
    await origin.goOffline()
    await #expect(throws: URLError.self) { try await cache.request() }
  }

  @Test func `no-store in a request keeps a value nowhere, too`() async throws {
    set("max-age=60")
    let fetcher = try fetcher { $0.setValue("no-store", forHTTPHeaderField: "cache-control") }
    let cache = Multiplexer(policy: .http, clock: clock, onFetch: fetcher.fetch)
    _ = try await cache.request()
    #expect(cache.cachedValue == nil)
  }

  // MARK: - Stored copies

  @Test func `a stored copy is asked about, and keeps what it came with`() async throws {
    let cacher = Shelf()
    let first = try await cache("max-age=10, stale-if-error=100000", cacher: cacher)
    pass(20)
    try await first.flush()
    body.withLock { $0 = "never sent" }
    let second = Multiplexer(
      id: "value",
      policy: .http,
      cacher: cacher,
      clock: clock,
      onFetch: try fetcher().fetch
    )
    origin.inject(.status(500), for: "/value")
    #expect(try await second.response().source == .cacher)
    let response = try await second.response()
    #expect(response.value == "one", "After 304")
    #expect(response.source == .fetch)
  }

  @Test func `must-revalidate forbids nothing while the value is fresh by the policy`() async throws
  {
    let cache = try await cache("must-revalidate") { $0.timeToLive = .seconds(10) }
    await origin.goOffline()
    let response = try await cache.refresh().response()
    #expect(response.value == "one")
    #expect(response.error is URLError)
    pass(10)
    await #expect(throws: URLError.self) { try await cache.request() }
  }
}

/// A cacher in memory.
final class Shelf: Cacher {
  private let state = Guarded<[String: CacheEntry<String>]>([:])

  var entries: [String: CacheEntry<String>] { state.withLock { $0 } }

  func entry(forKey key: String) async -> CacheEntry<String>? { entries[key] }

  func store(_ new: [String: CacheEntry<String>]) async {
    state.withLock { $0.merge(new) { _, newer in newer } }
  }

  func removeEntries(forKeys keys: Set<String>) async {
    state.withLock { entries in for key in keys { entries[key] = nil } }
  }

  func removeAllEntries() async { state.withLock { $0 = [:] } }
}
