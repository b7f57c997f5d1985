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
struct `Signing out, with tokens` {
  private struct Away: Error, ConnectivityFailure, OriginFailure {
    var isConnectivityFailure = false
    var isOriginFailure = false
  }

  @Test(.guarantee(.signOutIsReportedOnce))
  func `all requests that wait for a failing refresh get its error, and it is reported once`()
    async throws
  {
    let (rejection, refresh) = (Gate(), Gate())
    let desk = SignInDesk(waiting: refresh) { _, _, _ in
      try await rejection.wait()
      return false
    }
    desk.reject("a1")
    let requests = (0..<20).map { _ in Task { try await desk.get() } }
    await rejection.arrivals(20)
    desk.fail(with: NotSignedIn())
    rejection.open()
    await refresh.arrivals(1)
    refresh.open()
    for request in requests {
      await #expect(throws: NotSignedIn.self) { try await request.value }
    }
    #expect(desk.ended.entries == ["NotSignedIn()"])
    #expect(desk.sent == Array(repeating: "a1", count: 20))
    await #expect(throws: NotSignedIn.self) { try await desk.get() }
    #expect(desk.ended.count == 1)

    desk.signIn("b")
    #expect(try await desk.get() == "b0")
    desk.reject("b0")
    await #expect(throws: NotSignedIn.self) { try await desk.get() }
    #expect(desk.ended.count == 2)
  }

  @Test(.guarantee(.signOutIsReportedOnce))
  func `a sign-out is reported before the request fails`() async throws {
    let desk = SignInDesk()
    desk.fail(with: NotSignedIn())
    await #expect(throws: NotSignedIn.self) { try await desk.get() }
    #expect(desk.ended.count == 1)
  }

  @Test(.guarantee(.signOutIsReportedOnce), arguments: [400, 401, 403, 404, 429, 500, 503])
  func `an error status of the sign-in ends the account if it is 400, 401 or 403`(
    status: Int
  )
    async throws
  {
    let desk = SignInDesk()
    desk.reject("a1")
    #expect(try await desk.token.request().text == "a1")
    desk.fail(with: HTTPStatusError(status: status))
    let error = await #expect(throws: HTTPStatusError.self) { try await desk.get() }
    #expect(error?.status == status)
    #expect(desk.ended.count == ([400, 401, 403].contains(status) ? 1 : 0))
  }

