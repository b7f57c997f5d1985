internal import Foundation
internal import PlexusSupport

/// The credentials that a client adds to a request: the header fields of its transport and the cookies of its jar,
/// as they are at one moment.
///
/// All attempts of a request and all hops of its redirects have the same, so that an answer belongs to one account,
/// whatever happens to the jar meanwhile. Only cookies that the answers themselves set are added. A transport can add
/// tokens, which can change meanwhile as long as their account is the same.
final class HTTPCredentials: Sendable {
  /// The credentials of the request that the current task sends.
  @TaskLocal static var sending: HTTPCredentials?

  /// The header fields of the transport.
  let headers: [String: String]
  /// The names of header fields that are credentials, in lower case: each account has its own answers.
  let names: Set<String>

  private let jar: HTTPCookieJar?
  /// The cookies at that moment; `nil` without a jar.
  private let start: HTTPCookieJar.Snapshot?
  /// The same with what the answers have set.
  private let own: Locked<HTTPCookieState>
  private let bound = Locked<[String: String]>([:])

  /// Reads the credentials.
  ///
  /// - Parameters:
  ///   - headers: The header fields of the transport.
  ///   - rules: The rules that name credentials and have the jar.
  init(headers: [String: String], rules: HTTPRules) {
    self.headers = headers
    names = Set((rules.redirects.credentials + headers.keys).map { $0.lowercased() })
    jar = rules.cookies
    start = rules.cookies?.snapshot()
    own = Locked(start?.state ?? HTTPCookieState())
  }

  /// Returns the cookies for a URL at the start, as the value of a `Cookie` field.
  func cookies(for url: URL) -> String? { start?.header(for: url) }

  /// Whether there is a jar.
  var haveCookies: Bool { jar != nil }

  /// Returns all cookies for an origin at the start, for whatever path, or those of the whole jar.
  ///
  /// - Parameter origin: The origin; ``HTTPCacheState/anyOrigin`` for the whole jar.
  /// - Returns: The cookies as text; `nil` if there are none.
  func cookies(ofOrigin origin: String) -> String? {
    guard origin != HTTPCacheState<URL, HTTPCacheKey>.anyOrigin else {
      return start.map { HTTPCookieState.text(of: $0.state.cookies) }
    }
    return URL(string: origin).flatMap { start?.all(for: $0) }
  }

  /// The accounts of tokens that the request is made, or has been sent, with: by the origins that they are for.
  var accounts: [String: String] { bound.withLock { $0 } }

  /// Binds the request to the account of a token for an origin.
  ///
  /// - Throws: ``HTTPRequestError/accountChanged`` if it is bound to another one.
  func bind(_ account: String, for origin: String) throws {
    let present = bound.withLock { bound -> String in
      if let present = bound[origin] { return present }
      bound[origin] = account
      return account
    }
    guard present == account else { throw HTTPRequestError.accountChanged }
  }

  /// The cookies that a request is sent with.
  struct Sent {
    let header: String?
    /// Whether they are those of the start: no answer has changed them.
    let areOriginal: Bool
    /// Whether the jar has the same, so that the answer can set others in it.
    let areCurrent: Bool

    /// None of the jar: the request has cookies of its own.
    static let own = Sent(header: nil, areOriginal: true, areCurrent: true)
  }

  /// Returns the cookies to send to a URL.
  ///
  /// - Throws: ``HTTPRequestError/cookiesRemoved`` if the jar has been emptied since.
  func cookiesToSend(to url: URL) throws -> Sent {
    guard let jar, let start else { return .own }
    let present = jar.snapshot()
    var changed = present
    changed.state = own.withLock { $0 }
    let header = changed.header(for: url)
    let isSameEra = present.era == start.era
    // The user of the cookies has signed out: they are no longer sent.
    guard isSameEra || header == nil else { throw HTTPRequestError.cookiesRemoved }
    return Sent(
      header: header,
      areOriginal: header == start.header(for: url),
      areCurrent: isSameEra && header == present.header(for: url)
    )
  }

  /// Takes the `Set-Cookie` fields of an answer, joined by commas.
  ///
  /// - Parameters:
  ///   - fields: The fields.
  ///   - url: The URL that has answered.
  ///   - sent: The cookies of the request. An answer to the cookies of another account sets none for this one.
  func store(_ fields: String, from url: URL, sent: Sent) {
    guard let jar, let start else { return }
    let now = jar.store(fields, from: url, era: sent.areCurrent ? start.era : nil)
    own.withLock { $0.store(fields, from: url, now: now) }
  }
}
