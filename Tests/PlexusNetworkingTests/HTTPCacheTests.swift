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

/// The requirements of RFC 9111 for a private cache.
@Suite(.fewAtOnce)
struct `A cache of HTTP` {
  let origin: LoopbackOrigin
  let other: LoopbackOrigin
  let cache: HTTPCache<HTTPResponse>
  let clock = ManualClock()
  /// The answers of the origin in order; the last one is repeated.
  let answers = Guarded<[OriginResponse]>([])
  let seen = Guarded<[OriginRequest]>([])

  init() throws {
    origin = try LoopbackOrigin(timeOf: clock)
    other = try LoopbackOrigin(timeOf: clock)
    for server in [origin, other] {
      server.route("/*", methods: Set(OriginRequest.Method.allCases)) { [answers, seen] request in
        seen.withLock { $0.append(request) }
        return answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
      }
    }
    cache = HTTPCache(
      transport: patientTransport,
      rules: .patient,
      clock: clock,
      now: { [clock] in clock.timeOfDay }
    )
  }

  private func answer(
    _ text: String,
    _ headers: OriginHeaders = [:],
    status: Int = 200
  ) -> OriginResponse {
    OriginResponse(status: status, headers: headers, body: Array(text.utf8))
  }

  private func set(_ new: OriginResponse...) { answers.withLock { $0 = new } }

