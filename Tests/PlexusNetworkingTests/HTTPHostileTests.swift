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

/// Answers of servers that are hostile or broken.
@Suite(.fewAtOnce)
struct `A fetch in bad company` {
  let origin: LoopbackOrigin
  let other: LoopbackOrigin
  /// The requests that the other origin has seen.
  let seen = Guarded<[OriginRequest]>([])

  init() throws {
    origin = try LoopbackOrigin()
    other = try LoopbackOrigin()
    other.route("/*", methods: Set(OriginRequest.Method.allCases)) { [seen] request in
      seen.withLock { $0.append(request) }
      return OriginResponse(text: "other")
    }
  }

  private func fetch(
    _ path: String = "/value",
    transport: URLSessionTransport = patientTransport,
    rules: HTTPRules = .patient,
    _ change: (inout URLRequest) -> Void = { _ in }
  ) async throws -> String {
    var request = URLRequest(url: try #require(URL(string: origin.address + path)))
    change(&request)
    let fetcher = HTTPFetcher(
      request,
      transport: transport,
      rules: rules,
      decode: { String(decoding: $0, as: UTF8.self) }
    )
    guard case .value(let text, _, _) = try await fetcher.fetch(FetchContext(previousValue: nil))
    else { throw URLError(.badServerResponse) }
    return text
  }

  private func raw(_ text: String, body: [UInt8] = []) {
    let head = text.split(separator: "\n", omittingEmptySubsequences: false).joined(
      separator: "\r\n"
    )
    origin.inject(.raw(Array((head + "\r\n\r\n").utf8) + body), for: "/value")
  }

  // MARK: - Redirects

  @Test(.guarantee(.redirectTargetsReceiveNoCredentials), arguments: [301, 302, 303, 307, 308])
  func `another origin is sent no credentials`(status: Int) async throws {
    let target = other.address + "/there"
    origin.route("/value") { _ in OriginResponse(status: status, headers: ["Location": target]) }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-Session": "s"]
    let transport = URLSessionTransport(
      configuration: configuration,
      timeout: 600,
      headers: ["X-Own": "o", "Authorization": "Bearer t"]
    )
    let text = try await fetch(transport: transport) { request in
      request.setValue("c=1", forHTTPHeaderField: "Cookie")
      request.setValue("p", forHTTPHeaderField: "Proxy-Authorization")
      request.setValue("text/plain", forHTTPHeaderField: "Accept")
    }
    #expect(text == "other")
    let headers = try #require(seen.withLock { $0.first }).headers
    for name in ["X-Session", "X-Own", "Authorization", "Cookie", "Proxy-Authorization"] {
      #expect(headers[name] == nil, "\(name)")
    }
    #expect(headers["Accept"] == "text/plain")
    #expect(headers["Host"] == "127.0.0.1:\(other.port)")
  }

  @Test func `the same origin is sent everything after a redirect`() async throws {
    let headers = Guarded<OriginHeaders?>(nil)
    origin.route("/value") { _ in OriginResponse(status: 302, headers: ["Location": "there?a=%20"])
    }
    origin.route("/there") { request in
      headers.withLock { $0 = request.headers }
      return OriginResponse(text: request.target)
    }
    let transport = URLSessionTransport(
      timeout: 600,
      headers: ["Authorization": "t", "X-Own": "o"]
    )
    #expect(try await fetch(transport: transport) == "/there?a=%20")
    #expect(headers.withLock { $0?["Authorization"] } == "t")
    #expect(headers.withLock { $0?["X-Own"] } == "o")
  }

  @Test(
    .guarantee(.redirectTargetsReceiveNoCredentials),
    arguments: ["file:///etc/passwd", "FILE:///etc/passwd", "ftp://localhost/", "data:,a"]
  )
  func `a redirect to another scheme is an error`(location: String) async throws {
    origin.route("/*") { _ in OriginResponse(status: 302, headers: ["Location": location]) }
    await #expect(throws: URLError(.unsupportedURL)) { try await fetch() }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test(.guarantee(.redirectTargetsReceiveNoCredentials)) func `a redirect in a circle ends`()
    async throws
  {
    origin.route("/value") { _ in OriginResponse(status: 302, headers: ["Location": "/value"]) }
    await #expect(throws: URLError(.httpTooManyRedirects)) { try await fetch() }
    #expect(origin.statistics.requestCount == 11)
  }

  @Test(arguments: [nil, "", "http://[bad"] as [String?])
  func `a redirect to nowhere is an error status`(location: String?) async throws {
    origin.route("/value") { _ in
      OriginResponse(status: 302, headers: location.map { ["Location": $0] } ?? [:])
    }
    let error = await #expect(throws: HTTPStatusError.self) { try await fetch() }
    #expect(error?.status == 302)
  }

  @Test func `a post is redirected with its body or becomes a get`() async throws {
    let status = Guarded(307)
    let target = other.address + "/there"
    origin.route("/value", methods: [.post]) { _ in
      OriginResponse(status: status.withLock { $0 }, headers: ["Location": target])
    }
    for code in [307, 302] {
      status.withLock { $0 = code }
      let text = try await fetch { request in
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
      }
      #expect(text == "other")
    }
    #expect(seen.withLock { $0.map(\.method) } == [.post, .get])
    #expect(seen.withLock { $0.map(\.body) } == [Array("body".utf8), []])
  }

  // MARK: - Cookies

  @Test(.guarantee(.cookiesNeedAJar)) func `cookies of one user are not sent for another`()
    async throws
  {
    let cookies = Guarded<[String?]>([])
    origin.route("/value") { request in
      cookies.withLock { $0.append(request.headers["Cookie"]) }
      var response = OriginResponse(text: "value")
      response.headers.add("Set-Cookie", "user=1; Expires=Fri, 31 Dec 2100 23:59:59 GMT")
      response.headers.add("Set-Cookie", "b=2; Path=/")
      return response
    }
    let configuration = URLSessionConfiguration.default
    for transport in [patientTransport, URLSessionTransport(configuration: configuration)] {
      for _ in 0..<2 { _ = try await fetch(transport: transport) }
    }
    #expect(cookies.withLock { $0 } == [nil, nil, nil, nil])
    var rules = HTTPRules.patient
    rules.cookies = HTTPCookieJar()
    for _ in 0..<2 { _ = try await fetch(rules: rules) }
    _ = try await fetch()
    #expect(cookies.withLock { $0.suffix(3) } == [nil, "user=1; b=2", nil])
  }

  // MARK: - Answers that are none

  @Test(.guarantee(.brokenResponsesAreNotOffline), arguments: [OriginFault.raw([]), .reset()])
  func `an answer without a byte is a failure of connectivity`(fault: OriginFault) async throws {
    origin.inject(fault, for: "/value", count: 10)
    let error = await #expect(throws: URLError.self) { try await fetch() }
    #expect(error?.code == .networkConnectionLost)
  }

  @Test(
    .guarantee(.brokenResponsesAreNotOffline),
    arguments: [
      ("what is this", ""), ("HTTP/1.1 abc OK", "x"), ("HTTP/9.9 200 OK", "x"),
      ("HTTP/1.1 200 OK\nContent-Length: -2", "x"),
      ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", "5\r\nhello\r\nzz\r\n"),
      ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", "ffffffffffffffffff\r\n"),
      ("HTTP/1.1 200 OK\nX: a\0b\nContent-Length: 1", "x"),
      ("HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 3", "xyz"),
      ("HTTP/1.1 200 OK\nContent-Encoding: what\nContent-Length: 3", "xyz"),
    ] as [(String, String)]
  )
  func `broken framing and coding are errors, and not those of a device offline`(
    head: String,
    body: String
  ) async throws {
    for _ in 0..<3 { raw(head, body: Array(body.utf8)) }
    let error = await #expect(throws: (any Error).self) { try await fetch() }
    #expect((error as? any ConnectivityFailure)?.isConnectivityFailure != true, "\(error as Any)")
  }

  @Test(.guarantee(.brokenResponsesAreNotOffline))
  func `broken coding does not permit a stale value`() async throws {
    origin.route("/value") { _ in OriginResponse(text: "one") }
    let url = try #require(URL(string: origin.address + "/value"))
    let fetcher = HTTPFetcher(url, transport: patientTransport, rules: .patient) { $0.count }
    let value = Multiplexer(policy: .http, clock: ManualClock(), onFetch: fetcher.fetch)
    #expect(try await value.request() == 3)
    raw("HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 3", body: [1, 2, 3])
    await #expect(throws: URLError.self) { try await value.request() }
    origin.inject(.raw([]), for: "/value", count: 5)
    #expect(try await value.request() == 3)
  }

  @Test(
    .guarantee(.challengesAreResponses),
    arguments: [
      "Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "Bearer", "Basic", "Negotiate", "",
    ]
  )
  func `a challenge is an answer to a fetch`(challenge: String) async throws {
    origin.route("/value") { _ in
      var response = OriginResponse(text: "no", status: 401)
      response.headers["WWW-Authenticate"] = challenge
      return response
    }
    for _ in 0..<2 {
      let error = await #expect(throws: HTTPStatusError.self) { try await fetch() }
      #expect(error?.status == 401)
    }
    origin.route("/value") { _ in OriginResponse(text: "yes") }
    #expect(try await fetch() == "yes")
  }

  @Test(
    .guarantee(.challengesAreResponses),
    arguments: ["100 Continue", "102 Processing", "103 Early Hints\nLink: </a>"]
  )
  func `interim answers to a fetch are skipped`(line: String) async throws {
    let interim = "HTTP/1.1 \(line)\n\n"
    raw(interim + interim + "HTTP/1.1 200 OK\nContent-Length: 5", body: Array("hello".utf8))
    #expect(try await fetch() == "hello")
  }

  @Test(.guarantee(.httpErrorsAreNotStored), arguments: [400, 404, 500])
  func `an error keeps its status if its body breaks off`(status: Int) async throws {
    let answer = Guarded(OriginResponse(text: "one"))
    origin.route("/value") { _ in answer.withLock { $0 } }
    let fetcher = HTTPFetcher(
      URLRequest(url: try #require(URL(string: origin.address + "/value"))),
      transport: patientTransport,
      rules: .patient,
      // Before all dates of the server.
      now: { Date(timeIntervalSince1970: 0) },
      decode: { $0.count }
    )
    let value = Multiplexer(policy: .http, clock: ManualClock(), onFetch: fetcher.fetch)
    #expect(try await value.request() == 3)
    answer.withLock { $0 = OriginResponse(text: "0123456789", status: status) }
    origin.inject(.truncation(afterBytes: 4), for: "/value", count: 2)
    // A connection that is lost would permit the stale value, even for one that is gone.
    let error = await #expect(throws: HTTPStatusError.self) { try await value.request() }
    #expect(error?.status == status && error?.body == Data("0123".utf8))
    var rules = HTTPRules.patient
    rules.maximumBodyBytes = 2
    let short = await #expect(throws: HTTPStatusError.self) { try await fetch(rules: rules) }
    #expect(short?.status == status && (short?.body.count ?? 9) <= 2)
  }

  @Test func `a protocol that was not requested is an error`() async throws {
    for _ in 0..<3 {
      raw("HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade", body: [1, 2, 3])
    }
    let error = await #expect(throws: URLError.self) { try await fetch() }
    #expect(error?.isConnectivityFailure == false)
  }

  // MARK: - Too much

  @Test(.guarantee(.bombsEndWithinTheLimits))
  func `a gzip bomb does not get further than the limit`() async throws {
    let bomb = gzipBomb(25_800_001)
    origin.route("/value") { _ in
      OriginResponse(headers: ["Content-Encoding": "gzip"], body: bomb)
    }
    #expect(bomb.count < 200_000)
    var rules = HTTPRules.patient
    rules.maximumBodyBytes = 1 << 20
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) { try await fetch(rules: rules) }
    let fine = gzipBomb(258_001)
    origin.route("/value") { _ in
      OriginResponse(headers: ["Content-Encoding": "gzip"], body: fine)
    }
    // It is read up to its checksum, which is wrong.
    let error = await #expect(throws: URLError.self) { try await fetch(rules: rules) }
    #expect(error?.code != .dataLengthExceedsMaximum)
  }

  @Test(.guarantee(.bombsEndWithinTheLimits)) func `endless header fields end`() async throws {
    let fields = String(
      repeating: "X-Field: 0123456789012345678901234567890123456789\n",
      count: 9_000
    )
    raw("HTTP/1.1 200 OK\n" + fields)
    let error = await #expect(throws: URLError.self) { try await fetch() }
    #expect(error?.isConnectivityFailure == false)
  }

  @Test(
    .guarantee(.bombsEndWithinTheLimits),
    arguments: ["HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaa", "HTTP/1.1 200 OK\r\n\r\naaaaaaaaaaaaaa"]
  )
  func `an answer that drips is too slow, in its head and in its body`(text: String) async throws {
    let (dripping, clock) = (ManualClock(), ManualClock())
    let origin = try LoopbackOrigin(clock: dripping)
    origin.inject(.raw(Array(text.utf8), bytesAtOnce: 1, every: .seconds(1)), for: "/value")
    let fetcher = HTTPFetcher(
      URLRequest(url: try #require(URL(string: origin.address + "/value"))),
      transport: patientTransport,
      clock: clock,
      decode: { $0.count }
    )
    let request = Task { try await fetcher.fetch(FetchContext(previousValue: nil)) }
    for _ in 0..<text.utf8.count - 1 {
      await dripping.sleepers(1)
      dripping.advance(by: .seconds(1))
    }
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
    // The client hangs up.
    await origin.openConnections(atMost: 0)
  }
}