  @Test(
    .guarantee(.signOutIsReportedOnce),
    arguments: [
      (URLError(.notConnectedToInternet), false), (URLError(.serverCertificateUntrusted), false),
      (CancellationError(), false), (MultiplexerError.fetchTimedOut(after: .seconds(1)), false),
      (DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "")), false),
      (Away(isConnectivityFailure: true), false), (Away(isOriginFailure: true), false),
      (Away(), true), (NotSignedIn(), true),
    ] as [(any Error, Bool)]
  )
  func `an account does not end while the device is offline or the origin fails`(
    error: any Error,
    ends: Bool
  ) async throws {
    let desk = SignInDesk()
    desk.reject("a1")
    _ = try await desk.token.request()
    desk.fail(with: error)
    await #expect(throws: (any Error).self) { try await desk.get() }
    // The policy permits the old token while the device is offline, which has been rejected.
    #expect(desk.sent == ["a1"])
    #expect(desk.ended.count == (ends ? 1 : 0))
    await #expect(throws: (any Error).self) { try await desk.get() }
    #expect(desk.sent == ["a1"])
    desk.fail(with: nil)
    #expect(try await desk.get() == "a4")
    #expect(desk.ended.count == (ends ? 1 : 0))
  }

  @Test func `a token that was not rejected is used while the device is offline`() async throws {
    var policy = CachePolicy()
    policy.timeToLive = .zero
    let desk = SignInDesk(policy: policy)
    desk.reject("a1")
    #expect(try await desk.get() == "a2")
    desk.fail(with: URLError(.notConnectedToInternet))
    #expect(try await desk.get() == "a2")
  }

  @Test(.guarantee(.signedOutTokenIsNotSent))
  func `a token that is fetched across a sign-out is not sent`() async throws {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    let repository = MuxRepository()
    desk.token.register(in: repository)
    desk.reject("a1")
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    try await repository.clearAll()
    gate.admit(1)
    await gate.arrivals(2)
    desk.fail(with: NotSignedIn())
    gate.open()
    await #expect(throws: NotSignedIn.self) { try await request.value }
    #expect(desk.sent == ["a1"])
  }

  @Test(.guarantee(.signedOutTokenIsNotSent))
  func `a request of one account is not sent with the token of another one`() async throws {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    desk.reject("a1", "a2")
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    try await desk.token.clear()
    desk.signIn("b")
    gate.open()
    await #expect(throws: HTTPRequestError.accountChanged) { try await request.value }
    #expect(desk.sent == ["a1"])
    #expect(try await desk.get() == "b0")
    #expect(desk.fetchCount == 2)
    #expect(desk.ended.count == 0)
  }

  @Test(.guarantee(.signedOutTokenIsNotSent))
  func `a late rejection of one account does not refresh the token of another one`() async throws {
    let gate = Gate()
    let desk = SignInDesk { count, _, _ in
      if count == 1 { try await gate.wait() }
      return false
    }
    desk.reject("a1")
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    try await desk.token.clear()
    desk.signIn("b")
    gate.open()
    await #expect(throws: HTTPRequestError.accountChanged) { try await request.value }
    #expect(try await desk.get() == "b0")
    #expect(desk.fetchCount == 1)
  }

  private struct Incomparable: Sendable {
    var account = "a"
    var number = 0
  }

  @Test(.guarantee(.signedOutTokenIsNotSent), arguments: ["a", "b"])
  func `tokens that cannot be compared are distinguished by their accounts`(
    account: String
  )
    async throws
  {
    let (gate, fetches) = (Gate(), Log<Int>())
    let token = Multiplexer<Incomparable> {
      fetches.append(0)
      return Incomparable(number: fetches.count)
    }
    let base = ClosureTransport { count, request, receiver in
      if count == 1 { try await gate.wait() }
      try receiver.take(request, status: count == 1 ? 401 : 200, request.authorization)
    }
    let transport = TokenTransport(
      base: base,
      origin: try #require(URL(string: "https://api.example")),
      token: token,
      account: { $0.account },
      authorize: { request, token in
        request.setValue("\(token.account)\(token.number)", forHTTPHeaderField: "Authorization")
      }
    )
    let request = Task { try await SignInDesk.get("https://api.example/", by: transport) }
    await gate.arrivals(1)
    token.store(Incomparable(account: account))
    gate.open()
    if account == "a" {
      // It can be the rejected one: it is refreshed to be sure.
      #expect(try await request.value == "a2")
    } else {
      await #expect(throws: HTTPRequestError.accountChanged) { try await request.value }
      #expect(try await SignInDesk.get("https://api.example/", by: transport) == "b0")
    }
    #expect(fetches.count == (account == "a" ? 2 : 1))
  }

  @Test(.guarantee(.signedOutTokenIsNotSent))
  func `a transport that is called by itself keeps to the account, too`() async throws {
    let gate = Gate()
    let desk = SignInDesk { count, _, _ in
      if count == 1 { try await gate.wait() }
      return false
    }
    desk.reject("a1")
    let url = try #require(URL(string: "https://api.example/"))
    let request = Task { try await desk.transport.send(URLRequest(url: url), to: Nowhere()) }
    await gate.arrivals(1)
    desk.signIn("b")
    gate.open()
    await #expect(throws: HTTPRequestError.accountChanged) { try await request.value }
    #expect(desk.sent == ["a1"])
  }

  @Test func `a redirect is not followed with the token of another account`() async throws {
    let gate = Gate()
    let desk = SignInDesk { _, request, receiver in
      guard request.url?.path() == "/value" else { return false }
      try await gate.wait()
      try receiver.take(request, status: 302, headers: ["Location": "/there"], "")
      return true
    }
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    desk.signIn("b")
    gate.open()
    await #expect(throws: HTTPRequestError.accountChanged) { try await request.value }
    #expect(desk.sent == ["a1"])
  }

  @Test func `a caller that leaves a refresh that it has begun leaves it to the others`()
    async throws
  {
    let gate = Gate()
    let desk = SignInDesk(waiting: gate)
    desk.reject("a1")
    let first = Task { try await desk.get() }
    await gate.arrivals(1)
    let second = Task { try await desk.get() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    gate.open()
    #expect(try await second.value == "a2")
    #expect(desk.fetchCount == 2)
    #expect(desk.ended.count == 0)
  }

  @Test func `the last caller that leaves a refresh ends it, and no account ends`() async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let gate = Gate()
    let desk = SignInDesk(policy: policy, waiting: gate)
    desk.reject("a1")
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    request.cancel()
    await #expect(throws: CancellationError.self) { try await request.value }
    #expect(desk.ended.count == 0)
    gate.open()
    #expect(try await desk.get() == "a3")
  }

  @Test(arguments: ["https://b.example/", "http://api.example/", "https://api.example:1/", nil])
  func `a request that authorize changes to another origin is not sent`(
    target: String?
  )
    async throws
  {
    let desk = SignInDesk()
    let transport = SignInDesk.transport(over: desk.base, token: desk.token) { request in
      request.url = target.flatMap { URL(string: $0) }
    }
    let error = await #expect(throws: HTTPRequestError.self) {
      try await SignInDesk.get("https://api.example/", by: transport)
    }
    #expect(error == .authorizedForOtherOrigin(target.flatMap { URL(string: $0) }))
    #expect(error?.description.contains("authorize") == true)
    #expect(desk.sent.isEmpty)
  }

  @Test func `an error of authorize is that of the request`() async throws {
    let desk = SignInDesk()
    let transport = SignInDesk.transport(over: desk.base, token: desk.token) { request in
      guard request.url?.query() == nil else { throw NotSignedIn() }
      request.url?.append(queryItems: [URLQueryItem(name: "key", value: "1")])
    }
    await #expect(throws: NotSignedIn.self) {
      try await SignInDesk.get("https://api.example/?x", by: transport)
    }
    #expect(try await SignInDesk.get("https://api.example/", by: transport) == "a1")
    #expect(desk.base.requests.withLock { $0.map { $0.url?.query() } } == ["key=1"])
    #expect(desk.ended.count == 0)
  }

  @Test func `a token that its fetch does not keep is not sent`() async throws {
    let token = Multiplexer { (_: FetchContext<TestToken>) in
      .transient(TestToken(account: "a", number: 1))
    }
    let base = ClosureTransport { _, request, receiver in try receiver.take(request, "") }
    let transport = SignInDesk.transport(over: base, token: token)
    let error = await #expect(throws: HTTPRequestError.self) {
      try await SignInDesk.get("https://api.example/", by: transport)
    }
    #expect(error == .signedOut)
    #expect(error?.description.contains(".transient") == true)
  }

  @Test func `a token that is fetched through its own transport fails instead of waiting`()
    async throws
  {
    let desk = SignInDesk()
    let (slot, ended) = (Guarded<TokenTransport<TestToken>?>(nil), Log<String>())
    let token = Multiplexer<TestToken> {
      guard let transport = slot.withLock({ $0 }) else { throw Wrong() }
      _ = try await SignInDesk.get("https://api.example/token", by: transport)
      return TestToken(account: "a", number: 1)
    }
    let transport = SignInDesk.transport(over: desk.base, token: token, ended: ended)
    slot.withLock { $0 = transport }
    await #expect(throws: MultiplexerError.self) {
      try await SignInDesk.get("https://api.example/", by: transport)
    }
    #expect(ended.count == 0)
    slot.withLock { $0 = nil }
  }

  @Test func `onSignedOut can send requests and clear everything`() async throws {
    let (slot, calls) = (Guarded<TokenTransport<TestToken>?>(nil), Log<String>())
    let token = Multiplexer<TestToken> { throw NotSignedIn() }
    let base = ClosureTransport { _, request, receiver in try receiver.take(request, "") }
    let transport = TokenTransport(
      base: base,
      origin: try #require(URL(string: "https://api.example")),
      token: token,
      account: { $0.account },
      authorize: { _, _ in },
      onSignedOut: { error in
        calls.append("\(error)")
        Task {
          if let transport = slot.withLock({ $0 }) {
            _ = try? await SignInDesk.get("https://api.example/", by: transport)
          }
          try? await token.clear()
          calls.append("cleared")
        }
      }
    )
    slot.withLock { $0 = transport }
    await #expect(throws: NotSignedIn.self) {
      try await SignInDesk.get("https://api.example/", by: transport)
    }
    #expect(await calls.first(2) == ["NotSignedIn()", "cleared"])
    slot.withLock { $0 = nil }
  }
}

/// A receiver of nothing.
private struct Nowhere: HTTPReceiver {
  func begin(_ response: HTTPURLResponse) {}
  func receive(_ bytes: Data) {}
}
