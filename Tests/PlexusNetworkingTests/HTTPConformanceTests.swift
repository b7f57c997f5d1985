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

/// The categories of the public suite http-tests/cache-tests, as far as they concern a cache of one user.
///
/// Each case requests a URL twice. Categories that need more than that have tests of their own in the other suites
/// of this folder.
@Suite(.fewAtOnce)
struct `A cache of HTTP conforms in` {
  /// The second request of a case.
  enum Second: Sendable {
    /// It is answered with the first answer.
    case reused
    /// It is sent.
    case sent
    /// It is sent with `If-None-Match` or `If-Modified-Since`.
    case conditional
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let headers: OriginHeaders
    let second: Second
    var status = 200
    /// The seconds between the requests.
    var wait = 0
    /// The seconds from now until `Expires`, and those until `Date`.
    var expires: Int?
    var date: Int?
    /// The header fields of the second request, and of both.
    var asked: [String: String] = [:]
    var both: [String: String] = [:]

    var testDescription: String {
      "\(status) \(headers) \(expires ?? 0) \(date ?? 0) \(asked) \(both) \(wait)"
    }

    init(
      _ headers: OriginHeaders,
      _ second: Second,
      status: Int = 200,
      wait: Int = 0,
      expires: Int? = nil,
      date: Int? = nil,
      asked: [String: String] = [:],
      both: [String: String] = [:]
    ) {
      self.headers = headers
      self.second = second
      self.status = status
      self.wait = wait
      self.expires = expires
      self.date = date
      self.asked = asked
      self.both = both
    }

    /// A case about `Cache-Control`.
    static func control(_ directives: String, _ second: Second, wait: Int = 0) -> Case {
      Case(["Cache-Control": directives], second, wait: wait)
    }

    /// A case about `Age`, with a lifetime of an hour.
    static func age(_ age: String, _ second: Second) -> Case {
      Case(["Cache-Control": "max-age=3600", "Age": age], second)
    }

    /// A case about `Expires`.
    static func expires(_ date: String, _ second: Second) -> Case {
      Case(["Expires": date], second)
    }

    /// A case about `Vary`, whose second request has another value in the field `X`.
    static func vary(_ names: String, _ second: Second) -> Case {
      Case(["Cache-Control": "max-age=60", "Vary": names], second, asked: ["X": "2"])
    }
  }

  private func check(_ test: Case) async throws {
    let clock = ManualClock()
    let (origin, start) = (try LoopbackOrigin(timeOf: clock), clock.timeOfDay)
    let seen = Guarded<[OriginRequest]>([])
    var headers = test.headers
    if let expires = test.expires {
      headers["Expires"] = Self.date(start.addingTimeInterval(Double(expires)))
    }
    let answer = OriginResponse(status: test.status, headers: headers, body: Array("a".utf8))
    origin.route("/value", methods: Set(OriginRequest.Method.allCases)) { [answer] request in
      seen.withLock { $0.append(request) }
      return answer
    }
    let cache = Self.cache(clock)
    var request = URLRequest(url: try #require(URL(string: origin.address + "/value")))
    for (name, value) in test.both { request.setValue(value, forHTTPHeaderField: name) }
    if let date = test.date {
      // The origin adds a date of its own.
      headers["Date"] = Self.date(start.addingTimeInterval(Double(date)))
      origin.inject(.raw(Self.bytes(test.status, headers)), for: "/value")
    }
    _ = try await cache.request(request)
    clock.advance(by: .seconds(test.wait))
    for (name, value) in test.asked { request.setValue(value, forHTTPHeaderField: name) }
    _ = try await cache.request(request)
    let requests = seen.withLock { $0 }
    let isConditional = requests.dropFirst().contains { request in
      request.headers["If-None-Match"] != nil || request.headers["If-Modified-Since"] != nil
    }
    let first = test.date == nil ? 1 : 0
    #expect(requests.count == (test.second == .reused ? first : first + 1))
    #expect(isConditional == (test.second == .conditional))
  }

  /// A cache whose time of day goes with its clock.
  private static func cache(_ clock: ManualClock) -> HTTPCache<HTTPResponse> {
    HTTPCache(transport: patientTransport, rules: .patient, clock: clock) { clock.timeOfDay }
  }

  /// Returns an answer as it is sent, with a body of one byte.
  private static func bytes(_ status: Int, _ headers: OriginHeaders) -> [UInt8] {
    let fields = headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    return Array("HTTP/1.1 \(status) X\r\nContent-Length: 1\r\n\(fields)\r\na".utf8)
  }

  private static func date(_ date: Date) -> String {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "GMT")
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.string(from: date)
  }

