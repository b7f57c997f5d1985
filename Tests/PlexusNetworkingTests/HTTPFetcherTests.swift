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
struct `A fetch over HTTP` {
  let origin: LoopbackOrigin
  let clock = ManualClock()
  /// The conditions of the requests, in order.
  let conditions = Guarded<[String?]>([])
  let headers = Guarded<OriginHeaders>([:])
  let body = Guarded("one")

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/value") { [conditions, headers, body] request in
      conditions.withLock { $0.append(request.headers["If-None-Match"]) }
      var response = OriginResponse(text: body.withLock { $0 })
      for field in headers.withLock({ $0 }).fields { response.headers.add(field.name, field.value) }
      return response
    }
  }

  private func set(_ new: OriginHeaders) { headers.withLock { $0 = new } }

  private func fetcher(now: Guarded<Double> = Guarded(1000)) throws -> HTTPFetcher<String> {
    let url = try #require(URL(string: origin.address + "/value"))
    return HTTPFetcher(
      URLRequest(url: url),
      transport: patientTransport,
      rules: .patient,
      now: { Date(timeIntervalSince1970: now.withLock { $0 }) },
      decode: { String(decoding: $0, as: UTF8.self) }
    )
  }

  private func multiplexer(now: Guarded<Double> = Guarded(1000)) throws -> Multiplexer<String> {
    Multiplexer(policy: .http, clock: clock, onFetch: try fetcher(now: now).fetch)
  }

  @Test(.guarantee(.serverDeterminesFreshness)) func `a value is fresh as long as the server says`()
    async throws
  {
    set(["Cache-Control": "max-age=60", "Age": "10"])
    let value = try multiplexer()
    #expect(try await value.request() == "one")
    clock.advance(by: .seconds(49))
    #expect(try await value.request() == "one")
    #expect(origin.statistics.requestCount == 1)
    clock.advance(by: .seconds(1))
    body.withLock { $0 = "two" }
    #expect(try await value.request() == "two")
    #expect(origin.statistics.requestCount == 2)
  }

  @Test(.guarantee(.serverDeterminesFreshness))
  func `a stale value is requested with its entity tag, and 304 renews it`() async throws {
    set(["Cache-Control": "max-age=60", "ETag": "\"v1\""])
    let value = try multiplexer()
    _ = try await value.request()
    clock.advance(by: .seconds(60))
    // The value would change if it were sent.
    body.withLock { $0 = "never sent" }
    #expect(try await value.request() == "one")
    #expect(conditions.withLock { $0 } == [nil, "\"v1\""])
    clock.advance(by: .seconds(59))
    #expect(try await value.request() == "one")
    #expect(origin.statistics.requestCount == 2)
    set(["Cache-Control": "max-age=60", "ETag": "\"v2\""])
    clock.advance(by: .seconds(1))
    #expect(try await value.request() == "never sent")
  }

  @Test func `a date of modification is a condition, too`() async throws {
    set(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control": "no-cache"])
    let value = try multiplexer()
    _ = try await value.request()
    body.withLock { $0 = "never sent" }
    #expect(try await value.request() == "one")
    #expect(origin.statistics.requestCount == 2)
  }

  @Test func `a value without a word about freshness has the time to live of the policy`()
    async throws
  {
    var policy = CachePolicy.http
    policy.timeToLive = .seconds(5)
    let value = Multiplexer(policy: policy, clock: clock, onFetch: try fetcher().fetch)
    _ = try await value.request()
    clock.advance(by: .seconds(4))
    _ = try await value.request()
    #expect(origin.statistics.requestCount == 1)
    clock.advance(by: .seconds(1))
    _ = try await value.request()
    #expect(origin.statistics.requestCount == 2)
  }

  @Test func `an error status without stale-if-error is an error`() async throws {
    let value = try multiplexer()
    _ = try await value.request()
    origin.inject(.status(404), for: "/value")
    let error = await #expect(throws: HTTPStatusError.self) { try await value.request() }
    #expect(error?.status == 404)
  }

  @Test func `a value is used while the server cannot be reached, unless the server forbids it`()
    async throws
  {
    let allowed = try multiplexer()
    _ = try await allowed.request()
    set(["Cache-Control": "max-age=0, must-revalidate"])
    let forbidden = try multiplexer()
    _ = try await forbidden.request()
    await origin.goOffline()
    #expect(try await allowed.request() == "one")
    await #expect(throws: HTTPRevalidationError.self) { try await forbidden.request() }
  }

  @Test func `a retry waits as long as Retry-After says`() async throws {
    var policy = CachePolicy.http
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    origin.route("/value") { [conditions] _ in
      let isFirst = conditions.withLock { seen in
        seen.append(nil)
        return seen.count == 1
      }
      return isFirst
        ? OriginResponse(status: 503, headers: ["Retry-After": "30"]) : OriginResponse(text: "late")
    }
    let value = Multiplexer(policy: policy, clock: clock, onFetch: try fetcher().fetch)
    let request = Task { try await value.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(29))
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    #expect(try await request.value == "late")
  }

  @Test(arguments: [OriginFault.reset(), .truncation(afterBytes: 1), .reset(afterBytes: 1)])
  func `an answer that breaks off is a failure of connectivity`(fault: OriginFault) async throws {
    origin.inject(fault, for: "/value", count: 10)
    let fetcher = try fetcher()
    let error = await #expect(throws: URLError.self) {
      _ = try await fetcher.fetch(FetchContext(previousValue: nil))
    }
    #expect(error?.isConnectivityFailure == true)
  }

  @Test func `a cancelled fetch stops the transfer`() async throws {
    origin.inject(.stall(afterBytes: 1), for: "/value")
    let fetcher = try fetcher()
    let task = Task { _ = try await fetcher.fetch(FetchContext(previousValue: nil)) }
    await origin.requests(1, for: "/value")
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `a map asks for each key by itself`() async throws {
    let address = origin.address
    set(["ETag": "\"v1\""])
    let pages = MultiplexerMap<String, Data>(policy: .http, clock: clock) {
      (path: String, context: FetchContext<Data>) in
      guard let url = URL(string: address + path) else { throw URLError(.badURL) }
      return try await HTTPFetcher(url, transport: patientTransport, rules: .patient) { $0 }.fetch(
        context
      )
    }
    #expect(try await pages.request("/value") == Data("one".utf8))
    #expect(try await pages.request("/value") == Data("one".utf8))
    #expect(conditions.withLock { $0 } == [nil, "\"v1\""])
    await #expect(throws: HTTPStatusError.self) { try await pages.request("/missing") }
  }
}
