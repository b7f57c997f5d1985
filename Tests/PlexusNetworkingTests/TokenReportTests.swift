import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The order of the report that the user has to sign in, of failing requests, and of sign-ins.
@Suite(.fewAtOnce) struct `The report of a sign-out, with tokens` {
  private let events = Log<String>()
  private let refresh = Gate()

  /// A token whose fetches fail from the second one on, once the gate is open.
  private func token(_ error: any Error = NotSignedIn()) -> Multiplexer<TestToken> {
    let (refresh, count) = (refresh, Guarded(0))
    return Multiplexer<TestToken> {
      let number = count.withLock { count in
        count += 1
        return count
      }
      guard number > 1 else { return TestToken(account: "a", number: 1) }
      try await refresh.wait()
      throw error
    }
  }

  private func transport(
    _ token: Multiplexer<TestToken>,
    rejecting: String = "a1",
    onSignedOut: @escaping @Sendable () -> Void
  ) -> TokenTransport<TestToken> {
    TokenTransport(
      base: ClosureTransport { _, request, receiver in
        let status = request.authorization == rejecting ? 401 : 200
        try receiver.take(request, status: status, request.authorization)
      },
      origin: URL(string: "https://api.example") ?? URL(filePath: "/"),
      token: token,
      account: { $0.account },
      authorize: { request, token in
        request.setValue(token.text, forHTTPHeaderField: "Authorization")
      },
      onSignedOut: { _ in onSignedOut() }
    )
  }

  /// - Parameter executor: The executor of the request, if it can block in the closure.
  private func get(
    _ transport: TokenTransport<TestToken>,
    on executor: (any TaskExecutor)? = nil
  ) -> Task<String, any Error> {
    Task(executorPreference: executor) {
      do {
        return try await SignInDesk.get("https://api.example/", by: transport)
      } catch {
        events.append("failed")
        throw error
      }
    }
  }

  @Test(.guarantee(.signOutIsReportedOnce))
  func `no request fails before the end of the account has been reported`() async throws {
    let (began, closure) = (Gate(), DispatchSemaphore(value: 0))
    began.open()
    let token = token()
    let transport = transport(token) {
      Task { try await began.wait() }
      closure.wait()
      events.append("reported")
    }
    let first = get(transport, on: TestThreads(1))
    await refresh.arrivals(1)
    refresh.open()
    await began.arrivals(1)
    // The first request is in the closure; this one fetches the token, too, and fails.
    let second = get(transport)
    await refresh.arrivals(2)
    // Without the wait, it would have failed by then.
    for _ in 0..<20 { _ = try? await token.refresh().request() }
    closure.signal()
    for request in [first, second] { _ = await request.result }
    #expect(events.entries == ["reported", "failed", "failed"])
  }

  @Test func `a failed fetch does not report the end of an account that has signed in since`()
    async throws
  {
    let user = User(TestToken(account: "a", number: 2))
    let token = token(user.failure)
    user.use(token)
    let transport = transport(token) { events.append("reported") }
    let request = get(transport)
    await refresh.arrivals(1)
    refresh.open()
    _ = await request.result
    #expect(token.cachedValue?.text == "a2")
    #expect(!events.entries.contains("reported"), "It would sign out the new account")
    let next = get(transport)
    #expect(try await next.value == "a2")
  }

  @Test func `a first fetch that fails does not report the end of an account that has signed in`()
    async throws
  {
    let user = User(TestToken(account: "a", number: 2))
    let token = Multiplexer<TestToken> { throw user.failure }
    user.use(token)
    let transport = transport(token) { events.append("reported") }
    _ = await get(transport).result
    #expect(events.entries == ["failed"])
    #expect(try await get(transport).value == "a2")
  }

  @Test func `the end of the account that has signed in since is reported when it ends`()
    async throws
  {
    let user = User(TestToken(account: "b", number: 1))
    let token = token(user.failure)
    user.use(token)
    let transport = transport(token) { events.append("reported") }
    refresh.open()
    _ = await get(transport).result
    try await token.clear()
    _ = await get(transport).result
    #expect(events.entries == ["failed", "reported", "failed"])
  }

  @Test func `a request that is rejected during the report waits for it`() async throws {
    let (began, closure, rejection) = (Gate(), DispatchSemaphore(value: 0), Gate())
    began.open()
    let token = token()
    let transport = TokenTransport<TestToken>(
      base: ClosureTransport { count, request, receiver in
        if count == 1 { try await rejection.wait() }
        try receiver.take(request, status: 401, "")
      },
      origin: try #require(URL(string: "https://api.example")),
      token: token,
      account: { $0.account },
      authorize: { _, _ in },
      onSignedOut: { _ in
        Task { try await began.wait() }
        closure.wait()
        events.append("reported")
      }
    )
    let late = get(transport)
    await rejection.arrivals(1)
    let first = get(transport, on: TestThreads(1))
    await refresh.arrivals(1)
    refresh.open()
    await began.arrivals(1)
    rejection.open()
    // Its turn has failed already: it fetches nothing, and the report has not ended.
    for _ in 0..<20 { _ = try? await token.refresh().request() }
    closure.signal()
    for request in [late, first] { _ = await request.result }
    #expect(events.entries == ["reported", "failed", "failed"])
  }
}

/// A user who signs in once, after a fetch of the token has failed and before the transport reports that.
private final class User: Sendable {
  private struct Failure: OriginFailure {
    let user: User

    /// The transport judges the error when the fetch has ended.
    var isOriginFailure: Bool {
      user.signIn()
      return false
    }
  }

  private let new: TestToken
  private let token = Guarded<Multiplexer<TestToken>?>(nil)

  init(_ new: TestToken) { self.new = new }

  var failure: any Error { Failure(user: self) }

  func use(_ token: Multiplexer<TestToken>) {
    self.token.withLock { $0 = token }
  }

  private func signIn() {
    guard let token = token.withLock({ $0 }), case .failed = token.current else { return }
    self.token.withLock { $0 = nil }
    token.store(new)
  }
}