  // MARK: - Freshness

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.control("max-age=60", .reused, wait: 59), .control("max-age=60", .sent, wait: 61),
      .control("max-age=0", .sent), .control("s-maxage=60", .sent),
      .control("s-maxage=0, max-age=60", .reused), Case([:], .sent),
      Case([:], .reused, wait: 30, expires: 60), Case([:], .sent, wait: 61, expires: 60),
      Case([:], .sent, expires: -60),
      Case(["Cache-Control": "max-age=60"], .reused, expires: -60),
      Case(["Cache-Control": "max-age=0"], .sent, expires: 60),
      Case(["Cache-Control": "public"], .sent),
      Case(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], .conditional),
      .control("s-maxage=3600, max-age=1", .sent, wait: 2),
      Case(["Cache-Control": "max-age=3600"], .reused, date: 0),
      Case(["Cache-Control": "max-age=3600"], .sent, date: -3600),
      Case(["Cache-Control": "max-age=10", "Age": "15"], .sent, date: 0),
      Case([:], .sent, expires: 0, date: 0), Case([:], .sent, expires: 300, date: 400),
      Case(["Age": "25"], .sent, expires: 10, date: -10),
      Case(["Age": "15"], .sent, expires: 20, date: 10), Case([:], .reused, expires: 30, date: 10),
    ]
  )
  func `an answer is reused for its explicit lifetime, and not by a heuristic`(
    test: Case
  ) async throws { try await check(test) }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.control("max-age=\"60\"", .reused), .control("MaX-aGe=60", .reused),
      .control("max-age=00060", .reused), .control("max-age=99999999999999999999", .reused),
      .control("max-age=60, extension=\"a, b\"", .reused),
      .control("extension, max-age=60", .reused),
      .control("extension=1;max-age=0, max-age=60", .reused), .control(",, max-age=60 ,", .reused),
      .control("max-age=60.5", .sent), .control("max-age=-60", .sent),
      .control("max-age=a60", .sent),
      .control("max-age=60a", .sent), .control("max-age='60'", .sent), .control("max-age=", .sent),
      .control("max-age", .sent), .control("max-age=+60", .sent), .control("max_age=60", .sent),
      .control("a=\"max-age=60\"", .sent), .control("a=\"b, max-age=60\"", .sent),
      .control("\"max-age=60\"", .sent), .control("max-age=60, no-store=1", .sent),
      .control("max-age=60, NO-STORE", .sent), .control("max-age=60, no-storex", .reused),
      .control("max-age=60, a=\"b, no-store", .sent),
      .control("a=\"max-age=3600\", max-age=1", .sent, wait: 2),
      .control("max-age=1, a=\"max-age=3600\"", .sent, wait: 2),
      .control("max-age=1800, max-age=1", .reused, wait: 2),
      .control("max-age=1, max-age=1800", .sent, wait: 2),
    ]
  )
  func `a cache of HTTP parses Cache-Control as the cache tests require`(test: Case) async throws {
    try await check(test)
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.age("0", .reused), .age("3599", .reused), .age("3600", .sent), .age("7200", .sent),
      .age("abc", .reused), .age("-7200", .reused), .age("", .reused), .age("2147483648", .sent),
      .age("99999999999999999999", .sent), .age("7200, 0", .sent), .age("0, 7200", .reused),
      .age("0007200", .sent),
    ]
  )
  func `a cache of HTTP parses Age as the cache tests require`(test: Case) async throws {
    try await check(test)
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.expires("Thu, 18 Aug 2050 02:01:18 GMT", .reused),
      .expires("Thu, 18 AUG 2050 02:01:18 gMT", .reused),
      .expires("Thu Aug 18 02:01:18 2050", .reused),
      .expires("Thursday, 18-Aug-50 02:01:18 GMT", .reused),
      .expires("Thu, 18 Aug 2050 2:01:18 GMT", .sent),
      .expires("Thu, 18 Aug 2050 02:01:18 UTC", .sent),
      .expires("Thu, 18 Aug 2050 02:01:18 AEST", .sent),
      .expires("Thu, 18 Aug 2050 02:01:18", .sent),
      .expires("Thu, 18-Aug-2050 02:01:18 GMT", .sent),
      .expires("Thu, 18 Aug 2050 02:01 GMT", .sent),
      .expires("Thu, 18 Aug 50 02:01:18 GMT", .sent), .expires("18 Aug 2050 02:01:18 GMT", .sent),
      .expires("Thu, 31 Feb 2050 02:01:18 GMT", .sent), .expires("0", .sent), .expires("-1", .sent),
      .expires("2544488478", .sent), .expires("Thu, 18 Aug 2050 02:01:18 GMT, 0", .sent),
      .expires("Thu,  18 Aug 2050 02:01:18 GMT", .sent),
    ]
  )
  func `a cache of HTTP parses Expires as the cache tests require`(test: Case) async throws {
    try await check(test)
  }

  // MARK: - Directives

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.control("no-store, max-age=60", .sent), .control("no-cache, max-age=60", .sent),
      Case(["Cache-Control": "no-cache, max-age=60", "ETag": "\"1\""], .conditional),
      Case(["Cache-Control": "no-store, max-age=60", "ETag": "\"1\""], .sent),
      .control("no-cache=\"X\", max-age=60", .sent), .control("private, max-age=60", .reused),
      .control("private=\"X\", max-age=60", .reused), .control("public, max-age=60", .reused),
      .control("must-revalidate, max-age=60", .reused), .control("immutable, max-age=60", .reused),
      .control("proxy-revalidate, max-age=60", .reused),
      .control("no-transform, max-age=60", .reused),
      .control("must-understand, no-store, max-age=60", .reused),
    ]
  )
  func `the directives of an answer decide whether it is reused`(test: Case) async throws {
    try await check(test)
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "no-cache"]),
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "no-store"]),
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "max-age=0"]),
      Case(["Cache-Control": "max-age=60"], .reused, both: ["Cache-Control": "max-stale=60"]),
      Case(["Cache-Control": "max-age=60"], .sent, both: ["Cache-Control": "no-store"]),
      Case(["Cache-Control": "max-age=60"], .sent, both: ["Cache-Control": "no-cache"]),
      Case(
        ["Cache-Control": "max-age=60", "ETag": "\"1\""],
        .conditional,
        asked: ["Cache-Control": "no-cache"]
      ),
      Case(
        ["Cache-Control": "max-age=2, immutable", "ETag": "\"1\""],
        .conditional,
        wait: 3,
        asked: ["Cache-Control": "max-age=0"]
      ),
      Case(["Cache-Control": "max-age=2, immutable", "ETag": "\"1\""], .conditional, wait: 3),
      Case(
        ["Cache-Control": "max-age=60"],
        .reused,
        wait: 1,
        asked: ["Cache-Control": "max-age=1"]
      ),
      Case(["Cache-Control": "max-age=60"], .sent, wait: 2, asked: ["Cache-Control": "max-age=1"]),
      Case(
        ["Cache-Control": "max-age=3600", "Age": "1800"],
        .sent,
        asked: ["Cache-Control": "max-age=600"]
      ),
      Case(["Cache-Control": "max-age=60"], .reused, asked: ["Cache-Control": "min-fresh=60"]),
      Case(
        ["Cache-Control": "max-age=60"],
        .sent,
        wait: 1,
        asked: ["Cache-Control": "min-fresh=60"]
      ),
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "max-age=nonsense"]),
    ]
  )
  func `the directives of a request decide whether a stored answer is reused`(
    test: Case
  ) async throws { try await check(test) }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case(["Cache-Control": "max-age=60", "Pragma": "no-cache"], .reused),
      Case(["Pragma": "no-cache"], .reused, expires: 60),
      Case(["Pragma": "max-age=60"], .sent),
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Pragma": "no-cache"]),
    ]
  )
  func `Pragma counts in a request, and means nothing in an answer`(test: Case) async throws {
    try await check(test)
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case(["CDN-Cache-Control": "max-age=60"], .sent),
      Case(["Surrogate-Control": "max-age=60"], .sent),
      Case(["Cache-Control": "max-age=60", "CDN-Cache-Control": "no-store"], .reused),
      Case(["Cache-Control": "max-age=60", "Surrogate-Control": "no-store"], .reused),
      Case(["Cache-Control": "no-store", "CDN-Cache-Control": "max-age=60"], .sent),
      Case(["Cache-Control": "max-age=60", "Set-Cookie": "a=1"], .reused),
      Case(["Cache-Control": "max-age=60", "Content-Disposition": "attachment"], .reused),
      Case(["Cache-Control": "max-age=60"], .reused, both: ["Authorization": "Basic YQ=="]),
      Case(["Cache-Control": "max-age=60"], .sent, asked: ["Authorization": "Basic YQ=="]),
    ]
  )
  func `fields for surrogates mean nothing, and an account reuses only its own answers`(
    test: Case
  ) async throws { try await check(test) }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.vary("X", .sent), .vary("x", .sent), .vary("Y", .reused), .vary("Y, X", .sent),
      .vary("Y,X", .sent), .vary(", X", .sent), .vary("*", .sent), .vary("X, *", .sent),
      .vary("Y, *, Z", .sent), .vary(", *", .sent), .vary("", .reused), .vary("*, *", .sent),
      .vary("*, X", .sent),
      Case(
        ["Cache-Control": "max-age=60", "Vary": "X"],
        .sent,
        asked: ["X": ""],
        both: ["X": "1"]
      ),
      Case(
        ["Cache-Control": "max-age=60", "Vary": "X, Y, Z"],
        .reused,
        both: ["X": "1", "Z": "3"]
      ),
      Case(["Cache-Control": "max-age=60", "Vary": "*"], .sent, both: ["X": "1"]),
      Case(["Cache-Control": "max-age=60", "Vary": "X"], .reused, both: ["X": "1"]),
      Case(
        ["Cache-Control": "max-age=60", "Vary": "X, Y"],
        .sent,
        asked: ["Y": "1"],
        both: ["X": "1"]
      ),
    ]
  )
  func `an answer is reused if the fields that Vary names match, however Vary is written`(
    test: Case
  ) async throws { try await check(test) }

  /// The value of a field that `Vary` names, in two requests.
  @Test(
    .guarantee(.partsAreNeverStored),
    arguments: [
      ("X", "1,2", " 1, 2 ", .reused), ("X", "1 , 2", "1,2", .reused), ("X", "a", "A", .sent),
      ("X", "1, 2", "2, 1", .sent), ("X", "\"1,2\"", "\"1, 2\"", .sent),
      ("Accept-Language", "en, de", "de, en", .reused), ("Accept-Language", "EN", "en", .reused),
      ("Accept-Language", "en;q=0.8, de", "de, en; q=0.80", .reused),
      ("Accept-Language", "de;q=1.0,en;q=0.5", "de, en;q=0.5", .reused),
      ("Accept-Language", "en;q=0.8, de", "de;q=0.8, en", .sent),
      ("Accept-Language", "en, de;q=0.5", "en, de;q=0.6", .sent),
      ("Accept-Language", "en, de;q=5", "en, de;q=6", .sent),
      ("Accept-Language", "en", "en, de", .sent), ("Accept-Language", "en-GB", "en", .sent),
      ("Accept-Encoding", "GZIP, br", "gzip,br", .reused),
      ("Accept-Encoding", "gzip, br", "br, gzip", .sent),
      ("Authorization", "a,b", "a, b", .sent), ("Cookie", "A", "a", .sent),
    ] as [(String, String, String, Second)]
  )
  func `Vary matches values in another notation, and no values with another meaning`(
    name: String,
    one: String,
    other: String,
    second: Second
  ) async throws {
    let headers: OriginHeaders = ["Cache-Control": "max-age=60", "Vary": name]
    try await check(Case(headers, second, asked: [name: other], both: [name: one]))
  }

  @Test(.guarantee(.partsAreNeverStored))
  func `a part is never stored, and no part answers for the whole`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      let isPart = request.value(forHTTPHeaderField: "Range") != nil
      try receiver.take(
        request,
        status: isPart ? 206 : 200,
        headers: ["Cache-Control": "max-age=60", "ETag": "1", "Content-Range": "bytes 0-0/5"],
        isPart ? "\(count)" : "whole"
      )
    }
    let cache = HTTPCache(transport: transport, rules: .patient, clock: ManualClock())
    let url = try #require(URL(string: "https://a.example/value"))
    var part = URLRequest(url: url)
    part.setValue("bytes=0-0", forHTTPHeaderField: "Range")
    for text in ["1", "2"] { #expect(try await cache.request(part).body == Data(text.utf8)) }
    for _ in 0..<2 { #expect(try await cache.request(url).body == Data("whole".utf8)) }
    #expect(try await cache.request(part).body == Data("4".utf8))
    #expect(try await cache.request(url).body == Data("whole".utf8))
    #expect(transport.requests.withLock { $0.count } == 4)
    #expect(
      transport.requests.withLock {
        $0.allSatisfy { $0.value(forHTTPHeaderField: "If-None-Match") == nil }
      }
    )
  }

  // MARK: - Validation and statuses

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case(["Cache-Control": "max-age=60", "ETag": "\"1\""], .conditional, wait: 61),
      Case(["Cache-Control": "max-age=60", "ETag": "W/\"1\""], .conditional, wait: 61),
      Case(["Cache-Control": "max-age=60", "ETag": "unquoted"], .conditional, wait: 61),
      Case(["Cache-Control": "max-age=60", "ETag": "\"\u{e9}\""], .conditional, wait: 61),
      Case(
        ["Cache-Control": "max-age=60", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"],
        .conditional,
        wait: 61
      ),
      Case(["Cache-Control": "max-age=60"], .sent, wait: 61),
      Case(["Cache-Control": "max-age=60", "ETag": "\"1\""], .reused, wait: 30),
    ]
  )
  func `a stale answer with an entity tag or date of modification is requested conditionally`(
    test: Case
  ) async throws { try await check(test) }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      Case.control("max-age=60, must-revalidate", .sent, wait: 61),
      .control("max-age=60, proxy-revalidate", .sent, wait: 61),
      .control("max-age=60, stale-while-revalidate=0", .sent, wait: 61),
      .control("max-age=60, stale-if-error=60", .sent, wait: 61),
    ]
  )
  func `a stale answer is requested again from a server that can answer`(test: Case) async throws {
    try await check(test)
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      ("max-age=2", true, false), ("max-age=2, must-revalidate", false, false),
      ("max-age=2, no-cache", false, false), ("max-age=2, no-store", false, false),
      ("max-age=2, proxy-revalidate", true, false), ("max-age=2, s-maxage=2", true, false),
      ("max-age=2, stale-if-error=60", true, true), ("max-age=2, stale-if-error=0", true, false),
      ("max-age=2, stale-if-error=60, must-revalidate", false, false),
    ]
  )
  func `directives decide whether a stale answer is used if its server hangs up or answers 503`(
    control: String,
    isUsedOffline: Bool,
    isUsedAfter503: Bool
  ) async throws {
    for (fault, isUsed) in [
      (OriginFault.raw([]), isUsedOffline), (.status(503), isUsedAfter503),
    ] {
      let clock = ManualClock()
      let origin = try LoopbackOrigin(timeOf: clock)
      let headers: OriginHeaders = [
        "Cache-Control": control, "ETag": "\"1\"", "Date": Self.date(clock.timeOfDay),
      ]
      origin.inject(.raw(Self.bytes(200, headers)), for: "/value")
      let cache = Self.cache(clock)
      let url = try #require(URL(string: origin.address + "/value"))
      _ = try await cache.request(url)
      clock.advance(by: .seconds(3))
      origin.inject(fault, for: "/value", count: 9)
      if isUsed {
        let response = try await cache.response(URLRequest(url: url))
        #expect(response.isStale && response.error != nil)
        #expect(response.value.headers["age"] == "3")
      } else {
        await #expect(throws: (any Error).self) { try await cache.request(url) }
      }
    }
  }

  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [200, 203, 204, 299],
    ["max-age=60", "max-age=0", "no-store"]
  )
  func `an answer of any successful status is reused if its directives allow it`(
    status: Int,
    control: String
  ) async throws {
    let second: Second = control == "max-age=60" ? .reused : .sent
    try await check(Case(["Cache-Control": control], second, status: status))
  }

  /// Statuses that must not be reused when nothing says how long; errors are remembered if their server says so.
  @Test(
    .guarantee(.cacheTestsPass),
    arguments: [
      201, 202, 204, 299, 400, 403, 404, 405, 410, 414, 499, 500, 501, 502, 503, 504, 599,
    ]
  )
  func `answers and errors of any status are reused only for an explicit lifetime`(
    status: Int
  ) async throws {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    for (headers, isReused) in [
      (["Last-Modified": date], false),
      (["Last-Modified": date, "Cache-Control": "public"], false),
      (["Last-Modified": date, "Cache-Control": "max-age=3600"], true),
      (["Cache-Control": "max-age=3600, no-store"], false),
      (["Cache-Control": "max-age=3600, no-cache"], false),
      (["Cache-Control": "max-age=3600", "Vary": "*"], false),
      (["Cache-Control": "max-age=3600", "Age": "3600"], false),
      (["Cache-Control": "max-age=0"], false),
    ] as [(OriginHeaders, Bool)] {
      let clock = ManualClock()
      let origin = try LoopbackOrigin(timeOf: clock)
      origin.route("/value") { _ in OriginResponse(status: status, headers: headers) }
      let cache = Self.cache(clock)
      let url = try #require(URL(string: origin.address + "/value"))
      for _ in 0..<2 {
        do {
          #expect(try await cache.request(url).status == status)
        } catch let error as HTTPStatusError {
          #expect(error.status == status && status >= 400)
        }
      }
      #expect(origin.statistics.requestCount == (isReused ? 1 : 2), "\(headers)")
    }
  }

  // MARK: - Stored answers

  @Test(.guarantee(.cacheTestsPass))
  func `header fields of the connection are not stored, and all others are`() async throws {
    let clock = ManualClock()
    let origin = try LoopbackOrigin(timeOf: clock)
    let ofConnection: OriginHeaders = [
      "Connection": "close, A, b", "A": "1", "B": "2", "Keep-Alive": "timeout=5", "TE": "x",
      "Proxy-Authenticate": "Basic", "Proxy-Authentication-Info": "x", "Upgrade": "x",
      "Proxy-Authorization": "x", "Proxy-Connection": "close",
    ]
    let stored: OriginHeaders = [
      "C": "3", "Content-Type": "text/x", "Content-Location": "/x", "Content-MD5": "x",
      "Content-Security-Policy": "default-src 'self'", "Clear-Site-Data": "x", "ETag": "\"1\"",
      "Expires": "Mon, 11 Jan 2038 11:11:11 GMT", "Public-Key-Pins": "x", "Set-Cookie": "a=b",
      "Set-Cookie2": "a=b", "X-Frame-Options": "deny", "X-XSS-Protection": "1",
      "WWW-Authenticate": "x", "Strict-Transport-Security": "x", "Cache-Control": "max-age=3600",
    ]
    var all = ofConnection
    for field in stored.fields { all.add(field.name, field.value) }
    origin.inject(.raw(Self.bytes(200, all)), for: "/value")
    let cache = Self.cache(clock)
    let url = try #require(URL(string: origin.address + "/value"))
    for _ in 0..<2 {
      let headers = try await cache.request(url).headers
      for field in ofConnection.fields { #expect(headers[field.name] == nil, "\(field.name)") }
      for field in stored.fields { #expect(headers[field.name] == field.value, "\(field.name)") }
    }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test(.guarantee(.cacheTestsPass))
  func `conditional requests have the fields that have selected the answer`() async throws {
    let clock = ManualClock()
    let origin = try LoopbackOrigin(timeOf: clock)
    let seen = Guarded<[OriginHeaders]>([])
    origin.route("/value") { request in
      seen.withLock { $0.append(request.headers) }
      return OriginResponse(
        headers: ["Cache-Control": "max-age=1", "Vary": "Abc", "ETag": "\"1\""],
        body: [1]
      )
    }
    let cache = Self.cache(clock)
    var request = URLRequest(url: try #require(URL(string: origin.address + "/value")))
    for value in ["123", "123", "456"] {
      request.setValue(value, forHTTPHeaderField: "Abc")
      _ = try await cache.request(request)
      clock.advance(by: .seconds(2))
    }
    let fields = seen.withLock { $0.map { [$0["Abc"], $0["If-None-Match"]] } }
    #expect(fields == [["123", nil], ["123", "\"1\""], ["456", nil]])
  }

  @Test(
    .guarantee(.reusedResponsesHaveTheirAge),
    arguments: [
      ("Cache-Control: max-age=600\n", nil), ("Cache-Control: max-age=600\nAge: 30\n", 30),
      ("Expires: Mon, 11 Jan 2038 11:11:11 GMT\n", nil),
      ("Expires: Mon, 11 Jan 2038 11:11:11 GMT\nAge: 30\n", 30),
    ] as [(String, Int?)]
  )
  func `a reused answer has its present age, and the date that it came with`(
    fields: String,
    age: Int?
  ) async throws {
    let clock = ManualClock()
    let (origin, start) = (try LoopbackOrigin(timeOf: clock), clock.timeOfDay)
    let date = Self.date(start)
    let head = "HTTP/1.1 200 OK\nContent-Length: 1\nDate: \(date)\nETag: \"1\"\n" + fields + "\na"
    origin.inject(.raw(Array(head.replacing("\n", with: "\r\n").utf8)), for: "/value")
    let cache = Self.cache(clock)
    let url = try #require(URL(string: origin.address + "/value"))
    #expect(try await cache.request(url).headers["age"] == age.map(String.init))
    for seconds in [3, 7] {
      clock.advance(by: .seconds(seconds == 3 ? 3 : 4))
      let headers = try await cache.request(url).headers
      #expect(headers["age"] == "\((age ?? 0) + seconds)")
      #expect(headers["date"] == date)
    }
    #expect(origin.statistics.requestCount == 1)
    guard fields.contains("max-age") else { return }
    // Confirmed, it is as old as the answer that confirms it.
    origin.route("/value") { _ in
      OriginResponse(headers: ["Cache-Control": "max-age=600", "ETag": "\"1\""], body: [2])
    }
    clock.advance(by: .seconds(600))
    let confirmed = try await cache.response(URLRequest(url: url))
    #expect(confirmed.isRevalidated && confirmed.value.headers["age"] == nil)
  }

  @Test(.guarantee(.reusedResponsesHaveTheirAge))
  func `an answer that was on its way for long is that old`() async throws {
    let clock = ManualClock()
    let (origin, start) = (try LoopbackOrigin(timeOf: clock), clock.timeOfDay)
    let headers: OriginHeaders = [
      "Cache-Control": "max-age=600", "Date": Self.date(start.addingTimeInterval(-100)),
    ]
    origin.inject(.raw(Self.bytes(200, headers)), for: "/value")
    let cache = Self.cache(clock)
    let url = try #require(URL(string: origin.address + "/value"))
    _ = try await cache.request(url)
    clock.advance(by: .seconds(5))
    #expect(try await cache.request(url).headers["age"] == "105")
  }

  @Test(.guarantee(.cacheTestsPass))
  func `a method of unknown safety invalidates the stored answer`()
    async throws
  {
    let methods = Guarded<[String]>([])
    let transport = ClosureTransport { _, request, receiver in
      methods.withLock { $0.append(request.httpMethod ?? "") }
      try receiver.take(request, headers: ["Cache-Control": "max-age=60"], "a")
    }
    let cache = HTTPCache(transport: transport, clock: ManualClock())
    let url = try #require(URL(string: "http://nowhere.invalid/value"))
    var change = URLRequest(url: url)
    change.httpMethod = "M-SEARCH"
    for _ in 0..<2 { _ = try await cache.request(url) }
    _ = try await cache.request(change)
    _ = try await cache.request(url)
    #expect(methods.withLock { $0 } == ["GET", "M-SEARCH", "GET"])
  }
}
