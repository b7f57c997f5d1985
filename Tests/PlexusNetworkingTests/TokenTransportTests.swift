import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `A transport with tokens` {
  @Test(
    arguments: [
      ("https://api.example/x", true), ("HTTPS://API.example:443/x", true),
      ("https://user:secret@api.example/x", true), ("https://api.example?x#y", true),
      ("http://api.example/x", false), ("https://api.example:8443/x", false),
      ("https://sub.api.example/x", false), ("https://api.example.evil.example/x", false),
      ("https://api.example@evil.example/x", false), ("https://api.example./x", false),
    ]
  )
  func `every request to the origin carries the token, and no other one`(
    url: String,
    carries: Bool
  ) async throws {
    let desk = SignInDesk()
    #expect(try await desk.get(url) == (carries ? "a1" : ""))
    #expect(desk.fetchCount == (carries ? 1 : 0))
  }

  @Test func `a redirect to another origin is followed without the token, and back with it`()
    async throws
  {
    let hops = [
      "/value": "https://b.example/there", "/there": "https://api.example/back",
    ]
    let desk = SignInDesk { _, request, receiver in
      guard let target = hops[request.url?.path() ?? ""] else { return false }
      try receiver.take(request, status: 307, headers: ["Location": target], "")
      return true
    }
    #expect(try await desk.get() == "a1")
    #expect(desk.sent == ["a1", "", "a1"])
    #expect(try await desk.get("https://b.example/there") == "a1")
    #expect(desk.sent == ["a1", "", "a1", "", "a1"])
  }

  @Test func `a request is sent once more as it was after the token is refreshed`() async throws {
    let desk = SignInDesk()
    desk.reject("a1")
    var request = URLRequest(url: try #require(URL(string: "https://api.example/value")))
    request.httpMethod = "PUT"
    request.httpBody = Data("body".utf8)
    request.setValue("1", forHTTPHeaderField: "X")
    let fetcher = HTTPFetcher(request, transport: desk.transport, rules: .patient) { $0 }
    _ = try await fetcher.fetch(FetchContext(previousValue: nil))
    #expect(desk.sent == ["a1", "a2"])
    for sent in desk.base.requests.withLock({ $0 }) {
      #expect(sent.httpMethod == "PUT" && sent.httpBody == Data("body".utf8))
      #expect(sent.value(forHTTPHeaderField: "X") == "1")
    }
    #expect(desk.ended.count == 0)
  }

  @Test(.guarantee(.rejectedTokenIsRefreshedOnce))
  func `a thousand requests that are rejected at once refresh the token once`() async throws {
    let gate = Gate()
    let desk = SignInDesk { _, request, _ in
      if request.authorization == "a1" { try await gate.wait() }
      return false
    }
    desk.reject("a1")
    _ = try await desk.token.request()
    let answers = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<1_000 { group.addTask { try await desk.get() } }
      await gate.arrivals(1_000)
      gate.open()
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(answers == ["a2"])
    #expect(desk.fetchCount == 2)
    #expect(desk.sent.count == 2_000)
  }

  @Test(.guarantee(.rejectedTokenIsRefreshedOnce))
  func `a rejection that arrives after the refresh refreshes the token no more`() async throws {
    let gate = Gate()
    let desk = SignInDesk { count, _, _ in
      if count == 1 { try await gate.wait() }
      return false
    }
    desk.reject("a1")
    let late = Task { try await desk.get() }
    await gate.arrivals(1)
    #expect(try await desk.get() == "a2")
    gate.open()
    #expect(try await late.value == "a2")
    #expect(desk.fetchCount == 2)
    #expect(desk.sent == ["a1", "a1", "a2", "a2"])
  }

  @Test(.guarantee(.rejectedTokenIsRefreshedOnce))
  func `a token that was replaced since it was sent is not refreshed`() async throws {
    let gate = Gate()
    let desk = SignInDesk { count, _, _ in
      if count == 1 { try await gate.wait() }
      return false
    }
    desk.reject("a1")
    let late = Task { try await desk.get() }
    await gate.arrivals(1)
    desk.token.store(TestToken(account: "a", number: 9))
    gate.open()
    #expect(try await late.value == "a9")
    #expect(desk.fetchCount == 1)
  }

  @Test(.guarantee(.rejectedTokenIsRefreshedOnce))
  func `an origin that rejects every token is asked twice for each request`() async throws {
    let desk = SignInDesk { _, request, receiver in
      try receiver.take(request, status: 401, headers: ["X": request.authorization], "no")
      return true
    }
    for round in 1...3 {
      let error = await #expect(throws: HTTPStatusError.self) { try await desk.get() }
      #expect(error?.status == 401 && error?.headers["X"] == "a\(round + 1)")
      #expect(error?.body == Data("no".utf8))
      #expect(desk.sent.count == 2 * round)
      #expect(desk.fetchCount == round + 1)
    }
    #expect(desk.ended.count == 0)
  }

  @Test func `a request that begins during the refresh waits for the new token`() async throws {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    desk.reject("a1")
    let first = Task { try await desk.get() }
    await gate.arrivals(1)
    let second = Task { try await desk.get() }
    let third = Task { try await desk.get("https://b.example/") }
    #expect(try await third.value == "")
    gate.open()
    #expect(try await first.value == "a2")
    #expect(try await second.value == "a2")
    #expect(!desk.sent.dropFirst().contains("a1"))
    #expect(desk.fetchCount == 2)
  }

  @Test func `a body that is a stream is not sent twice, and the next request refreshes`()
    async throws
  {
    let desk = SignInDesk()
    desk.reject("a1")
    var request = URLRequest(url: try #require(URL(string: "https://api.example/value")))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    let fetcher = HTTPFetcher(request, transport: desk.transport, rules: .patient) { $0 }
    let error = await #expect(throws: HTTPStatusError.self) {
      _ = try await fetcher.fetch(FetchContext(previousValue: nil))
    }
    #expect(error?.status == 401)
    #expect(error?.body == Data("a1".utf8))
    #expect(desk.sent == ["a1"])
    #expect(try await desk.get() == "a2")
    #expect(desk.sent == ["a1", "a2"])
  }

  @Test func `the rest of a rejection does not matter`() async throws {
    let desk = SignInDesk { count, request, receiver in
      guard request.authorization != "a5" else { return false }
      try receiver.begin(request, status: 401)
      if count.isMultiple(of: 2) { throw URLError(.networkConnectionLost) }
      for _ in 0..<100 { try receiver.receive(Data(count: 10_000)) }
      Issue.record("An endless body is not read to its end")
      return true
    }
    for _ in 0..<3 { _ = try? await desk.get() }
    desk.signIn("a", number: 5)
    #expect(try await desk.get() == "a5")
  }

  @Test func `header fields of the base transport are those of the transport`() {
    let base = URLSessionTransport(headers: ["X": "1"])
    let transport = SignInDesk.transport(
      over: base,
      token: Multiplexer { TestToken(account: "a", number: 1) }
    )
    #expect(transport.headers == ["X": "1"])
  }

  @Test func `two transports on top of each other have a token for each origin`() async throws {
    let desk = SignInDesk()
    let other = Multiplexer { TestToken(account: "b", number: 7) }
    let both = SignInDesk.transport(
      over: desk.transport,
      origin: "https://b.example",
      token: other
    )
    #expect(try await SignInDesk.get("https://api.example/", by: both) == "a1")
    #expect(try await SignInDesk.get("https://b.example/", by: both) == "b7")
    #expect(try await SignInDesk.get("https://c.example/", by: both) == "")
    let cache = HTTPCache<HTTPResponse>(transport: both, rules: .patient)
    for origin in ["api", "b"] {
      let url = try #require(URL(string: "https://\(origin).example/"))
      for _ in 0..<2 { _ = try await cache.request(url) }
    }
    #expect(desk.sent.count == 5)
  }

  @Test func `a released transport releases the token and what it is sent through`() async throws {
    let base = ClosureTransport { _, request, receiver in try receiver.take(request, "") }
    weak var token: Multiplexer<TestToken>?
    weak var transport: TokenTransport<TestToken>?
    do {
      let own = Multiplexer { TestToken(account: "a", number: 1) }
      let top = SignInDesk.transport(over: base, token: own)
      (token, transport) = (own, top)
      _ = try await SignInDesk.get("https://api.example/", by: top)
      #expect(top.accounts != nil)
    }
    #expect(token == nil && transport == nil)
  }

  @Test(.startsProcess)
  func `an origin of a token that is no URL of HTTP stops with a sentence`() async {
    await #expect(processExitsWith: .failure) {
      _ = SignInDesk.transport(
        over: URLSessionTransport.shared,
        origin: "file:///tmp",
        token: Multiplexer { TestToken(account: "a", number: 1) }
      )
    }
  }
}
