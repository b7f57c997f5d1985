public import Foundation
internal import PlexusSupport

/// The cookies of one user, in memory (RFC 6265).
///
/// Give it to the ``HTTPRules`` of all requests of that user, and to no others. ``removeAll()`` forgets the
/// cookies, for instance at sign-out.
///
/// A request reads the jar once, when it is made: its retries and redirects are sent with the same cookies, and the
/// cookies that its own answers set. If the jar has other cookies for the URL by then, since another account has signed in,
/// the answer sets none in the jar.
///
/// A cookie is sent to the host that has set it, and to the hosts below its `Domain`, which must contain a dot
/// and that host. A domain under which anyone can register, such as `co.uk`, is not recognized. A cookie that is
/// `Secure` is set and sent over https only; an answer over http cannot set one of the same name at its path or below.
/// Session cookies are kept until the jar is released.
public final class HTTPCookieJar: Sendable {
  /// The cookies at one moment.
  struct Snapshot: Sendable {
    var state: HTTPCookieState
    /// The number of times that the jar has been emptied.
    let era: Int
    /// The moment, in seconds since 1970-01-01T00:00Z.
    let now: Double
  }

  private let state = Locked((cookies: HTTPCookieState(), era: 0))
  private let now: @Sendable () -> Date

  /// Creates a jar without cookies.
  ///
  /// - Parameter now: A closure that returns the time of day, for cookies that expire.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
  }

  /// Removes all cookies.
  ///
  /// They are no longer sent: a request that waits for its next attempt, or is redirected, fails with
  /// ``HTTPRequestError/cookiesRemoved`` if it had any. An answer that is on its way sets none.
  public func removeAll() {
    state.withLock { $0 = (HTTPCookieState(), $0.era + 1) }
  }

  /// The number of cookies, including cookies that have expired since the last request.
  public var count: Int { state.withLock { $0.cookies.cookies.count } }

  /// Returns the present cookies.
  func snapshot() -> Snapshot {
    let now = now().timeIntervalSince1970
    return state.withLock { state in
      state.cookies.removeExpired(now: now)
      return Snapshot(state: state.cookies, era: state.era, now: now)
    }
  }

  /// Takes the `Set-Cookie` fields of an answer, joined by commas.
  ///
  /// - Parameters:
  ///   - fields: The fields.
  ///   - url: The URL that has answered.
  ///   - era: The times that the jar had been emptied when the request was made; `nil` to keep nothing.
  /// - Returns: The present time.
  @discardableResult
  func store(_ fields: String, from url: URL, era: Int?) -> Double {
    let now = now().timeIntervalSince1970
    state.withLock { state in
      if state.era == era { state.cookies.store(fields, from: url, now: now) }
    }
    return now
  }
}

extension HTTPCookieJar.Snapshot {
  /// Returns the value of the `Cookie` field for a URL.
  func header(for url: URL) -> String? {
    HTTPCookieState.Place(url).flatMap { state.value(for: $0, now: now) }
  }

  /// Returns the cookies for an origin with their paths, as text that only compares.
  func all(for origin: URL) -> String? {
    HTTPCookieState.Place(origin).flatMap { state.all(for: $0, now: now) }
  }
}

extension HTTPCookieState {
  /// Takes `Set-Cookie` fields that are joined by commas.
  mutating func store(_ fields: String, from url: URL, now: Double) {
    guard let place = Place(url) else { return }
    for field in Self.fields(fields) { store(field, from: place, now: now) }
  }
}

extension HTTPCookieState.Place {
  init?(_ url: URL) {
    guard let host = url.host(percentEncoded: true)?.lowercased() else { return nil }
    let path = url.path(percentEncoded: true)
    self.init(host: host, path: path.isEmpty ? "/" : path, isSecure: url.isSecure)
  }
}
