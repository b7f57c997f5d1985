import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Accounts that change between a request and its answer.
@Suite(.fewAtOnce)
struct `The answer for one account` {
  private let clock = ManualClock()
  private let jar = HTTPCookieJar()
  private let gate = Gate()

  private static let fresh = ["Cache-Control": "max-age=1000"]

  private var rules: HTTPRules {
    var rules = HTTPRules.patient
    rules.cookies = jar
    return rules
  }

  private func cache(
    _ transport: some HTTPTransport,
    staleWhileRevalidate: Duration = .zero,
    attempts: Int = 2,
    rules: HTTPRules? = nil
  ) -> HTTPCache<String> {
    var policy = CachePolicy.http
    policy.retry = .exponential(attempts: attempts, base: .seconds(1), cap: .seconds(1), jitter: 0)
    policy.staleWhileRevalidate = staleWhileRevalidate
    return HTTPCache(policy: policy, transport: transport, rules: rules ?? self.rules, clock: clock)
    {
      String(decoding: $0.body, as: UTF8.self)
    }
  }

  private func url(_ text: String = "https://a.example/value") throws -> URL {
    try #require(URL(string: text))
  }

  /// Sets the cookie of an account in the jar.
  private func signIn(_ account: String, at text: String = "https://a.example/login") async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, headers: ["Set-Cookie": "session=\(account); Path=/"], "")
    }
    let fetcher = HTTPFetcher(try url(text), transport: transport, rules: rules) { $0 }
    _ = try await fetcher.fetch(FetchContext(previousValue: nil))
  }

  /// A transport that answers with the cookies, and fails with a lost connection at some requests.
  private func transport(
    failing: Set<Int> = [],
    headers: [String: String] = Self.fresh
  ) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      if failing.contains(count) { throw URLError(.networkConnectionLost) }
      try receiver.take(request, headers: headers, request.cookies)
    }
  }

  @Test(.guarantee(.accountsDoNotMix))
  func `an answer for one account is not kept for another one that signs in before a retry`()
    async throws
  {
    let transport = transport(failing: [1])
    let cache = cache(transport)
    let url = try url()
    try await signIn("a")
    let asked = Task { try await cache.request(url) }
    await clock.sleepers(1)
    try await signIn("b")
    clock.advance(by: .seconds(1))
    #expect(try await asked.value == "session=a")
    for _ in 0..<2 {
      #expect(try await cache.request(url) == "session=b")
      try await signIn("a")
      #expect(try await cache.request(url) == "session=a")
      try await signIn("b")
    }
    #expect(
      transport.requests.withLock { $0.map(\.cookies) } == ["session=a", "session=a", "session=b"]
    )
  }

  @Test(.guarantee(.accountsDoNotMix))
  func `a stale value is renewed for the account that has asked`() async throws {
    let transport = ClosureTransport { [gate] count, request, receiver in
      if count == 2 {
        try await gate.wait()
        throw URLError(.networkConnectionLost)
      }
      try receiver.take(
        request,
        headers: ["Cache-Control": "max-age=1"],
        "\(request.cookies) \(count)"
      )
    }
    let cache = cache(transport, staleWhileRevalidate: .seconds(1_000))
    let url = try url()
    try await signIn("a")
    #expect(try await cache.request(url) == "session=a 1")
    clock.advance(by: .seconds(2))
    #expect(try await cache.request(url) == "session=a 1")
    await gate.arrivals(1)
    try await signIn("b")
    gate.open()
    await clock.sleepers(1)
    #expect(try await cache.request(url) == "session=b 3")
    let events = cache.events()
    clock.advance(by: .seconds(1))
    for await case .fetched in events { break }
    #expect(try await cache.request(url).hasPrefix("session=b"))
    try await signIn("a")
    #expect(try await cache.request(url).hasPrefix("session=a"))
    #expect(transport.requests.withLock { $0.map(\.cookies) }[3] == "session=a")
  }

  @Test(.guarantee(.accountsDoNotMix))
  func `all redirects of a request are followed for the account that has asked`()
    async throws
  {
    let isSwitched = Guarded(false)
    let transport = ClosureTransport { _, request, receiver in
      if request.url?.path() == "/value" {
        let isFirst = isSwitched.withLock { isSwitched in
          defer { isSwitched = true }
          return !isSwitched
        }
        if isFirst { try await signIn("b") }
        return try receiver.take(
          request,
          status: 301,
          headers: Self.fresh.merging(["Location": "/there"]) { $1 },
          ""
        )
      }
      try receiver.take(request, headers: Self.fresh, request.cookies)
    }
    let cache = cache(transport)
    let url = try url()
    try await signIn("a")
    #expect(try await cache.request(url) == "session=a")
    #expect(try await cache.request(url) == "session=b")
    try await signIn("a")
    #expect(try await cache.request(url) == "session=a")
    #expect(transport.requests.withLock { $0.count } == 4)
  }

  /// Answers `/value` with a redirect to another origin, which answers with its cookies.
  private func redirecting(_ wait: Gate? = nil) -> ClosureTransport {
    ClosureTransport { _, request, receiver in
      guard request.url?.host() == "a.example" else {
        try await wait?.wait()
        return try receiver.take(request, headers: Self.fresh, request.cookies)
      }
      try receiver.take(
        request,
        status: 301,
        headers: Self.fresh.merging(["Location": "https://b.example/there?\(UUID())"]) { $1 },
        ""
      )
    }
  }

  @Test(.guarantee(.accountsDoNotMix))
  func `an answer counts for the account at an origin that a redirect leads to`() async throws {
    let transport = redirecting()
    let cache = cache(transport)
    let (url, login) = (try url(), "https://b.example/login")
    #expect(try await cache.request(url) == "")
    for account in ["a", "b"] {
      try await signIn(account, at: login)
      for _ in 0..<2 { #expect(try await cache.request(url) == "session=\(account)") }
    }
    #expect(transport.requests.withLock { $0.count } == 6)
    // Cookies of other origins do not count.
    try await signIn("c", at: "https://c.example/login")
    #expect(try await cache.request(url) == "session=b")
    #expect(transport.requests.withLock { $0.count } == 6)
  }

  @Test(.guarantee(.accountsDoNotMix))
  func `an answer is not shared with a caller of another account at an origin of a redirect`()
    async throws
  {
    let cache = cache(redirecting(gate))
    let (url, login) = (try url(), "https://b.example/login")
    try await signIn("a", at: login)
    let first = Task { try await cache.request(url) }
    await gate.arrivals(1)
    try await signIn("b", at: login)
    let second = Task { try await cache.request(url) }
    gate.open()
    #expect(try await first.value == "session=a")
    #expect(try await second.value == "session=b")
    #expect(try await cache.request(url) == "session=b")
  }

  @Test(.guarantee(.accountsDoNotMix), arguments: [301, 302])
  func `an answer to cookies that were set on the way is for its caller alone`(
    status: Int
  ) async throws {
    let transport = ClosureTransport { count, request, receiver in
      guard request.cookies.isEmpty else {
        return try receiver.take(request, headers: Self.fresh, request.cookies)
      }
      try receiver.take(
        request,
        status: status,
        headers: Self.fresh.merging(
          ["Location": "/value", "Set-Cookie": "session=\(count); Path=/"]
        ) { $1 },
        ""
      )
    }
    let cache = cache(transport)
    let url = try url()
    #expect(try await cache.request(url) == "session=1")
    jar.removeAll()
    #expect(try await cache.request(url) == "session=3")
    for _ in 0..<2 { #expect(try await cache.request(url) == "session=3") }
    #expect(transport.requests.withLock { $0.count } == 5)
  }

  @Test(.guarantee(.removedCookiesStayRemoved))
  func `no request is sent with cookies that were removed`() async throws {
    let transport = transport(failing: [1])
    let cache = cache(transport)
    let url = try url()
    try await signIn("a")
    let asked = Task { try await cache.request(url) }
    await clock.sleepers(1)
    jar.removeAll()
    clock.advance(by: .seconds(1))
    await #expect(throws: HTTPRequestError.cookiesRemoved) { try await asked.value }
    #expect(try await cache.request(url) == "")
    try await signIn("a")
    #expect(try await cache.request(url) == "session=a")
    #expect(transport.requests.withLock { $0.map(\.cookies) } == ["session=a", "", "session=a"])
  }

  @Test(.guarantee(.removedCookiesStayRemoved))
  func `an answer sets no cookies in a jar that was emptied, or has those of another account`()
    async throws
  {
    let transport = ClosureTransport { [gate] count, request, receiver in
      if count == 1 { throw URLError(.networkConnectionLost) }
      try await gate.wait()
      let headers = ["Set-Cookie": "session=a2; Path=/", "Cache-Control": "no-store"]
      try receiver.take(request, headers: headers, request.cookies)
    }
    let cache = cache(transport)
    let (url, other) = (try url(), self.transport(headers: [:]))
    try await signIn("a")
    let asked = Task { try await cache.request(url) }
    await clock.sleepers(1)
    try await signIn("b")
    clock.advance(by: .seconds(1))
    await gate.arrivals(1)
    gate.admit()
    #expect(try await asked.value == "session=a")
    #expect(try await self.cache(other).request(url) == "session=b")
    let late = Task { try await cache.request(url) }
    await gate.arrivals(2)
    jar.removeAll()
    gate.admit()
    #expect(try await late.value == "session=b")
    #expect(jar.count == 0)
  }

  /// A transport whose credentials change.
  private struct Signing: HTTPTransport {
    let account: Guarded<String>
    let transport: ClosureTransport
    let name: String

    var headers: [String: String] { [name: account.withLock { $0 }] }

    @concurrent
    func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
      try await transport.send(request, to: receiver)
    }
  }

  @Test(.guarantee(.credentialsSelectValues), arguments: ["Authorization", "X-API-Key"])
  func `an answer is kept for the credentials that the transport has added`(
    name: String
  ) async throws {
    let account = Guarded("a")
    let answers = ClosureTransport { count, request, receiver in
      if count == 1 { throw URLError(.networkConnectionLost) }
      let text = request.value(forHTTPHeaderField: name) ?? ""
      try receiver.take(request, headers: Self.fresh, text)
    }
    let cache = cache(Signing(account: account, transport: answers, name: name))
    let url = try url()
    let asked = Task { try await cache.request(url) }
    await clock.sleepers(1)
    account.withLock { $0 = "b" }
    clock.advance(by: .seconds(1))
    #expect(try await asked.value == "a")
    for _ in 0..<2 {
      #expect(try await cache.request(url) == "b")
      account.withLock { $0 = "a" }
      #expect(try await cache.request(url) == "a")
      account.withLock { $0 = "b" }
    }
    #expect(answers.requests.withLock { $0.count } == 3)
  }

  @Test(.guarantee(.credentialsSelectValues))
  func `an answer is kept for the credentials that the rules name`() async throws {
    var rules = rules
    rules.redirects.credentials.append("X-API-Key")
    let answers = ClosureTransport { _, request, receiver in
      let text = request.value(forHTTPHeaderField: "X-API-Key") ?? ""
      try receiver.take(request, headers: Self.fresh, text)
    }
    let cache = cache(answers, rules: rules)
    for key in ["a", "b", "a", "b"] {
      var request = URLRequest(url: try url())
      request.setValue(key, forHTTPHeaderField: "X-API-Key")
      #expect(try await cache.request(request) == key)
    }
    #expect(answers.requests.withLock { $0.count } == 2)
  }

  @Test(.guarantee(.credentialsSelectValues))
  func `an error for one account is not given to a caller of another account`() async throws {
    let answers = ClosureTransport { [gate] count, request, receiver in
      let user = request.value(forHTTPHeaderField: "X-User") ?? ""
      if count == 1 {
        return try receiver.take(request, headers: ["Cache-Control": "max-age=1"], user)
      }
      try await gate.wait()
      let headers = ["Vary": "X-User", "Cache-Control": "max-age=60"]
      try receiver.take(request, status: 403, headers: headers, user)
    }
    let cache = cache(answers, attempts: 1)
    func request(_ user: String) throws -> URLRequest {
      var request = URLRequest(url: try url())
      request.setValue(user, forHTTPHeaderField: "X-User")
      return request
    }
    func body(_ user: String) async throws -> String? {
      do { return try await cache.request(request(user)) } catch let error as HTTPStatusError {
        return String(decoding: error.body, as: UTF8.self)
      }
    }
    // The first answer is for all users, the second one, of a renewal that they share, is not.
    #expect(try await body("a") == "a")
    clock.advance(by: .seconds(2))
    let first = Task { try await body("a") }
    await gate.arrivals(1)
    let second = Task { try await body("b") }
    gate.open()
    #expect(try await first.value == "a")
    #expect(try await second.value == "b")
    #expect(try await [body("a"), body("b")] == ["a", "b"])
  }
}

extension URLRequest {
  fileprivate var cookies: String { value(forHTTPHeaderField: "Cookie") ?? "" }
}
