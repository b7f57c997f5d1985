import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Requests that a cache must keep apart, and values that it must forget.
@Suite(.fewAtOnce)
struct `A cache of HTTP under attack` {
  private typealias Answer = @Sendable (Int, URLRequest) -> (Int, [String: String], String)

  private let clock = ManualClock()
  private static let fresh = ["Cache-Control": "max-age=60"]

  private func transport(_ answer: @escaping Answer) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      let (status, headers, text) = answer(count, request)
      try receiver.take(request, status: status, headers: headers, text)
    }
  }

  private func cache(
    _ transport: ClosureTransport,
    capacity: CacheCapacity<String> = .count(1_000),
    cookies: HTTPCookieJar? = nil
  ) -> HTTPCache<String> {
    var rules = HTTPRules.patient
    rules.cookies = cookies
    return HTTPCache(
      capacity: capacity,
      transport: transport,
      rules: rules,
      clock: clock,
      now: { [clock] in clock.timeOfDay },
      decode: { String(decoding: $0.body, as: UTF8.self) }
    )
  }

  private func request(
    _ text: String = "https://a.example/value",
    method: String = "GET",
    _ headers: [String: String] = [:]
  ) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: text)))
    request.httpMethod = method
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    return request
  }

  // MARK: - Values that must be forgotten

  @Test(.guarantee(.unsafeRedirectsInvalidate))
  func `a change invalidates a value however many URLs were requested since`() async throws {
    let transport = transport { count, _ in (200, Self.fresh, "\(count)") }
    let cache = cache(transport, capacity: .count(20_000))
    for number in 0..<10_001 {
      _ = try await cache.request(request("https://a.example/\(number)"))
    }
    let first = try request("https://a.example/0")
    #expect(cache.cachedValue(first) != nil)
    _ = try await cache.request(request("https://a.example/0", method: "POST"))
    #expect(cache.cachedValue(first) == nil)
    let second = try request("https://a.example/1")
    try await cache.clear(try #require(second.url))
    #expect(cache.cachedValue(second) == nil)
  }

  @Test func `a value that was requested with no-cache is cleared with its URL`() async throws {
    let transport = transport { count, _ in (200, Self.fresh, "\(count)") }
    let cache = cache(transport)
    let request = try request("https://a.example/value", ["Cache-Control": "no-cache"])
    _ = try await cache.request(request)
    try await cache.clear(try #require(request.url))
    #expect(cache.cachedValue(request) == nil)
  }

  @Test(
    .guarantee(.unsafeRedirectsInvalidate),
    arguments: [
      "HTTPS://a.example/value", "https://A.Example/value", "https://a.example:443/value",
    ]
  )
  func `a change invalidates a URL that is spelled differently`(text: String) async throws {
    let transport = transport { _, request in
      (200, request.httpMethod == "PUT" ? [:] : Self.fresh, "text")
    }
    let cache = cache(transport)
    _ = try await cache.request(request())
    _ = try await cache.request(request(text, method: "PUT"))
    #expect(cache.cachedValue(try request()) == nil)
  }

  @Test(.guarantee(.unsafeRedirectsInvalidate))
  func `a change that is redirected invalidates the URL that it was redirected to`()
    async throws
  {
    let transport = transport { _, request in
      guard request.httpMethod == "POST" else { return (200, Self.fresh, "text") }
      let isFirst = request.url?.path() == "/start"
      return isFirst ? (307, ["Location": "/value"], "") : (200, [:], "")
    }
    let cache = cache(transport)
    _ = try await cache.request(request())
    _ = try await cache.request(request("https://a.example/start", method: "POST"))
    #expect(cache.cachedValue(try request()) == nil)
  }

  @Test(.guarantee(.unsafeRedirectsInvalidate))
  func `a server that a change is redirected to has no say about the first origin`()
    async throws
  {
    let transport = transport { _, request in
      guard request.httpMethod == "POST" else { return (200, Self.fresh, "text") }
      return request.url?.host() == "a.example"
        ? (307, ["Location": "https://b.example/"], "")
        : (200, ["Location": "https://a.example/value"], "")
    }
    let cache = cache(transport)
    _ = try await cache.request(request())
    _ = try await cache.request(request("https://a.example/start", method: "POST"))
    #expect(cache.cachedValue(try request()) != nil)
  }

  // MARK: - Requests that must be kept apart

  @Test(.guarantee(.revalidationUsesTheCurrentFields))
  func `a stale value is renewed with the header fields of the current request`()
    async throws
  {
    let transport = transport { _, request in
      let key = request.value(forHTTPHeaderField: "X-API-Key")
      return key == "old" ? (200, Self.fresh, "old") : (200, Self.fresh, key ?? "")
    }
    let cache = cache(transport)
    let (old, new) = try (request(["X-API-Key": "old"]), request(["X-API-Key": "new"]))
    #expect(try await cache.request(old) == "old")
    #expect(try await cache.request(new) == "old", "It is fresh, and for all header fields")
    clock.advance(by: .seconds(61))
    #expect(try await cache.request(new) == "new")
    #expect(
      transport.requests.withLock { $0.map { $0.value(forHTTPHeaderField: "X-API-Key") } }
        == ["old", "new"]
    )
    #expect(try await cache.request(new) == "new")
  }

  private func request(_ headers: [String: String]) throws -> URLRequest {
    try request("https://a.example/value", headers)
  }

  private func request(_ text: String, _ headers: [String: String]) throws -> URLRequest {
    try request(text, method: "GET", headers)
  }

  @Test(.guarantee(.revalidationUsesTheCurrentFields))
  func `an answer that begins to name a field is not for requests with another value`()
    async throws
  {
    let transport = transport { count, request in
      let user = request.value(forHTTPHeaderField: "X-User") ?? ""
      return (200, count == 1 ? Self.fresh : Self.fresh.merging(["Vary": "X-User"]) { $1 }, user)
    }
    let cache = cache(transport)
    let (alice, bob) = try (request(["X-User": "alice"]), request(["X-User": "bob"]))
    #expect(try await cache.request(alice) == "alice")
    clock.advance(by: .seconds(61))
    for _ in 0..<2 {
      #expect(try await cache.request(bob) == "bob")
      #expect(try await cache.request(alice) == "alice")
    }
  }

  @Test func `a 304 that begins to name a field is not for requests with another value`()
    async throws
  {
    let transport = transport { count, request in
      let user = request.value(forHTTPHeaderField: "X-User") ?? ""
      let isAsked = request.value(forHTTPHeaderField: "If-None-Match") != nil
      let headers = Self.fresh.merging(
        count == 1 ? ["ETag": "1"] : ["Vary": "X-User", "ETag": "1"]
      ) { $1 }
      return (isAsked ? 304 : 200, headers, isAsked ? "" : user)
    }
    let cache = cache(transport)
    let (alice, bob) = try (request(["X-User": "alice"]), request(["X-User": "bob"]))
    #expect(try await cache.request(alice) == "alice")
    clock.advance(by: .seconds(61))
    // The value that is confirmed was selected without the field, so the request is sent once more.
    #expect(try await cache.request(bob) == "bob")
    #expect(try await cache.request(alice) == "alice")
  }

  @Test(.guarantee(.revalidationUsesTheCurrentFields))
  func `cookies of a jar select as those of the request do`() async throws {
    let transport = transport { _, request in
      let cookie = request.value(forHTTPHeaderField: "Cookie")
      if request.httpMethod == "POST" {
        return (200, ["Set-Cookie": "session=1; Path=/"], "")
      }
      return (200, Self.fresh.merging(["Vary": "Cookie"]) { $1 }, cookie ?? "anonymous")
    }
    let jar = HTTPCookieJar()
    let cache = cache(transport, cookies: jar)
    #expect(try await cache.request(request()) == "anonymous")
    _ = try await cache.request(request("https://a.example/login", method: "POST"))
    #expect(try await cache.request(request()) == "session=1")
    jar.removeAll()
    #expect(try await cache.request(request()) == "anonymous")
  }

  @Test func `names and values of header fields do not run into each other`() async throws {
    let transport = transport { count, _ in
      (200, Self.fresh.merging(["Vary": "A, B, A B"]) { $1 }, "\(count)")
    }
    let cache = cache(transport)
    let all = try [
      request(["A": "1"]), request(["B": "1"]), request(["A": "1", "B": "1"]), request([:]),
      request(["A": "1, B: 1"]), request(["A": ""]), request(["A": "1", "B": ""]),
    ]
    for _ in 0..<2 {
      for (index, request) in all.enumerated() {
        #expect(try await cache.request(request) == "\(index + 1)")
      }
    }
  }

  // MARK: - Hostile numbers and dates

  @Test(
    arguments: [
      ("max-age=9223372036854775807", nil, true), ("max-age=99999999999999999999999999", nil, true),
      ("max-age=-1", nil, false), ("max-age=9223372036854775807", "9223372036854775807", false),
      ("max-age=60", "99999999999999999999999", false), ("max-age=60", "-5", true),
      ("max-age=1e9", nil, false), ("max-age=٣٠", nil, false), ("max-age=\u{ff11}0", nil, false),
      ("max-age", nil, false), ("max-age=", nil, false), ("max-age=0x10", nil, false),
      ("max-age=60, no-cache", nil, false), ("max-age=60; no-cache", nil, false),
      ("MAX-AGE=60", nil, true), (",,,max-age=60,", nil, true), ("max-age=60,NO-STORE", nil, false),
      ("stale-while-revalidate=99999999999999999999, max-age=0", "99999999999999999999", false),
    ] as [(String, String?, Bool)]
  )
  func `hostile numbers do not make a value fresh, nor stop the program`(
    control: String,
    age: String?,
    isFresh: Bool
  ) async throws {
    let transport = transport { count, _ in
      var headers = ["Cache-Control": control]
      headers["Age"] = age
      return (200, headers, "\(count)")
    }
    let cache = cache(transport)
    _ = try await cache.request(request())
    _ = try await cache.response(request())
    // A value that may be used while it is renewed is renewed in any case.
    #expect(transport.requests.withLock { $0.count } == 1 || !isFresh)
    if isFresh { #expect(cache.cachedValue(try request()) == "1") }
  }

  @Test
  func `a clock of the day that goes backwards neither stops the program nor renews for good`()
    async throws
  {
    let times = Guarded([1_000_000_000.0, 0, -1e12, 1e12, 5e8])
    let transport = transport { count, _ in
      (200, ["Cache-Control": "max-age=5", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"], "\(count)")
    }
    let cache = HTTPCache<String>(
      transport: transport,
      rules: .patient,
      clock: clock,
      now: {
        times.withLock { times in
          times.append(times.removeFirst())
          return Date(timeIntervalSince1970: times[0])
        }
      },
      decode: { String(decoding: $0.body, as: UTF8.self) }
    )
    for _ in 0..<10 {
      _ = try await cache.request(request())
      clock.advance(by: .seconds(6))
    }
    #expect(transport.requests.withLock { $0.count } == 10)
  }

  // MARK: - Reentrancy

  @Test func `a decoder of an HTTP cache that requests its own URL does not hang`() async throws {
    let box = Guarded<HTTPCache<String>?>(nil)
    let own = try request()
    let transport = transport { _, _ in (200, Self.fresh, "text") }
    let cache = HTTPCache<String>(transport: transport, rules: .patient, clock: clock) { _ in
      guard let cache = box.withLock({ $0 }) else { return "" }
      return try await cache.request(own)
    }
    box.withLock { $0 = cache }
    defer { box.withLock { $0 = nil } }
    await #expect(throws: (any Error).self) { try await cache.request(own) }
  }

  @Test func `a cache that is released while it is asked answers`() async throws {
    let gate = Gate()
    var cache: HTTPCache<String>? = HTTPCache(
      transport: ClosureTransport { _, request, receiver in
        try await gate.wait()
        try receiver.take(request, "text")
      },
      rules: .patient,
      clock: clock
    ) { String(decoding: $0.body, as: UTF8.self) }
    let own = try request()
    let task = Task { [cache] in try await cache?.request(own) }
    await gate.arrivals(1)
    cache = nil
    gate.open()
    #expect(try await task.value == "text")
  }

  @Test func `a body of a redirect that never ends does not get through`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      guard count == 1 else { return try receiver.take(request, "there") }
      try receiver.begin(request, status: 302, headers: ["Location": "/there"])
      while true { try receiver.receive(Data(count: 10_000)) }
    }
    #expect(try await cache(transport).request(request()) == "there")
  }
}
