public import Foundation
public import Plexus

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A transport that sends every request to one origin with a token, and renews the token when it is rejected.
///
/// The token is the value of a `Multiplexer`, whose fetch signs in or exchanges a refresh token. All fetchers, caches and
/// loaders of an account share the transport.
///
/// ```swift
/// import Foundation
/// import Plexus
/// import PlexusNetworking
///
/// struct Token: Sendable, Equatable {
///   var account: String
///   var text: String
/// }
///
/// func makeTransport(_ token: Multiplexer<Token>, signOut: @escaping @Sendable () -> Void) -> TokenTransport<Token> {
///   TokenTransport(
///     origin: URL(string: "https://api.example")!,
///     token: token,
///     account: { $0.account },
///     authorize: { request, token in
///       request.setValue("Bearer " + token.text, forHTTPHeaderField: "Authorization")
///     },
///     onSignedOut: { _ in signOut() }
///   )
/// }
/// ```
///
/// See <doc:signing-in-and-out> for an app with one place to sign in and out.
///
/// ## Which requests carry the token
///
/// Every request whose scheme, host and port are those of the origin, also one that a redirect leads to; case and default
/// ports do not count, nor do user and password of a URL. All other requests are passed on unchanged. A
/// request that is redirected to another origin is sent there without the token. A request waits for a token if there is
/// none in memory, and fails with the error of its fetch.
///
/// ## Rejected tokens
///
/// A 401 refreshes the token: once for all requests that were sent with it. Each of them is sent once more with the new
/// token, and its second answer counts, whatever its status. A request that was sent with the older token and is rejected
/// later is sent with the new one without another refresh. So is a request whose token has been replaced in the
/// multiplexer since, if `Token` is `Equatable`. Requests that begin in the meantime wait for the new token.
///
/// A request whose body is a stream cannot be sent twice. Its receiver gets the 401, and the next request refreshes the
/// token.
///
/// If the refresh fails, all requests that wait for it fail with its error, also if the policy of the multiplexer permits
/// the old token in its place. If it fails for good, so do requests that were sent before and are rejected later. The next
/// request refreshes again.
///
/// ## Signing out
///
/// `onSignedOut` is called when a fetch of the token fails for good, and not again until there has been a token again. No
/// request fails with that error before the closure has returned, so it must not wait for a request. It is not called if the
/// user has signed in since the fetch failed. An error status 400, 401 or 403 is such a failure, and so is an error
/// of your own. These are not: other error statuses, a `URLError`, a `DecodingError`, a `CancellationError`, a
/// `MultiplexerError`, an error that is a `ConnectivityFailure`, and one that is an `OriginFailure` because the origin has
/// failed.
///
/// Sign out by clearing the multiplexer, for instance by `MuxRepository.clearAll()`. A request that waits for a
/// token is not sent with one that was removed meanwhile. A request, with its retries and redirects, is sent for one
/// account: if the token is that of another one by then, it fails with ``HTTPRequestError/accountChanged``.
///
/// ## Caches
///
/// An ``HTTPCache`` above the transport keeps the answers of each account apart, by the account that was sent. Keys of a
/// multiplexer map of your own, and the cache keys of a ``MediaRequest``, must contain the account.
///
/// ## Cancellation
///
/// A cancelled request leaves the refresh to the others, also if it has begun it. When the last one leaves, the policy
/// of the multiplexer decides.
///
/// ## Release
///
/// The transport keeps the multiplexer, and its fetchers, caches and loaders keep the transport. The fetch of the token must
/// not be sent through it: it would wait for itself, and fails with `MultiplexerError.recursiveRequest`.
///
/// ## Topics
///
/// ### Creating a transport
/// - ``init(base:origin:token:account:authorize:onSignedOut:)``
///
/// ### Sending
/// - ``send(_:to:)``
/// - ``headers``
/// - ``accounts``
public final actor TokenTransport<Token: Sendable>: HTTPTransport {
  private nonisolated let base: any HTTPTransport
  private nonisolated let origin: String
  private nonisolated let token: Multiplexer<Token>
  private nonisolated let account: @Sendable (Token) -> String
  private nonisolated let authorize: @Sendable (inout URLRequest, Token) throws -> Void
  private nonisolated let onSignedOut: @Sendable (any Error) -> Void

  private var state = TokenState()
  /// The multiplexer after the last rejection, if no newer token has been obtained since.
  private var newer: Multiplexer<Token>?
  /// The final error of the last fetch, if no token has been obtained since.
  private var failure: (any Error)?
  /// The token that was in memory at the last report.
  private var remaining: Token?
  /// The number of calls of `onSignedOut` that have not returned, and the requests that wait for them.
  private var reportCount = 0
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - base: The transport that sends the requests.
  ///   - origin: A URL of the origin; only its scheme, host and port count.
  ///   - token: The token. Its fetch must keep what it returns: a token that is `.transient`, as the answer of an
  ///     ``HTTPFetcher`` with `no-store`, is not sent.
  ///   - account: A closure that returns the name of the account of a token. It is called for each request and must be quick.
  ///   - authorize: A closure that adds the token to a request. It can change everything but the origin. If it throws,
  ///     the request fails with its error.
  ///   - onSignedOut: A closure that is called with the error of the token's fetch when the user has to sign in. It is
  ///     called by the request that fails, on any thread.
  /// - Precondition: The origin is an http or https URL.
  public init(
    base: any HTTPTransport = URLSessionTransport.shared,
    origin: URL,
    token: Multiplexer<Token>,
    account: @escaping @Sendable (Token) -> String,
    authorize: @escaping @Sendable (inout URLRequest, Token) throws -> Void,
    onSignedOut: @escaping @Sendable (any Error) -> Void = { _ in }
  ) {
    precondition(origin.isHTTP, "The origin of a token must be an http or https URL")
    self.base = base
    self.origin = origin.origin
    self.token = token
    self.account = account
    self.authorize = authorize
    self.onSignedOut = onSignedOut
  }

  /// The header fields of the base transport.
  public nonisolated var headers: [String: String] { base.headers }

  /// The account of the token for its origin, and those of the base transport.
  public nonisolated var accounts: HTTPAccounts? {
    let below = base.accounts
    return HTTPAccounts(
      present: { url in
        guard self.covers(url) else { return below?.present(for: url) }
        return self.token.cachedValue.map(self.account)
      },
      find: { url in
        guard self.covers(url) else { return try await below?.account(for: url) }
        if let known = self.token.cachedValue { return self.account(known) }
        return self.account(try await self.pass().token)
      }
    )
  }

  /// Sends a request, with the token if it is one to the origin, and once more if that is rejected.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - receiver: The receiver of the answer.
  /// - Throws: The error of the base transport, of the receiver, of the token's fetch or of the closure that authorizes;
  ///   ``HTTPRequestError/accountChanged``, ``HTTPRequestError/signedOut`` or
  ///   ``HTTPRequestError/authorizedForOtherOrigin(_:)``; a `CancellationError` if the calling task is cancelled.
  @concurrent
  public nonisolated func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    guard let url = request.url, covers(url) else {
      return try await base.send(request, to: receiver)
    }
    let first = try await pass()
    let isRepeatable = request.httpBodyStream == nil
    let message = try authorized(request, by: first)
    let rejection = RejectionReceiver(receiver, holdsBack: isRepeatable)
    do {
      try await base.send(message, to: rejection)
    } catch {
      guard rejection.isRejected else { throw error }
      if !isRepeatable {
        try? await renew(first)
        throw error
      }
      // The rest of an answer that is not delivered does not matter.
      try Task.checkCancellation()
    }
    guard rejection.isRejected else { return }
    guard isRepeatable else {
      try? await renew(first)
      return
    }
    try await renew(first)
    let second = try await pass()
    guard account(second.token) == account(first.token) else {
      throw HTTPRequestError.accountChanged
    }
    try await base.send(authorized(request, by: second), to: receiver)
  }

  /// Whether a request to a URL carries the token.
  private nonisolated func covers(_ url: URL) -> Bool { url.isHTTP && url.origin == origin }

  // MARK: - Requests

  /// Returns a request with the token.
  private nonisolated func authorized(_ request: URLRequest, by pass: Pass) throws -> URLRequest {
    try HTTPCredentials.sending?.bind(account(pass.token), for: origin)
    var message = request
    try authorize(&message, pass.token)
    guard let url = message.url, covers(url) else {
      throw HTTPRequestError.authorizedForOtherOrigin(message.url)
    }
    return message
  }

  // MARK: - Tokens

  /// A token with the turn in which it is sent.
  private struct Pass: Sendable {
    let token: Token
    let turn: TokenState.Turn
  }

  /// Returns the token to send a request with.
  ///
  /// A sign-out while the token is fetched lets the fetch end for its callers. Its result is not in memory, so it is not
  /// used: the second fetch began after the sign-out.
  private nonisolated func pass() async throws -> Pass {
    for _ in 0..<2 {
      let (source, turn) = await present
      let before = token.cachedValue
      let response: Response<Token>
      do {
        response = try await source.response()
        if turn.needsNewer, let error = response.error { throw error }
      } catch {
        if Self.isFinal(error) { await end(turn, with: error, before: before) }
        throw error
      }
      if let token = token.cachedValue {
        await obtain(turn)
        return Pass(token: token, turn: turn)
      }
    }
    throw HTTPRequestError.signedOut
  }

  /// Lets the token of a request be renewed, unless it has been replaced since.
  ///
  /// - Throws: The final error of the fetch of a newer token, if that has ended since the request was sent.
  private nonisolated func renew(_ pass: Pass) async throws {
    if let known = token.cachedValue {
      let isSame = account(known) == account(pass.token)
      guard isSame, !Self.areDifferent(known, pass.token) else { return }
    }
    if let failure = await reject(pass.turn) {
      await reports()
      throw failure
    }
  }

  /// Reports the end of the account after the final error of a fetch, or waits until another request has done so.
  private nonisolated func end(
    _ turn: TokenState.Turn,
    with error: any Error,
    before: Token?
  ) async {
    guard await beginReport(turn, error, before) else { return await reports() }
    onSignedOut(error)
    await endReport()
  }

  private var present: (source: Multiplexer<Token>, turn: TokenState.Turn) {
    (newer ?? token, state.turn)
  }

  private func reject(_ turn: TokenState.Turn) -> (any Error)? {
    guard state.reject(turn) else { return token.hasFreshValue ? nil : failure }
    newer = token.refresh()
    return nil
  }

  private func obtain(_ turn: TokenState.Turn) {
    state.obtain(turn)
    // Without the rejection, the multiplexer can also use its stored copy and its soft timeout.
    if !state.turn.needsNewer { (newer, failure) = (nil, nil) }
  }

  private func beginReport(_ turn: TokenState.Turn, _ error: any Error, _ before: Token?) -> Bool {
    guard !hasSignedIn(since: before) else { return false }
    failure = error
    guard state.end(turn, hadToken: isNew(before)) else { return false }
    (reportCount, remaining) = (reportCount + 1, before ?? token.cachedValue)
    return true
  }

  /// Whether the token that was there before a failed fetch has come since the last report.
  private func isNew(_ before: Token?) -> Bool {
    guard let before else { return false }
    return remaining.map { Self.areDifferent($0, before) } ?? true
  }

  /// Whether a token has been stored since a fetch that has failed; the token before stays in memory.
  private func hasSignedIn(since before: Token?) -> Bool {
    if token.hasFreshValue { return true }
    guard let before, let present = token.cachedValue else { return false }
    return Self.areDifferent(present, before)
  }

  private func endReport() {
    reportCount -= 1
    guard reportCount == 0 else { return }
    for request in waiting { request.resume() }
    waiting = []
  }

  /// Returns when no call of `onSignedOut` is in progress.
  private func reports() async {
    guard reportCount > 0 else { return }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Whether two tokens are known to be different.
  private static func areDifferent(_ one: Token, _ other: Token) -> Bool {
    guard let one = one as? any Equatable else { return false }
    return !one.isEqual(to: other)
  }

  /// Whether there is no token after an error until the user signs in.
  private static func isFinal(_ error: any Error) -> Bool {
    switch error {
    case let error as HTTPStatusError: return [400, 401, 403].contains(error.status)
    case is URLError, is DecodingError, is CancellationError, is MultiplexerError,
      is HTTPRequestError, is HTTPRevalidationError:
      return false
    default:
      return (error as? any ConnectivityFailure)?.isConnectivityFailure != true
        && (error as? any OriginFailure)?.isOriginFailure != true
    }
  }
}

extension Equatable {
  /// Whether a value of any type is equal to this one.
  fileprivate func isEqual(to other: Any) -> Bool { (other as? Self) == self }
}
