import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Caches above a transport with tokens.
@Suite(.fewAtOnce)
struct `The answer for the account of a token` {
  private let clock = ManualClock()
  private let gate = Gate()

  private func cache(
    _ transport: some HTTPTransport,
    staleWhileRevalidate: Duration = .zero,
    attempts: Int = 1
  ) -> HTTPCache<String> {
    var policy = CachePolicy.http
    policy.retry = .exponential(attempts: attempts, base: .seconds(1), cap: .seconds(1), jitter: 0)
    policy.staleWhileRevalidate = staleWhileRevalidate
    return HTTPCache(policy: policy, transport: transport, rules: .patient, clock: clock) {
      String(decoding: $0.body, as: UTF8.self)
    }
  }

  private func url(_ text: String = "https://api.example/value") throws -> URL {
    try #require(URL(string: text))
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `each account has its own answers, also after its token is refreshed`() async throws {
    let desk = SignInDesk()
    let (cache, url) = (cache(desk.transport), try url())
    #expect(cache.cachedValue(URLRequest(url: url)) == nil)
    #expect(try await cache.request(url) == "a1")
    desk.signIn("b")
    #expect(cache.cachedValue(URLRequest(url: url)) == nil)
    for _ in 0..<2 { #expect(try await cache.request(url) == "b0") }
    desk.signIn("a", number: 8)
    #expect(cache.cachedValue(URLRequest(url: url)) == "a1")
    #expect(try await cache.request(url) == "a1")
    #expect(desk.sent == ["a1", "b0"])
    desk.reject("a8")
    #expect(try await cache.request(try self.url("https://api.example/2")) == "a2")
    #expect(try await cache.request(url) == "a1")
    #expect(desk.sent == ["a1", "b0", "a8", "a2"])
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `callers of two accounts do not share a fetch`() async throws {
    let desk = SignInDesk { [gate] _, _, _ in
      try await gate.wait()
      return false
    }
    let (cache, url) = (cache(desk.transport), try url())
    let first = Task { try await cache.request(url) }
    await gate.arrivals(1)
    desk.signIn("b")
    let second = Task { try await cache.request(url) }
    await gate.arrivals(2)
    gate.open()
    #expect(try await first.value == "a1")
    #expect(try await second.value == "b0")
    #expect(try await cache.request(url) == "b0")
    desk.signIn("a")
    #expect(try await cache.request(url) == "a1")
    #expect(desk.sent.count == 2)
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `a retry is not sent for another account than the request`() async throws {
    let desk = SignInDesk { count, _, _ in
      if count == 1 { throw URLError(.networkConnectionLost) }
      return false
    }
    let (cache, url) = (cache(desk.transport, attempts: 2), try url())
    let first = Task { try await cache.request(url) }
    await clock.sleepers(1)
    desk.signIn("b")
    clock.advance(by: .seconds(1))
    await #expect(throws: HTTPRequestError.accountChanged) { try await first.value }
    #expect(try await cache.request(url) == "b0")
    #expect(desk.sent == ["a1", "b0"])
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `a token that is refreshed before a retry is that of the request`() async throws {
    let desk = SignInDesk { count, _, _ in
      if count == 1 { throw URLError(.networkConnectionLost) }
      return false
    }
    let (cache, url) = (cache(desk.transport, attempts: 2), try url())
    let first = Task { try await cache.request(url) }
    await clock.sleepers(1)
    desk.signIn("a", number: 5)
    clock.advance(by: .seconds(1))
    #expect(try await first.value == "a5")
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `a stale value is not renewed by the answer for another account`() async throws {
    let desk = SignInDesk { [gate] count, request, receiver in
      if count == 2 { try await gate.wait() }
      try receiver.take(
        request,
        headers: ["Cache-Control": "max-age=1"],
        "\(request.authorization) \(count)"
      )
      return true
    }
    let cache = cache(desk.transport, staleWhileRevalidate: .seconds(1_000))
    let url = try url()
    #expect(try await cache.request(url) == "a1 1")
    clock.advance(by: .seconds(2))
    #expect(try await cache.request(url) == "a1 1")
    await gate.arrivals(1)
    desk.signIn("b")
    #expect(try await cache.request(url) == "b0 3")
    let events = cache.events()
    gate.open()
    for await case .fetched in events { break }
    #expect(try await cache.request(url) == "b0 3")
    desk.signIn("a")
    #expect(try await cache.request(url) == "a1 2")
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `a token that changes while a response arrives leaves it to the account that was sent`()
    async throws
  {
    let desk = SignInDesk { [gate] count, request, receiver in
      guard count == 1 else { return false }
      try receiver.begin(request, headers: SignInDesk.fresh)
      try receiver.receive(Data("a1 ".utf8))
      try await gate.wait()
      try receiver.receive(Data("rest".utf8))
      return true
    }
    let (cache, url) = (cache(desk.transport), try url())
    let first = Task { try await cache.request(url) }
    await gate.arrivals(1)
    desk.signIn("b")
    gate.open()
    #expect(try await first.value == "a1 rest")
    #expect(try await cache.request(url) == "b0")
    desk.signIn("a")
    #expect(try await cache.request(url) == "a1 rest")
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `an answer that a redirect from elsewhere leads to is that of the account`() async throws {
    let desk = SignInDesk { _, request, receiver in
      guard request.url?.host() == "short.example" else { return false }
      try receiver.take(
        request,
        status: 301,
        headers: SignInDesk.fresh.merging(["Location": "https://api.example/long"]) { $1 },
        ""
      )
      return true
    }
    let (cache, url) = (cache(desk.transport), try url("https://short.example/value"))
    // The first answer tells where the redirect leads to: it is for its caller alone.
    for _ in 0..<3 { #expect(try await cache.request(url) == "a1") }
    #expect(desk.sent == ["", "a1", "", "a1"])
    desk.signIn("b")
    #expect(cache.cachedValue(URLRequest(url: url)) == nil)
    for _ in 0..<2 { #expect(try await cache.request(url) == "b0") }
    desk.signIn("a")
    #expect(cache.cachedValue(URLRequest(url: url)) == "a1")
    #expect(try await cache.request(url) == "a1")
    #expect(desk.sent.count == 6)
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `callers of two accounts do not share a redirect from elsewhere`() async throws {
    let desk = SignInDesk { [gate] _, request, receiver in
      guard request.url?.host() == "short.example" else {
        if request.authorization == "a1" { try await gate.wait() }
        return false
      }
      try receiver.take(
        request,
        status: 301,
        headers: SignInDesk.fresh.merging(["Location": "https://api.example/long"]) { $1 },
        ""
      )
      return true
    }
    let (cache, url) = (cache(desk.transport), try url("https://short.example/value"))
    let first = Task { try await cache.request(url) }
    await gate.arrivals(1)
    desk.signIn("b")
    let second = Task { try await cache.request(url) }
    gate.open()
    #expect(try await first.value == "a1")
    #expect(try await second.value == "b0")
    for _ in 0..<2 { #expect(try await cache.request(url) == "b0") }
  }

  @Test(.guarantee(.accountsOfTokensDoNotMix))
  func `a transport in between that hides the accounts lets no answer be kept`() async throws {
    let desk = SignInDesk()
    let (cache, url) = (cache(Hiding(base: desk.transport)), try url())
    #expect(try await cache.request(url) == "a1")
    #expect(try await cache.request(url) == "a1")
    desk.signIn("b")
    #expect(try await cache.request(url) == "b0")
    #expect(desk.sent == ["a1", "a1", "b0"])
    let other = self.cache(Hiding(base: desk.transport, accounts: desk.transport.accounts))
    for _ in 0..<2 { #expect(try await other.request(url) == "b0") }
    #expect(desk.sent.count == 4)
  }

  @Test func `a request of a value without a token fails with the error of the sign-in`()
    async throws
  {
    let desk = SignInDesk()
    desk.fail(with: NotSignedIn())
    let (cache, url) = (cache(desk.transport), try url())
    await #expect(throws: NotSignedIn.self) { try await cache.request(url) }
    #expect(try await cache.request(try self.url("https://b.example/")) == "")
    #expect(desk.sent == [""])
    #expect(desk.ended.count == 1)
  }

  @Test func `a stale value is used while the token cannot be refreshed because of the network`()
    async throws
  {
    let desk = SignInDesk()
    let (cache, url) = (cache(desk.transport), try url())
    #expect(try await cache.request(url) == "a1")
    clock.advance(by: .seconds(2_000))
    desk.reject("a1")
    desk.fail(with: URLError(.notConnectedToInternet))
    let response = try await cache.response(URLRequest(url: url))
    #expect(response.value == "a1" && response.isStale)
    #expect(desk.sent == ["a1", "a1"])
  }

  @Test func `a request that changes something is sent for the account, and clears its values`()
    async throws
  {
    let desk = SignInDesk()
    let (cache, url) = (cache(desk.transport), try url())
    #expect(try await cache.request(url) == "a1")
    desk.reject("a1")
    var request = URLRequest(url: url)
    request.httpMethod = "DELETE"
    #expect(try await cache.request(request) == "a2")
    #expect(cache.cachedValue(URLRequest(url: url)) == nil)
    #expect(desk.sent == ["a1", "a1", "a2"])
  }
}

/// A transport that is in the way.
private struct Hiding: HTTPTransport {
  let base: any HTTPTransport
  var accounts: HTTPAccounts?

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    try await base.send(request, to: receiver)
  }
}
