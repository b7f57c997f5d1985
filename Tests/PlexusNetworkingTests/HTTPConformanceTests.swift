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
@Suite(.fewAtOnce, .timeLimit(.minutes(20)))
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
    /// The seconds from now until `Expires`.
    var expires: Int?
    /// The header fields of the second request, and of both.
    var asked: [String: String] = [:]
    var both: [String: String] = [:]

    var testDescription: String { "\(status) \(headers) \(expires ?? 0) \(asked) \(both) \(wait)" }

    init(
      _ headers: OriginHeaders,
      _ second: Second,
      status: Int = 200,
      wait: Int = 0,
      expires: Int? = nil,
      asked: [String: String] = [:],
      both: [String: String] = [:]
    ) {
      self.headers = headers
      self.second = second
      self.status = status
      self.wait = wait
      self.expires = expires
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
    let origin = try LoopbackOrigin()
    let clock = ManualClock()
    let seen = Guarded<[OriginRequest]>([])
    let start = Date()
    var headers = test.headers
    if let expires = test.expires {
      headers["Expires"] = Self.date(start.addingTimeInterval(Double(expires)))
    }
    let answer = OriginResponse(status: test.status, headers: headers, body: Array("a".utf8))
    origin.route("/value", methods: Set(OriginRequest.Method.allCases)) { [answer] request in
      seen.withLock { $0.append(request) }
      return answer
    }
    let cache = HTTPCache(
      transport: patientTransport,
      rules: .patient,
      clock: clock,
      now: { start }
    )
    var request = URLRequest(url: try #require(URL(string: origin.address + "/value")))
    for (name, value) in test.both { request.setValue(value, forHTTPHeaderField: name) }
    _ = try await cache.request(request)
    clock.advance(by: .seconds(test.wait))
    for (name, value) in test.asked { request.setValue(value, forHTTPHeaderField: name) }
    _ = try await cache.request(request)
    let requests = seen.withLock { $0 }
    let isConditional = requests.dropFirst().contains { request in
      request.headers["If-None-Match"] != nil || request.headers["If-Modified-Since"] != nil
    }
    #expect(requests.count == (test.second == .reused ? 1 : 2))
    #expect(isConditional == (test.second == .conditional))
  }

  private static func date(_ date: Date) -> String {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "GMT")
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.string(from: date)
  }

  // MARK: - Freshness

  @Test(arguments: [
    Case.control("max-age=60", .reused, wait: 59), .control("max-age=60", .sent, wait: 61),
    .control("max-age=0", .sent), .control("s-maxage=60", .sent),
    .control("s-maxage=0, max-age=60", .reused), Case([:], .sent),
    Case([:], .reused, wait: 30, expires: 60), Case([:], .sent, wait: 61, expires: 60),
    Case([:], .sent, expires: -60),
    Case(["Cache-Control": "max-age=60"], .reused, expires: -60),
    Case(["Cache-Control": "max-age=0"], .sent, expires: 60),
    Case(["Cache-Control": "public"], .sent),
    Case(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], .conditional),
  ])
  func `freshness and heuristics`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case.control("max-age=\"60\"", .reused), .control("MaX-aGe=60", .reused),
    .control("max-age=00060", .reused), .control("max-age=99999999999999999999", .reused),
    .control("max-age=60, extension=\"a, b\"", .reused), .control("extension, max-age=60", .reused),
    .control("extension=1;max-age=0, max-age=60", .reused), .control(",, max-age=60 ,", .reused),
    .control("max-age=60.5", .sent), .control("max-age=-60", .sent), .control("max-age=a60", .sent),
    .control("max-age=60a", .sent), .control("max-age='60'", .sent), .control("max-age=", .sent),
    .control("max-age", .sent), .control("max-age=+60", .sent), .control("max_age=60", .sent),
    .control("a=\"max-age=60\"", .sent), .control("a=\"b, max-age=60\"", .sent),
    .control("\"max-age=60\"", .sent), .control("max-age=60, no-store=1", .sent),
    .control("max-age=60, NO-STORE", .sent), .control("max-age=60, no-storex", .reused),
    .control("max-age=60, a=\"b, no-store", .sent),
  ])
  func `cc-parse`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case.age("0", .reused), .age("3599", .reused), .age("3600", .sent), .age("7200", .sent),
    .age("abc", .reused), .age("-7200", .reused), .age("", .reused), .age("2147483648", .sent),
    .age("99999999999999999999", .sent), .age("7200, 0", .sent), .age("0, 7200", .reused),
    .age("0007200", .sent),
  ])
  func `age-parse`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case.expires("Thu, 18 Aug 2050 02:01:18 GMT", .reused),
    .expires("Thu, 18 AUG 2050 02:01:18 gMT", .reused),
    .expires("Thu Aug 18 02:01:18 2050", .reused),
    .expires("Thursday, 18-Aug-50 02:01:18 GMT", .reused),
    .expires("Thu, 18 Aug 2050 2:01:18 GMT", .sent),
    .expires("Thu, 18 Aug 2050 02:01:18 UTC", .sent),
    .expires("Thu, 18 Aug 2050 02:01:18 AEST", .sent), .expires("Thu, 18 Aug 2050 02:01:18", .sent),
    .expires("Thu, 18-Aug-2050 02:01:18 GMT", .sent), .expires("Thu, 18 Aug 2050 02:01 GMT", .sent),
    .expires("Thu, 18 Aug 50 02:01:18 GMT", .sent), .expires("18 Aug 2050 02:01:18 GMT", .sent),
    .expires("Thu, 31 Feb 2050 02:01:18 GMT", .sent), .expires("0", .sent), .expires("-1", .sent),
    .expires("2544488478", .sent), .expires("Thu, 18 Aug 2050 02:01:18 GMT, 0", .sent),
    .expires("Thu,  18 Aug 2050 02:01:18 GMT", .sent),
  ])
  func `expires-parse`(test: Case) async throws { try await check(test) }

  // MARK: - Directives

  @Test(arguments: [
    Case.control("no-store, max-age=60", .sent), .control("no-cache, max-age=60", .sent),
    Case(["Cache-Control": "no-cache, max-age=60", "ETag": "\"1\""], .conditional),
    Case(["Cache-Control": "no-store, max-age=60", "ETag": "\"1\""], .sent),
    .control("no-cache=\"X\", max-age=60", .sent), .control("private, max-age=60", .reused),
    .control("private=\"X\", max-age=60", .reused), .control("public, max-age=60", .reused),
    .control("must-revalidate, max-age=60", .reused), .control("immutable, max-age=60", .reused),
    .control("proxy-revalidate, max-age=60", .reused),
    .control("no-transform, max-age=60", .reused),
    .control("must-understand, no-store, max-age=60", .reused),
  ])
  func `cc-response`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "no-cache"]),
    Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "no-store"]),
    Case(["Cache-Control": "max-age=60"], .sent, asked: ["Cache-Control": "max-age=0"]),
    Case(["Cache-Control": "max-age=60"], .reused, both: ["Cache-Control": "max-stale=60"]),
    Case(["Cache-Control": "max-age=60"], .sent, both: ["Cache-Control": "no-store"]),
    Case(["Cache-Control": "max-age=60"], .sent, both: ["Cache-Control": "no-cache"]),
  ])
  func `cc-request`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case(["Cache-Control": "max-age=60", "Pragma": "no-cache"], .reused),
    Case(["Pragma": "no-cache"], .reused, expires: 60),
    Case(["Pragma": "max-age=60"], .sent),
    Case(["Cache-Control": "max-age=60"], .sent, asked: ["Pragma": "no-cache"]),
  ])
  func `pragma`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case(["CDN-Cache-Control": "max-age=60"], .sent),
    Case(["Surrogate-Control": "max-age=60"], .sent),
    Case(["Cache-Control": "max-age=60", "CDN-Cache-Control": "no-store"], .reused),
    Case(["Cache-Control": "max-age=60", "Surrogate-Control": "no-store"], .reused),
    Case(["Cache-Control": "no-store", "CDN-Cache-Control": "max-age=60"], .sent),
    Case(["Cache-Control": "max-age=60", "Set-Cookie": "a=1"], .reused),
    Case(["Cache-Control": "max-age=60", "Content-Disposition": "attachment"], .reused),
    Case(["Cache-Control": "max-age=60"], .reused, both: ["Authorization": "Basic YQ=="]),
    Case(["Cache-Control": "max-age=60"], .sent, asked: ["Authorization": "Basic YQ=="]),
  ])
  func `surrogate and other fields`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case.vary("X", .sent), .vary("x", .sent), .vary("Y", .reused), .vary("Y, X", .sent),
    .vary("Y,X", .sent), .vary(", X", .sent), .vary("*", .sent), .vary("X, *", .sent),
    .vary("Y, *, Z", .sent), .vary(", *", .sent), .vary("", .reused),
    Case(["Cache-Control": "max-age=60", "Vary": "X"], .reused, both: ["X": "1"]),
    Case(
      ["Cache-Control": "max-age=60", "Vary": "X, Y"],
      .sent,
      asked: ["Y": "1"],
      both: ["X": "1"]
    ),
  ])
  func `vary and vary-parse`(test: Case) async throws { try await check(test) }

  // MARK: - Validation and statuses

  @Test(arguments: [
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
  ])
  func `conditional-etag and conditional-lm`(test: Case) async throws { try await check(test) }

  @Test(arguments: [
    Case.control("max-age=60, must-revalidate", .sent, wait: 61),
    .control("max-age=60, proxy-revalidate", .sent, wait: 61),
    .control("max-age=60, stale-while-revalidate=0", .sent, wait: 61),
    .control("max-age=60, stale-if-error=60", .sent, wait: 61),
  ])
  func `stale`(test: Case) async throws { try await check(test) }

  @Test(arguments: [200, 203, 204, 299], ["max-age=60", "max-age=0", "no-store"])
  func `status`(status: Int, control: String) async throws {
    let second: Second = control == "max-age=60" ? .reused : .sent
    try await check(Case(["Cache-Control": control], second, status: status))
  }
}