  private func request(
    _ path: String = "/value",
    method: String = "GET",
    _ headers: [String: String] = [:]
  ) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: origin.address + path)))
    request.httpMethod = method
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    return request
  }

  private func text(
    _ path: String = "/value",
    method: String = "GET",
    _ headers: [String: String] = [:]
  ) async throws -> String {
    let response = try await cache.request(request(path, method: method, headers))
    return String(decoding: response.body, as: UTF8.self)
  }

  private var count: Int { origin.statistics.requestCount }

  // MARK: - Selecting

  @Test func `a fresh answer is reused for its URL, with its query and without its fragment`()
    async throws
  {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    for path in ["/value", "/value#a", "/value", "/value?a=1", "/value?a=1#b", "/value?a=2"] {
      #expect(try await text(path) == "one")
    }
    #expect(seen.withLock { $0.map(\.target) } == ["/value", "/value?a=1", "/value?a=2"])
  }

  @Test(.guarantee(.varyIsRespected)) func `Vary is honoured on a hit`() async throws {
    let headers: OriginHeaders = ["Cache-Control": "max-age=60", "Vary": "Accept-Language, X"]
    set(answer("hallo", headers), answer("salut", headers), answer("other", headers))
    for _ in 0..<2 {
      #expect(try await text("/value", ["Accept-Language": "de", "Accept": "a"]) == "hallo")
      #expect(try await text("/value", ["accept-language": " de ", "Accept": "b"]) == "hallo")
      #expect(try await text("/value", ["Accept-Language": "fr"]) == "salut")
      #expect(try await text("/value", ["Accept-Language": "fr", "x": "1"]) == "other")
    }
    #expect(count == 3)
  }

  @Test func `an answer without Vary is for requests with any header fields`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    for value in ["a", "b"] { #expect(try await text("/value", ["X": value]) == "one") }
    #expect(count == 1)
  }

  @Test func `Vary of everything is never a hit`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60", "Vary": "*"]))
    for _ in 0..<2 { #expect(try await text() == "one") }
    #expect(count == 2)
  }

  @Test(.guarantee(.varyIsRespected), arguments: ["Authorization", "Cookie", "Range"])
  func `an account has its own values, and a part is not the whole`(name: String) async throws {
    let headers: OriginHeaders = ["Cache-Control": "max-age=60"]
    set(answer("one", headers), answer("two", headers), answer("three", headers))
    for round in 0..<2 {
      // A part is not stored.
      let isNew = name == "Range" && round == 1
      #expect(try await text("/value", [name: "bytes=0-9"]).hasPrefix(isNew ? "three" : "one"))
      #expect(try await text("/value", [name: "bytes=0-8"]).hasPrefix(isNew ? "three" : "two"))
      #expect(try await text() == "three")
    }
    #expect(count == (name == "Range" ? 5 : 3))
  }

  @Test func `a hundred callers share one request`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    let gate = Gate()
    origin.route("/gated") { _ in
      try? await gate.wait()
      // A caller that comes after the end of the request gets the response from memory.
      return answer("gated", ["Cache-Control": "max-age=60"])
    }
    let tasks = (0..<100).map { _ in Task { try await text("/gated") } }
    await gate.arrivals(1)
    gate.open()
    for task in tasks { #expect(try await task.value == "gated") }
    #expect(origin.statistics.requests["/gated"] == 1)
  }

  @Test func `no-cache in a request asks again, and no-store keeps nothing`() async throws {
    set(
      answer("one", ["Cache-Control": "max-age=60"]),
      answer("two", ["Cache-Control": "max-age=60"]),
      answer("three", ["Cache-Control": "max-age=60"])
    )
    #expect(try await text() == "one")
    #expect(try await text("/value", ["Cache-Control": "no-cache"]) == "two")
    for _ in 0..<2 { #expect(try await text() == "two") }
    #expect(seen.withLock { $0.map { $0.headers["Cache-Control"] } } == [nil, "no-cache"])
    for _ in 0..<2 { _ = try await text("/new", ["Cache-Control": "no-store"]) }
    for _ in 0..<2 { _ = try await text("/new") }
    #expect(origin.statistics.requests["/new"] == 3)
  }

  // MARK: - Freshness

  @Test(
    arguments: [
      (["Cache-Control": "max-age=60"], 1), (["Cache-Control": "max-age=0"], 2),
      (["Cache-Control": "max-age=60", "Age": "30"], 1),
      (["Cache-Control": "max-age=60", "Age": "60"], 2),
      (["Cache-Control": "max-age=60", "Expires": "0"], 1),
      (["Cache-Control": "s-maxage=60"], 2), (["Cache-Control": "max-age=60, s-maxage=0"], 1),
      (["Cache-Control": "no-cache, max-age=60"], 2),
      (["Cache-Control": "no-store, max-age=60"], 2),
      (["Cache-Control": "private, max-age=60"], 1), (["Expires": "0"], 2),
      (["Expires": "Fri, 31 Dec 2100 23:59:59 GMT"], 1),
      (["Expires": "Fri, 31 Dec 2100 23:59:59 UTC"], 2),
      (["Expires": "Fri, 31-Dec-2100 23:59:59 GMT"], 2),
      (["Expires": "Fri, 31 Dec 2100 3:59:59 GMT"], 2), ([:], 2),
      (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], 2), (["Pragma": "no-cache"], 2),
    ] as [(OriginHeaders, Int)]
  )
  func `an answer is fresh as long as it says`(headers: OriginHeaders, requests: Int) async throws {
    set(answer("one", headers))
    for _ in 0..<2 { #expect(try await text() == "one") }
    #expect(count == requests)
  }

  @Test(arguments: [200, 201, 202, 203, 204, 299])
  func `a successful status is stored if it says how long`(status: Int) async throws {
    set(answer("", ["Cache-Control": "max-age=60"], status: status))
    for _ in 0..<2 {
      let response = try await cache.request(request())
      #expect(response.status == status)
    }
    #expect(count == 1)
  }

  @Test(
    .guarantee(.httpErrorsAreNotStored),
    arguments: [300, 304, 400, 404, 410, 451, 500, 503, 599]
  )
  func `any other status is an error and is not stored`(status: Int) async throws {
    set(
      answer("no", ["X": "y"], status: status),
      answer("yes", ["Cache-Control": "max-age=60"])
    )
    let error = await #expect(throws: HTTPStatusError.self) { try await text() }
    #expect(error?.status == status)
    #expect(error?.headers["x"] == "y")
    #expect(error?.url == (try request().url))
    #expect(error?.description == "\(origin.address)/value answered with status \(status).")
    #expect(error?.body == Data((status == 304 ? "" : "no").utf8))
    #expect(try await text() == "yes")
  }

  @Test(.guarantee(.httpErrorsAreNotStored))
  func `a cache of HTTP keeps the beginning of the body of an error, and does not load the rest`()
    async throws
  {
    set(answer(String(repeating: "a", count: 2_000_000), status: 500))
    // The rest would be more than the rules allow.
    let strict = HTTPCache<Int>(
      transport: patientTransport,
      rules: HTTPRules(maximumBodyBytes: 100_000, totalTimeout: nil, minimumRate: nil),
      clock: clock
    ) { $0.body.count }
    let error = await #expect(throws: HTTPStatusError.self) { try await strict.request(request()) }
    #expect(error?.status == 500)
    #expect(error?.body == Data(repeating: UInt8(ascii: "a"), count: 16_384))
  }

  @Test func `an incomplete answer is not stored`() async throws {
    set(answer("whole", ["Cache-Control": "max-age=60"]))
    origin.inject(.truncation(afterBytes: 2), for: "/value")
    await #expect(throws: URLError.self) { try await text() }
    #expect(try await text() == "whole")
    #expect(count == 2)
  }

  @Test(.guarantee(.repositoriesClearHTTPCaches))
  func `a repository clears its members until they are removed`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    let repository = MuxRepository()
    repository.register(cache)
    #expect(repository.count == 1)
    _ = try await text()
    try await repository.clearAll()
    _ = try await text()
    #expect(count == 2)
    repository.unregister(cache)
    #expect(repository.count == 0)
    try await repository.clearAll()
    _ = try await text()
    #expect(count == 2)
  }

  // MARK: - 304

  @Test(
    .guarantee(.notModifiedUpdatesTheFields),
    arguments: [
      ("Test-Header", "A", "B"), ("X-Test-Header", "A", "B"), ("Content-Foo", "A", "B"),
      ("Content-Type", "text/plain", "text/plain;charset=utf-8"), ("Content-Location", "/a", "/b"),
      ("Content-Security-Policy", "a", "b"), ("Set-Cookie", "a=b", "a=c"),
      ("X-Content-Foo", "A", "B"), ("Content-MD5", "A", "B"), ("X-Frame-Options", "a", "b"),
      ("X-XSS-Protection", "1", "1; mode=block"), ("Clear-Site-Data", "cache", "cookies"),
      ("Public-Key-Pins", "A", "B"), ("Set-Cookie2", "a=b", "a=c"),
      ("Expires", "Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
      ("Cache-Control", "max-age=0, a", "max-age=60"),
    ] as [(String, String, String)]
  )
  func `a 304 updates header fields, and leaves the fields that it does not have`(
    name: String,
    old: String,
    new: String
  ) async throws {
    for (path, validator) in [
      ("/tag", ("ETag", "\"1\"")), ("/date", ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")),
    ] {
      var first = answer("one", ["Kept": "k"])
      var second = answer("", ["Cache-Control": "max-age=60"], status: 304)
      first.headers[validator.0] = validator.1
      second.headers[validator.0] = validator.1
      first.headers[name] = old
      second.headers[name] = new
      set(first, second, answer("never sent"))
      #expect(try await cache.request(request(path)).headers[name] == old)
      for _ in 0..<2 {
        let response = try await cache.request(request(path))
        #expect(response.headers[name] == new)
        #expect(response.headers["kept"] == "k")
        #expect(response.headers["content-length"] == "3")
        #expect(response.status == 200)
        #expect(response.body == Data("one".utf8))
      }
    }
    #expect(count == 4)
  }

  @Test(.guarantee(.ageCountsFromTheConfirmation))
  func `a value that was confirmed by a 304 without a date is as old as that`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      let headers = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
      guard count == 1 else { return try receiver.begin(request, status: 304, headers: headers) }
      // The time of day of the clock when it starts.
      let date = ["Date": "Mon, 21 Sep 2026 14:13:20 GMT"]
      try receiver.take(request, headers: headers.merging(date) { $1 }, "one")
    }
    let cache = HTTPCache(transport: transport, rules: .patient, clock: clock) { [clock] in
      clock.timeOfDay
    }
    #expect(try await cache.request(request()).headers["age"] == nil)
    clock.advance(by: .seconds(100))
    #expect(try await cache.request(request()).headers["age"] == nil)
    clock.advance(by: .seconds(5))
    #expect(try await cache.request(request()).headers["age"] == "5")
    #expect(transport.names.count == 2)
  }

  @Test(.guarantee(.notModifiedCountsAsRevalidation))
  func `a 304 counts as a revalidation, whatever the values are made of`() async throws {
    set(answer("one", ["ETag": "\"1\""]), answer("", ["ETag": "\"1\""], status: 304))
    let texts = HTTPCache<String>(transport: patientTransport, rules: .patient, clock: clock) {
      String(decoding: $0.body, as: UTF8.self)
    }
    #expect(try await !cache.response(request()).isRevalidated)
    #expect(try await cache.response(request()).isRevalidated)
    #expect(cache.statistics.revalidations == 1)
    set(answer("one", ["ETag": "\"1\""]), answer("", ["ETag": "\"1\""], status: 304))
    #expect(try await !texts.response(request("/text")).isRevalidated)
    #expect(try await texts.response(request("/text")).isRevalidated)
    #expect(texts.statistics.revalidations == 1)
  }

  @Test func `a 304 can name other fields that select`() async throws {
    set(
      answer("one", ["ETag": "\"1\""]),
      answer("", ["ETag": "\"1\"", "Vary": "X", "Cache-Control": "max-age=60"], status: 304),
      answer("two", ["Cache-Control": "max-age=60", "Vary": "X"])
    )
    for _ in 0..<2 { #expect(try await text("/value", ["X": "1"]) == "one") }
    #expect(try await text("/value", ["X": "2"]) == "two")
    #expect(try await text("/value", ["X": "1"]) == "one")
    #expect(count == 3)
  }

  // MARK: - Invalidation

  @Test(
    .guarantee(.unsafeRequestsInvalidate),
    arguments: ["POST", "PUT", "DELETE", "PATCH"],
    [200, 201, 204]
  )
  func `a method that changes something invalidates its URL`(
    method: String,
    status: Int
  )
    async throws
  {
    let fresh: OriginHeaders = ["Cache-Control": "max-age=60", "Vary": "X"]
    set(
      answer("one", fresh),
      answer("other", fresh),
      answer("", ["Cache-Control": "max-age=60"], status: status),
      answer("two", fresh)
    )
    #expect(try await text("/value", ["X": "1"]) == "one")
    #expect(try await text("/value", ["X": "2"]) == "other")
    #expect(try await text("/value#a", method: method) == "")
    #expect(cache.cachedValue(try request("/value", ["X": "1"])) == nil)
    #expect(try await text("/value", ["X": "1"]) == "two")
    #expect(try await text("/value", ["X": "2"]) == "two")
  }

  @Test(.guarantee(.unsafeRequestsInvalidate), arguments: [400, 404, 500])
  func `a method that fails invalidates nothing`(status: Int) async throws {
    set(
      answer("one", ["Cache-Control": "max-age=60"]),
      answer("", status: status),
      answer("two")
    )
    #expect(try await text() == "one")
    await #expect(throws: HTTPStatusError.self) { try await text(method: "POST") }
    #expect(try await text() == "one")
  }

  @Test(arguments: ["HEAD", "OPTIONS"])
  func `a safe method invalidates nothing`(method: String) async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    #expect(try await text() == "one")
    _ = try await text(method: method)
    #expect(try await text() == "one")
    #expect(count == 2)
  }

  @Test(.guarantee(.unsafeRequestsInvalidate), arguments: ["Location", "Content-Location"])
  func `a method that changes something invalidates what its answer names at the same origin`(
    name: String
  ) async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    let elsewhere = URLRequest(url: try #require(URL(string: other.address + "/a/b")))
    _ = try await cache.request(elsewhere)
    for path in ["/a/b", "/a/c"] { _ = try await text(path) }
    for place in ["b", "/a/b", origin.address + "/a/b"] {
      set(answer("", [name: place], status: 201))
      _ = try await text("/a/value", method: "POST")
      #expect(cache.cachedValue(try request("/a/b")) == nil, "\(place)")
      #expect(cache.cachedValue(try request("/a/c")) != nil)
      set(answer("one", ["Cache-Control": "max-age=60"]))
      _ = try await text("/a/b")
    }
    set(answer("", [name: other.address + "/a/b"], status: 201))
    _ = try await text("/a/value", method: "POST")
    #expect(cache.cachedValue(elsewhere) != nil, "A server has no say about another one")
  }

  @Test(.guarantee(.unsafeRequestsInvalidate))
  func `a fetch that began before is not stored after a change`() async throws {
    let gate = Gate()
    origin.route("/gated", methods: [.get]) { _ in
      try? await gate.wait()
      return OriginResponse(headers: ["Cache-Control": "max-age=60"], body: Array("old".utf8))
    }
    origin.route("/gated", methods: [.post]) { _ in OriginResponse(text: "changed") }
    let early = Task { try await text("/gated") }
    await gate.arrivals(1)
    #expect(try await text("/gated", method: "POST") == "changed")
    gate.open()
    #expect(try await early.value == "old")
    #expect(cache.cachedValue(try request("/gated")) == nil)
  }

  @Test func `a fetcher tells a map of URLs what is no longer valid`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    let pages = MultiplexerMap<URL, String>(policy: .http, clock: clock) {
      (url: URL, context: FetchContext<String>) in
      try await HTTPFetcher(url, transport: patientTransport, rules: .patient) {
        String(decoding: $0, as: UTF8.self)
      }.fetch(context)
    }
    let url = try #require(URL(string: origin.address + "/value"))
    #expect(try await pages.request(url) == "one")
    let change = HTTPFetcher(
      try request(method: "DELETE"),
      transport: patientTransport,
      rules: .patient,
      invalidate: { urls in for url in urls { try await pages.clear(url) } },
      decode: { $0.count }
    )
    _ = try await change.fetch(FetchContext(previousValue: nil))
    #expect(pages.cachedValue(url) == nil)
  }

  // MARK: - Whole caches

  @Test func `events and statistics count, and name no secrets`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60"]))
    var events = cache.events().makeAsyncIterator()
    for _ in 0..<2 { _ = try await text("/value?token=secret", ["Authorization": "secret"]) }
    let event = try #require(await events.next())
    #expect("\(event)" == "fetched GET \(origin.address)/value")
    #expect(cache.statistics.hits == 1)
    #expect(cache.statistics.misses == 1)
  }

  @Test func `clearing forgets one URL or all, and a repository does`() async throws {
    set(answer("one", ["Cache-Control": "max-age=60", "Vary": "X"]))
    let repository = MuxRepository()
    cache.register(in: repository)
    let load = { for path in ["/a", "/b"] { _ = try await text(path, ["X": "1"]) } }
    let isCached = { try cache.cachedValue(request($0, ["X": "1"])) != nil }
    try await load()
    try await cache.clear(try #require(URL(string: origin.address + "/a")))
    #expect(try !isCached("/a") && isCached("/b"))
    try await load()
    try await cache.clear()
    #expect(try !isCached("/a") && !isCached("/b"))
    try await load()
    try await repository.clearAll()
    #expect(try !isCached("/a") && !isCached("/b"))
  }

  @Test func `a value can be made of status and header fields`() async throws {
    set(answer("one", ["X-Count": "7"]))
    let counts = HTTPCache<String>(transport: patientTransport, rules: .patient, clock: clock) {
      "\($0.status) \($0.headers["x-count"] ?? "") \($0.url.lastPathComponent)"
    }
    #expect(try await counts.request(request()) == "200 7 value")
    let fetcher = HTTPFetcher<Int>(try request(), transport: patientTransport, rules: .patient) {
      (response: HTTPResponse) in response.status
    }
    guard case .value(200, _, _) = try await fetcher.fetch(FetchContext(previousValue: nil)) else {
      Issue.record("It is made of the status")
      return
    }
  }

  @Test func `an answer survives as JSON`() throws {
    let url = try #require(URL(string: "https://a.example/"))
    let response = HTTPResponse(url: url, status: 201, headers: ["A": "b"], body: Data([1]))
    let data = try JSONEncoder().encode(response)
    #expect(try JSONDecoder().decode(HTTPResponse.self, from: data) == response)
  }
}
