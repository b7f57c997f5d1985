public import Foundation
public import Plexus

/// An answer whose status says that it is not what was requested.
///
/// ## Topics
///
/// ### Reading
/// - ``status``
/// - ``url``
/// - ``headers``
/// - ``body``
///
/// ### Deciding what follows
/// - ``retryAfter``
/// - ``isOriginFailure``
/// - ``allowsStaleValue``
///
/// ### Creating an error
/// - ``init(status:url:headers:body:retryAfter:allowsStaleValue:)``
public struct HTTPStatusError: Error, RetryAdvice, OriginFailure, Hashable {
  /// The status code.
  public let status: Int

  /// The URL that has answered, after all redirects; `nil` if it is not known.
  public let url: URL?

  /// The header fields.
  public let headers: HTTPHeaders

  /// The beginning of the body: at most 16 KB, and less if the body breaks off or is larger or slower than the
  /// ``HTTPRules`` allow.
  public let body: Data

  /// The time to wait before the next attempt (Retry-After); `nil` if the server names none.
  public let retryAfter: Duration?

  /// Whether the server allows the use of the cached value after this error (stale-if-error).
  ///
  /// A multiplexer has that in its directives. `CachePolicy.http` uses it for values from a cacher that stores
  /// validators and no directives.
  public let allowsStaleValue: Bool

  /// The time for which the answer is fresh according to the server; `nil` if it does not say.
  package let lifetime: Duration?

  /// Creates an error, for instance in a transport of your own.
  ///
  /// - Parameters:
  ///   - status: The status code.
  ///   - url: The URL that has answered.
  ///   - headers: The header fields.
  ///   - body: The beginning of the body.
  ///   - retryAfter: The time to wait before the next attempt.
  ///   - allowsStaleValue: Whether the cached value can be used.
  public init(
    status: Int,
    url: URL? = nil,
    headers: HTTPHeaders = [:],
    body: Data = Data(),
    retryAfter: Duration? = nil,
    allowsStaleValue: Bool = false
  ) {
    self.init(
      status: status,
      url: url,
      headers: headers,
      body: body,
      retryAfter: retryAfter,
      allowsStaleValue: allowsStaleValue,
      lifetime: nil
    )
  }

  init(
    status: Int,
    url: URL?,
    headers: HTTPHeaders,
    body: Data,
    retryAfter: Duration?,
    allowsStaleValue: Bool,
    lifetime: Duration?
  ) {
    self.status = status
    self.url = url
    self.headers = headers
    self.body = body
    self.retryAfter = retryAfter
    self.allowsStaleValue = allowsStaleValue
    self.lifetime = lifetime
  }
}

/// An error with a lifetime (Cache-Control, Expires) is remembered for that long.
extension HTTPStatusError: LastingFailure {}

extension HTTPStatusError {
  /// Whether the server has failed (5xx), so that a value can be used for which the server allows that.
  ///
  /// Any other status is an answer: a value that was removed or is now forbidden does not come back from a
  /// cache.
  public var isOriginFailure: Bool { status >= 500 }
}

extension HTTPStatusError: CustomStringConvertible {
  /// A sentence that names the status, and the URL without its query, which can be secret.
  public var description: String {
    "\(url?.withoutSecrets ?? "The server") answered with status \(status)."
  }
}

extension URL {
  /// The URL as text for logs: without query, user and password.
  var withoutSecrets: String? {
    var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
    components?.query = nil
    components?.user = nil
    components?.password = nil
    return components?.string
  }
}
