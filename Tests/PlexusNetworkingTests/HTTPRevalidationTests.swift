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
struct `Asking a server whether a value has changed` {
  let origin: LoopbackOrigin
  let clock = ManualClock()
  /// The conditions of the requests, in order.
  let conditions = Guarded<[String?]>([])
  /// The answers of the origin in order; the last one is repeated.
  let answers = Guarded<[OriginResponse]>([])

  init() throws {
    origin = try LoopbackOrigin(timeOf: clock)
    for path in ["/value", "/first", "/second"] {
      origin.route(path, methods: [.get, .post]) { [conditions, answers] request in
        conditions.withLock {
          $0.append(request.headers["If-None-Match"] ?? request.headers["If-Modified-Since"])
        }
        return answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
      }
    }
  }

  private func answer(_ text: String, _ headers: OriginHeaders = [:]) -> OriginResponse {
    var response = OriginResponse(text: text)
    for field in headers.fields { response.headers.add(field.name, field.value) }
    return response
  }

  private func notModified(_ headers: OriginHeaders = [:]) -> OriginResponse {
    OriginResponse(status: 304, headers: headers)
  }

  private func cache(
    _ path: String = "/value",
    answers: [OriginResponse],
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> Multiplexer<String> {
    self.answers.withLock { $0 = answers }
    var request = URLRequest(url: try #require(URL(string: origin.address + path)))
    change(&request)
    let fetcher = HTTPFetcher(
      request,
      transport: patientTransport,
      rules: .patient,
      now: { [clock] in clock.timeOfDay },
      decode: { String(decoding: $0, as: UTF8.self) }
    )
    return Multiplexer(policy: .http, clock: clock, onFetch: fetcher.fetch)
  }

  private var seen: [String?] { conditions.withLock { $0 } }

  /// Returns the status that a request fails with.
  private func status(_ request: () async throws -> String) async -> Int? {
    let error = await #expect(throws: HTTPStatusError.self) { _ = try await request() }
    return error?.status
  }

  @Test(arguments: [("W/\"1\"", "\"1\""), ("\"1\"", "W/\"1\""), ("W/\"1\"", "W/\"1\"")])
  func `a revalidation compares entity tags weakly`(tags: (old: String, new: String)) async throws {
    let cache = try cache(answers: [
      answer("one", ["ETag": tags.old]), notModified(["ETag": tags.new]), notModified(),
    ])
    for _ in 0..<3 { #expect(try await cache.request() == "one") }
    #expect(seen == [nil, tags.old, tags.new])
  }

  @Test(
    arguments: [
      ["ETag": "\"2\""],
      ["ETag": "W/\"2\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"],
    ] as [OriginHeaders]
  )
  func `a 304 of another version does not count, and the value is requested unconditionally`(
    headers: OriginHeaders
  ) async throws {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    let cache = try cache(answers: [
      answer("one", ["ETag": "\"1\"", "Last-Modified": date]), notModified(headers),
      answer("two", ["ETag": "\"2\""]),
    ])
    _ = try await cache.request()
    #expect(try await cache.request() == "two")
    #expect(seen == [nil, "\"1\"", nil])
  }

  @Test func `a 304 with another date of modification does not count where there is no tag`()
    async throws
  {
    let (old, new) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sat, 05 Nov 1994 08:49:37 GMT")
    let cache = try cache(answers: [
      answer("one", ["Last-Modified": old]), notModified(["Last-Modified": new]), answer("two"),
    ])
    _ = try await cache.request()
    #expect(try await cache.request() == "two")
    #expect(seen == [nil, old, nil])
  }

  @Test func `a fetch gives up if its server answers 304 to everything`() async throws {
    let cache = try cache(answers: [notModified()])
    #expect(await status { try await cache.request() } == 304)
    let other = try self.cache(answers: [
      answer("one", ["ETag": "\"1\""]), notModified(["ETag": "\"2\""]),
    ])
    _ = try await other.request()
    #expect(await status { try await other.request() } == 304)
    #expect(other.cachedValue == "one")
  }

  @Test func `a 304 from another place after a redirect does not count`() async throws {
    let target = Guarded("/first")
    origin.route("/moving") { _ in
      OriginResponse(status: 302, headers: ["Location": target.withLock { $0 }])
    }
    // Each place has a version 1 of its own.
    let cache = try cache(
      "/moving",
      answers: [
        answer("first", ["ETag": "\"1\""]), notModified(["ETag": "\"1\""]),
        notModified(["ETag": "\"1\""]), answer("second", ["ETag": "\"1\""]),
      ]
    )
    for _ in 0..<2 { #expect(try await cache.request() == "first") }
    target.withLock { $0 = "/second" }
    #expect(try await cache.request() == "second")
    #expect(origin.statistics.requests["/second"] == 2)
  }

  @Test func `a method that changes something is not revalidated`() async throws {
    let cache = try cache(answers: [answer("one", ["ETag": "\"1\"", "Cache-Control": "no-cache"])])
    { $0.httpMethod = "POST" }
    for _ in 0..<2 { #expect(try await cache.request() == "one") }
    #expect(seen == [nil, nil])
  }

  @Test func `a value that is requested with HEAD is revalidated, too`() async throws {
    let cache = try cache(answers: [answer("body", ["ETag": "\"1\""]), notModified()]) {
      $0.httpMethod = "HEAD"
    }
    for _ in 0..<2 { #expect(try await cache.request() == "") }
    #expect(seen == [nil, "\"1\""])
  }

  @Test func `a value without a validator is not revalidated`() async throws {
    let cache = try cache(answers: [answer("one"), answer("two")])
    _ = try await cache.request()
    #expect(try await cache.request() == "two")
    #expect(seen == [nil, nil])
  }

  @Test func `a part does not count as the whole, unless the request asks for one`() async throws {
    let part = OriginResponse(
      status: 206,
      headers: ["Content-Range": "bytes 0-0/3"],
      body: Array("o".utf8)
    )
    let whole = try cache(answers: [part])
    #expect(await status { try await whole.request() } == 206)
    let asked = try cache(answers: [part]) {
      $0.setValue("bytes=0-0", forHTTPHeaderField: "Range")
    }
    #expect(try await asked.request() == "o")
  }

  @Test func `a directive counts in any of several header fields`() async throws {
    let cache = try cache(answers: [
      answer("one", ["Cache-Control": "max-age=60", "Cache-Control": "no-store"]), answer("two"),
    ])
    _ = try await cache.request()
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == "two")
  }

  @Test func `a value that depends on everything is revalidated each time`() async throws {
    let cache = try cache(answers: [
      answer("one", ["ETag": "\"1\"", "Cache-Control": "max-age=60", "Vary": "Accept, *"]),
      notModified(["Vary": "*"]),
    ])
    for _ in 0..<3 { #expect(try await cache.request() == "one") }
    #expect(seen.count == 3)
    let other = try self.cache(answers: [
      answer("one", ["Cache-Control": "max-age=60", "Vary": "Accept"]), answer("two"),
    ])
    for _ in 0..<2 { #expect(try await other.request() == "one") }
  }

  @Test func `a fetch survives header fields of any kind`() async throws {
    let values = [
      "", ",", "=", "\"", "\\", ",,,", "max-age", "max-age=", "max-age==1", "max-age=-1",
      "max-age=1e9", "max-age=0x10", "max-age=99999999999999999999999999", "max-age=\"1",
      "stale-if-error=-1", "stale-while-revalidate=", "no-cache=\"", "0",
      "Fri, 31 Feb 99999 99:99:99 GMT", "Sun, 06 Nov 1994 08:49:37 +0100", "\u{e9}\u{301},\u{301}",
      String(repeating: "a,", count: 2_000), String(repeating: "9", count: 2_000),
    ]
    for name in ["Cache-Control", "Expires", "Date", "Age", "Vary", "ETag", "Last-Modified"] {
      for value in values {
        let cache = try cache(answers: [answer("one", [name: value])])
        for _ in 0..<2 { #expect(try await cache.request() == "one", "\(name): \(value)") }
      }
    }
  }

  @Test func `a value that depends on everything is revalidated also after a 304 without Vary`()
    async throws
  {
    let headers: OriginHeaders = ["ETag": "\"1\"", "Cache-Control": "max-age=60", "Vary": "*"]
    let cache = try cache(answers: [answer("one", headers), notModified()])
    for _ in 0..<3 { #expect(try await cache.request() == "one") }
    #expect(seen == [nil, "\"1\"", "\"1\""])
  }
}
