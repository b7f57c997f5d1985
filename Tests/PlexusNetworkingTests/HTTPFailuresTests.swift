import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Error statuses whose server says how long they are fresh.
@Suite(.fewAtOnce)
struct `A failure that is fresh` {
  private let clock = ManualClock()
  private let answer = Guarded((status: 404, headers: ["Cache-Control": "max-age=60"]))

  private func cache(_ transport: ClosureTransport, capacity: Int = 1_000) -> HTTPCache<String> {
    HTTPCache(capacity: .count(capacity), transport: transport, rules: .patient, clock: clock) {
      String(decoding: $0.body, as: UTF8.self)
    }
  }

  private func transport() -> ClosureTransport {
    ClosureTransport { [answer] count, request, receiver in
      let (status, headers) = answer.withLock { $0 }
      let isChange = request.httpMethod == "POST"
      try receiver.take(
        request,
        status: isChange ? 200 : status,
        headers: isChange ? [:] : headers,
        "\(count)"
      )
    }
  }

  private func request(
    _ fields: [String: String] = [:],
    path: String = "value"
  ) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: "https://a.example/\(path)")))
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    return request
  }

  /// The body of an error, or `value` and the body of a value.
  private func ask(_ cache: HTTPCache<String>, _ request: URLRequest) async throws -> String {
    do { return "value " + (try await cache.request(request)) } catch let error as HTTPStatusError {
      return String(decoding: error.body, as: UTF8.self)
    }
  }

  @Test(.guarantee(.freshErrorsAreRemembered), arguments: [404, 410, 500, 503])
  func `a failure that is fresh is remembered for as long as its server says`(
    status: Int
  ) async throws {
    answer.withLock { $0.status = status }
    let cache = cache(transport())
    for _ in 0..<3 { #expect(try await ask(cache, request()) == "1") }
    clock.advance(by: .seconds(59))
    #expect(try await ask(cache, request()) == "1")
    clock.advance(by: .seconds(1))
    answer.withLock { $0.status = 200 }
    #expect(try await ask(cache, request()) == "value 2")
  }

  @Test(.guarantee(.freshErrorsAreRemembered))
  func `a failure that is fresh is forgotten when its URL is changed, cleared or asked again`()
    async throws
  {
    let cache = cache(transport())
    #expect(try await ask(cache, request()) == "1")
    var change = try request()
    change.httpMethod = "POST"
    #expect(try await cache.request(change) == "2")
    #expect(try await ask(cache, request()) == "3")
    try await cache.clear(try #require(change.url))
    #expect(try await ask(cache, request()) == "4")
    #expect(try await ask(cache, request(["Cache-Control": "no-cache"])) == "5")
    #expect(try await ask(cache, request()) == "5")
    try await cache.clear()
    #expect(try await ask(cache, request()) == "6")
  }

  @Test(.guarantee(.freshErrorsAreRemembered))
  func `a fresh failure is forgotten when its URL is changed, after any number of requests`()
    async throws
  {
    let cache = cache(transport(), capacity: 100_000)
    #expect(try await ask(cache, request()) == "1")
    for number in 0..<20_100 { _ = try await ask(cache, request(path: "\(number)")) }
    var change = try request()
    change.httpMethod = "POST"
    _ = try await cache.request(change)
    answer.withLock { $0.status = 200 }
    #expect(try await ask(cache, request()).hasPrefix("value"))
  }

  @Test(.guarantee(.freshErrorsAreRemembered))
  func `a failure that is fresh is for requests with the fields that it names`() async throws {
    let cache = cache(transport())
    answer.withLock { $0 = (200, ["Cache-Control": "max-age=1"]) }
    #expect(try await ask(cache, request(["X": "1"])) == "value 1")
    clock.advance(by: .seconds(2))
    answer.withLock { $0 = (404, ["Cache-Control": "max-age=60", "Vary": "X"]) }
    for _ in 0..<2 { #expect(try await ask(cache, request(["X": "1"])) == "2") }
    for _ in 0..<2 { #expect(try await ask(cache, request(["X": "2"])) == "3") }
    #expect(try await ask(cache, request(["X": "1"])) == "2")
  }

  @Test(.guarantee(.freshErrorsAreRemembered))
  func `a failure is not kept if the request forbids it, nor by a multiplexer of another method`()
    async throws
  {
    let cache = cache(transport())
    for text in ["1", "2"] {
      #expect(try await ask(cache, request(["Cache-Control": "no-store"])) == text)
    }
    let answers = ClosureTransport { count, request, receiver in
      try receiver.take(request, status: 404, headers: ["Cache-Control": "max-age=60"], "\(count)")
    }
    for (method, count) in [("GET", 1), ("POST", 3)] {
      var asked = try request()
      asked.httpMethod = method
      let fetcher = HTTPFetcher(asked, transport: answers, rules: .patient) { $0 }
      let value = Multiplexer(policy: .http, clock: clock, onFetch: fetcher.fetch)
      for _ in 0..<2 { await #expect(throws: HTTPStatusError.self) { try await value.request() } }
      #expect(answers.requests.withLock { $0.count } == count)
    }
  }
}

/// A value whose server answers 4xx when it is to be renewed.
@Suite(.fewAtOnce)
struct `A value that its server no longer has, or forbids` {
  @Test(
    .guarantee(.clientErrorsEndCachedValues),
    arguments: [401, 403, 404, 410],
    ["max-age=60", "no-store", "max-age=0"]
  )
  func `a refused value does not come back when it is stale, nor while its server is away`(
    status: Int,
    control: String
  ) async throws {
    let clock = ManualClock()
    let url = try #require(URL(string: "https://a.example/value"))
    /// The status of the next answers; 0 if there is none.
    let next = Guarded(200)
    let transport = ClosureTransport { _, request, receiver in
      let present = next.withLock { $0 }
      guard present > 0 else { throw URLError(.notConnectedToInternet) }
      let lifetimes = "max-age=1, stale-while-revalidate=600, stale-if-error=600"
      let headers = ["Cache-Control": present < 400 ? lifetimes : control, "ETag": "1"]
      guard present != 304 else {
        return try receiver.begin(request, status: present, headers: headers)
      }
      try receiver.take(request, status: present, headers: headers, "text")
    }
    var policy = CachePolicy.http
    policy.retry = .never
    let cache = HTTPCache<String>(
      policy: policy,
      transport: transport,
      rules: .patient,
      clock: clock
    ) { String(decoding: $0.body, as: UTF8.self) }
    let events = cache.events()
    #expect(try await cache.request(url) == "text")
    next.withLock { $0 = status }
    clock.advance(by: .seconds(2))
    // It is renewed behind the stale value.
    #expect(try await cache.request(url) == "text")
    for await event in events {
      if case .fetchFailed = event { break }
    }
    await #expect(throws: HTTPStatusError.self) { try await cache.request(url) }
    clock.advance(by: .seconds(70))
    for other in [0, 503] {
      next.withLock { $0 = other }
      await #expect(throws: (any Error).self) { try await cache.request(url) }
      // What is remembered of a 503 ends.
      clock.advance(by: .seconds(70))
    }
    // Confirmed by its server, it is used as before.
    for other in [304, 0] {
      next.withLock { $0 = other }
      #expect(try await cache.request(url) == "text")
      clock.advance(by: .seconds(2))
    }
  }
}
