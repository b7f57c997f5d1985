import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Rejections of tokens at moments that are easy to miss.
@Suite(.fewAtOnce) struct `Rejections of tokens` {
  let clock = ManualClock()

  private func cache(_ transport: some HTTPTransport) -> HTTPCache<String> {
    HTTPCache(transport: transport, rules: .patient, clock: clock) {
      String(decoding: $0.body, as: UTF8.self)
    }
  }

  private func url(_ text: String = "https://api.example/value") throws -> URL {
    try #require(URL(string: text))
  }

  @Test func `a fetch of the token that fails for good is reported, also after a rejection`()
    async throws
  {
    let (refresh, rejection, fetches, ended) = (Gate(), Gate(), Log<Int>(), Log<String>())
    var policy = CachePolicy()
    policy.timeToLive = .seconds(10)
    let token = Multiplexer<TestToken>(policy: policy, clock: clock) {
      fetches.append(1)
      guard fetches.count > 1 else { return TestToken(account: "a", number: 1) }
      try await refresh.wait()
      throw NotSignedIn()
    }
    let base = ClosureTransport { _, request, receiver in
      try await rejection.wait()
      try receiver.take(request, status: 401, request.authorization)
    }
    let transport = SignInDesk.transport(over: base, token: token, ended: ended)
    // An upload with the token is on its way.
    var upload = URLRequest(url: try url())
    upload.httpMethod = "POST"
    upload.httpBodyStream = InputStream(data: Data("body".utf8))
    let sent = HTTPFetcher(upload, transport: transport, rules: .patient) { $0 }
    let uploading = Task { try await sent.fetch(FetchContext(previousValue: nil)) }
    await rejection.arrivals(1)
    // The token expires, and a request fetches it again.
    clock.advance(by: .seconds(10))
    let request = Task { try await SignInDesk.get("https://api.example/", by: transport) }
    await refresh.arrivals(1)
    // The upload is rejected: its body cannot be sent again, and it does not wait for a new token.
    rejection.open()
    await #expect(throws: HTTPStatusError.self) { _ = try await uploading.value }
    refresh.open()
    await #expect(throws: NotSignedIn.self) { try await request.value }
    #expect(ended.entries == ["NotSignedIn()"])
  }

  @Test func `requests that were in flight during a failed refresh do not refresh again`()
    async throws
  {
    let gates = (0..<3).map { _ in Gate() }
    let desk = SignInDesk { count, _, _ in
      if count <= 3 { try await gates[count - 1].wait() }
      return false
    }
    desk.reject("a1")
    _ = try await desk.token.request()
    desk.fail(with: NotSignedIn())
    var requests: [Task<String, any Error>] = []
    for gate in gates {
      requests.append(Task { try await desk.get() })
      await gate.arrivals(1)
    }
    for (gate, request) in zip(gates, requests) {
      gate.open()
      await #expect(throws: NotSignedIn.self) { try await request.value }
    }
    #expect(desk.fetchCount == 2, "One token, and one refresh of it")
    #expect(desk.ended.count == 1)
  }

  @Test func `a rejection is not remembered for the next token of the account`() async throws {
    let desk = SignInDesk()
    let (cache, url) = (cache(desk.transport), try url())
    desk.reject("a1", "a2")
    await #expect(throws: HTTPStatusError.self) { try await cache.request(url) }
    #expect(desk.sent == ["a1", "a2"])
    desk.signIn("a", number: 9)
    let value = try? await cache.request(url)
    #expect(value == "a9")
  }

  @Test func `a request to another origin needs no token, wherever it was redirected before`()
    async throws
  {
    let moved = Guarded(true)
    let desk = SignInDesk { _, request, receiver in
      guard request.url?.host() == "b.example" else { return false }
      if moved.withLock({ $0 }) {
        let headers = ["Location": "https://api.example/value", "Cache-Control": "no-store"]
        try receiver.take(request, status: 302, headers: headers, "")
      } else {
        try receiver.take(request, "public")
      }
      return true
    }
    let (cache, other) = (cache(desk.transport), try url("https://b.example/"))
    #expect(try await cache.request(other) == "a1")
    moved.withLock { $0 = false }
    try await desk.token.clear()
    desk.fail(with: NotSignedIn())
    let value = try? await cache.request(other)
    #expect(value == "public")
    #expect(desk.ended.count == 0)
  }

  @Test(
    arguments: [
      "https://api.example.evil.example/", "https://api.example@evil.example/",
      "https://evil.example/https://api.example/", "https://evil.example#api.example",
      "https://evil.example?@api.example", "http://api.example:443/", "https://api.example:80/",
      "https://xapi.example/", "https://api.example./", "https://evil.example\\@api.example/",
      "https://api.example:4430/", "https://api.example%2eevil.example/",
    ]
  )
  func `no other origin gets the token`(text: String) async throws {
    let desk = SignInDesk()
    guard let url = URL(string: text) else { return }
    _ = try? await SignInDesk.get(text, by: desk.transport)
    for request in desk.base.requests.withLock({ $0 }) where !request.authorization.isEmpty {
      #expect(request.url?.host() == "api.example" && request.url?.port ?? 443 == 443, "\(url)")
    }
  }

  @Test func `a sign-in during a rejected request of the same account is used at once`()
    async throws
  {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    desk.reject("a1")
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    desk.signIn("a", number: 7)
    #expect(try await request.value == "a7")
    #expect(try await desk.get() == "a7")
    gate.open()
    #expect(desk.ended.count == 0)
  }

  @Test func `hundreds of requests that leave and stay refresh once, and all that stay get it`()
    async throws
  {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    desk.reject("a1")
    let requests = (0..<300).map { _ in Task { try await desk.get() } }
    await gate.arrivals(1)
    for index in requests.indices where !index.isMultiple(of: 3) { requests[index].cancel() }
    gate.open()
    for (index, request) in requests.enumerated() {
      let result = await request.result
      if index.isMultiple(of: 3) { #expect(try result.get() == "a2") }
    }
    #expect(desk.fetchCount == 2)
  }
}
