/// The user and the password of a connection.
///
/// Descriptions do not show the password.
///
/// ## Topics
///
/// ### Creating credentials
/// - ``init(user:password:expires:)``
///
/// ### Reading credentials
/// - ``user``
/// - ``password``
/// - ``expires``
public struct RedisCredentials: Hashable, Sendable {
  /// The name of the user; `nil` for the default user.
  public var user: String?
  /// The password or the token.
  public var password: String
  /// The time from which the server refuses the password; `nil` for never.
  ///
  /// The engine asks for new credentials when four fifths of the remaining time are over, and sends them on the existing
  /// connections.
  public var expires: ContinuousClock.Instant?

  /// Creates credentials.
  ///
  /// - Parameters:
  ///   - user: The name of the user; `nil` for the default user.
  ///   - password: The password or the token.
  ///   - expires: The time from which the server refuses the password; `nil` for never.
  public init(user: String? = nil, password: String, expires: ContinuousClock.Instant? = nil) {
    self.user = user
    self.password = password
    self.expires = expires
  }
}

extension RedisCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  /// The name of the user.
  public var description: String { "credentials of the user \(user ?? "default")" }

  /// The name of the user.
  public var debugDescription: String { description }

  /// The properties without the password.
  public var customMirror: Mirror {
    Mirror(self, children: ["user": user as Any, "expires": expires as Any])
  }
}
