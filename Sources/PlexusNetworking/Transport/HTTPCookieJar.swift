public import Foundation
internal import PlexusSupport

/// The cookies of one user, in memory (RFC 6265).
///
/// Give it to the ``HTTPRules`` of all requests of that user, and to no others. ``removeAll()`` forgets the
/// cookies, for instance at sign-out.
///
/// A cookie is sent to the host that has set it, and to the hosts below its `Domain`, which must contain a dot
/// and that host. A domain under which anyone can register, such as `co.uk`, is not recognized. A cookie that is
/// `Secure` is set and sent over https only; an answer over http cannot set one of the same name at its path or below.
/// Session cookies are kept until the jar is released.
public final class HTTPCookieJar: Sendable {
  private let state = Locked(HTTPCookieState())
  private let now: @Sendable () -> Date

  /// Creates a jar without cookies.
  ///
  /// - Parameter now: A closure that returns the time of day, for cookies that expire.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
  }

  /// Removes all cookies.
  ///
  /// An answer that arrives later can set new ones.
  public func removeAll() {
    state.withLock { $0 = HTTPCookieState() }
  }

  /// The number of cookies, including cookies that have expired since the last request.
  public var count: Int { state.withLock { $0.cookies.count } }

  /// Returns the value of the `Cookie` field for a URL.
  func header(for url: URL) -> String? {
    let now = now().timeIntervalSince1970
    guard let place = HTTPCookieState.Place(url) else { return nil }
    return state.withLock { $0.header(for: place, now: now) }
  }

  /// Takes the `Set-Cookie` fields of an answer, joined by commas.
  func store(_ fields: String, from url: URL) {
    let now = now().timeIntervalSince1970
    guard let place = HTTPCookieState.Place(url) else { return }
    state.withLock { state in
      for field in HTTPCookieState.fields(fields) { state.store(field, from: place, now: now) }
    }
  }
}

extension HTTPCookieState.Place {
  init?(_ url: URL) {
    guard let host = url.host(percentEncoded: true)?.lowercased() else { return nil }
    let path = url.path(percentEncoded: true)
    self.init(host: host, path: path.isEmpty ? "/" : path, isSecure: url.isSecure)
  }
}
