/// The limits of an origin.
public struct OriginLimits: Hashable, Sendable {
  /// The maximum size of the request line and the header fields, in bytes.
  ///
  /// A larger head is answered with 431, or with 414 if the request line alone exceeds the limit.
  public var headBytes: Int

  /// The maximum size of a request body, in bytes.
  ///
  /// A larger body is answered with 413.
  public var bodyBytes: Int

  /// The maximum number of simultaneous connections.
  ///
  /// Further connections wait until one is closed, or are refused: see ``refusesConnections``.
  public var connections: Int

  /// Whether connections beyond the limit are refused.
  ///
  /// The connection that has waited longest for a complete request is closed in favor of a new one.
  public var refusesConnections = false

  /// The maximum time from the beginning of a connection, or from the previous response, to a complete request, and in which
  /// a client reads a response that is no stream; `nil` for no limit.
  ///
  /// The connection is then closed.
  public var requestTimeout: Duration?

  /// Whether the origin counts the requests for each path, in a table that grows with every path.
  public var countsRequests = true

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - headBytes: The maximum size of the request line and the header fields.
  ///   - bodyBytes: The maximum size of a request body.
  ///   - connections: The maximum number of simultaneous connections.
  /// - Precondition: The size of the body is not negative, and the others are positive.
  public init(headBytes: Int = 16_384, bodyBytes: Int = 16_777_216, connections: Int = 4_096) {
    precondition(headBytes > 0, "The maximum size of a request head must be positive")
    precondition(bodyBytes >= 0, "The maximum size of a request body must not be negative")
    precondition(connections > 0, "The maximum number of connections must be positive")
    self.headBytes = headBytes
    self.bodyBytes = bodyBytes
    self.connections = connections
  }
}
