import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A token of an account.
struct TestToken: Sendable, Equatable {
  var account: String
  var number: Int

  var text: String { "\(account)\(number)" }
}

/// A sign-in whose tokens are numbered, an origin that accepts some of them, and the transport between them.
final class SignInDesk: Sendable {
  struct State: Sendable {
    var account = "a"
    /// The number of fetches of a token.
    var fetchCount = 0
    /// The tokens that the origin rejects.
    var rejected: Set<String> = []
    /// The error of a fetch of a token.
    var failure: (any Error)?
  }

  let state = Guarded(State())
  /// The errors that `onSignedOut` was called with.
  let ended = Log<String>()
  let base: ClosureTransport
  let token: Multiplexer<TestToken>
  let transport: TokenTransport<TestToken>

  static let fresh = ["Cache-Control": "max-age=1000"]

  /// Creates a sign-in.
  ///
  /// - Parameters:
  ///   - policy: The policy of the token.
  ///   - waiting: A gate that each fetch of a token waits at, from the second one on.
  ///   - answer: What the origin does before it answers with the token, or 401.
  init(
    policy: CachePolicy = CachePolicy(),
    waiting gate: Gate? = nil,
    answer:
      @escaping @concurrent @Sendable (Int, URLRequest, any HTTPReceiver) async throws ->
      Bool = { _, _, _ in false }
  ) {
    let (state, ended) = (state, ended)
    let token = Multiplexer<TestToken>(policy: policy) {
      let (count, account) = state.withLock { state in
        state.fetchCount += 1
        return (state.fetchCount, state.account)
      }
      if count > 1 { try await gate?.wait() }
      if let failure = state.withLock({ $0.failure }) { throw failure }
      return TestToken(account: account, number: count)
    }
    base = ClosureTransport { count, request, receiver in
      if try await answer(count, request, receiver) { return }
      let text = request.authorization
      let isRejected = state.withLock { $0.rejected.contains(text) }
      try receiver.take(request, status: isRejected ? 401 : 200, headers: Self.fresh, text)
    }
    self.token = token
    transport = Self.transport(over: base, token: token, ended: ended)
  }

  /// Returns a transport that adds the text of a token as the value of `Authorization`.
  static func transport(
    over base: some HTTPTransport,
    origin: String = "https://api.example",
    token: Multiplexer<TestToken>,
    ended: Log<String> = Log(),
    isSent: @escaping @Sendable (inout URLRequest) throws -> Void = { _ in }
  ) -> TokenTransport<TestToken> {
    TokenTransport(
      base: base,
      origin: URL(string: origin) ?? URL(filePath: "/"),
      token: token,
      account: { $0.account },
      authorize: { request, token in
        request.setValue(token.text, forHTTPHeaderField: "Authorization")
        try isSent(&request)
      },
      onSignedOut: { ended.append("\($0)") }
    )
  }

  /// Returns the body at a URL.
  func get(_ url: String = "https://api.example/value") async throws -> String {
    try await Self.get(url, by: transport)
  }

  static func get(_ url: String, by transport: some HTTPTransport) async throws -> String {
    guard let url = URL(string: url) else { throw URLError(.badURL) }
    let fetcher = HTTPFetcher(url, transport: transport, rules: .patient) {
      String(decoding: $0, as: UTF8.self)
    }
    switch try await fetcher.fetch(FetchContext(previousValue: nil)) {
    case .value(let value, _, _), .confirmed(let value, _, _), .transient(let value): return value
    case .notModified: throw URLError(.badServerResponse)
    }
  }

  /// The origin rejects tokens from now on.
  func reject(_ tokens: String...) {
    state.withLock { $0.rejected.formUnion(tokens) }
  }

  /// The fetches of a token fail from now on.
  func fail(with error: (any Error)?) {
    state.withLock { $0.failure = error }
  }

  /// Another account signs in.
  func signIn(_ account: String, number: Int = 0) {
    state.withLock { $0.account = account }
    token.store(TestToken(account: account, number: number))
  }

  var fetchCount: Int { state.withLock { $0.fetchCount } }

  /// The tokens that requests were sent with, in order.
  var sent: [String] { base.requests.withLock { $0.map(\.authorization) } }
}

/// The failure of a sign-in that says nothing about the origin.
struct NotSignedIn: Error {}

extension URLRequest {
  /// The value of the field `Authorization`.
  var authorization: String { value(forHTTPHeaderField: "Authorization") ?? "" }
}
