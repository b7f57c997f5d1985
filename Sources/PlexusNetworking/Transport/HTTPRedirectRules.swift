/// The rules for redirects.
///
/// Only 301, 302, 303, 307 and 308 with a `Location` are followed, to http and https only. A `POST` becomes a
/// `GET` after 301, 302 and 303, other methods after 303 only.
public struct HTTPRedirectRules: Sendable, Hashable {
  /// The largest number of redirects of one request that are followed.
  ///
  /// One more fails with `URLError.httpTooManyRedirects`.
  public var limit: Int

  /// Whether credentials are sent to another origin: another scheme, host or port.
  ///
  /// Without it they are left out from the first redirect to another origin on, even if a later one leads
  /// back.
  public var sendsCredentialsToOtherOrigins: Bool

  /// Whether a redirect from https to http is followed.
  ///
  /// Without it, it fails with `URLError.appTransportSecurityRequiresSecureConnection`.
  public var allowsDowngrade: Bool

  /// The names of header fields that are credentials, besides those of the transport.
  public var credentials: [String]

  /// Creates rules.
  ///
  /// - Parameters:
  ///   - limit: The largest number of redirects of one request.
  ///   - sendsCredentialsToOtherOrigins: Whether credentials are sent to another origin.
  ///   - allowsDowngrade: Whether a redirect from https to http is followed.
  ///   - credentials: The names of header fields that are credentials.
  /// - Precondition: The limit is not negative.
  public init(
    limit: Int = 10,
    sendsCredentialsToOtherOrigins: Bool = false,
    allowsDowngrade: Bool = false,
    credentials: [String] = ["Authorization", "Cookie", "Proxy-Authorization"]
  ) {
    precondition(limit >= 0, "A limit of redirects cannot be negative")
    self.limit = limit
    self.sendsCredentialsToOtherOrigins = sendsCredentialsToOtherOrigins
    self.allowsDowngrade = allowsDowngrade
    self.credentials = credentials
  }
}
