/// How much an origin takes.
public struct OriginLimits: Hashable, Sendable {
  /// The largest request line with header fields, in bytes.
  ///
  /// A larger one is answered with 431, or with 414 if the request line alone is larger.
  public var headBytes: Int

  /// The largest body of a request, in bytes.
  ///
  /// A larger one is answered with 413.
  public var bodyBytes: Int

  /// The largest number of connections at once.
  ///
  /// More have to wait until one is closed.
  public var connections: Int

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - headBytes: The largest request line with header fields.
  ///   - bodyBytes: The largest body of a request.
  ///   - connections: The largest number of connections at once.
  /// - Precondition: All are positive; the body may be zero.
  public init(headBytes: Int = 16_384, bodyBytes: Int = 16_777_216, connections: Int = 4_096) {
    precondition(headBytes > 0, "The head of a request needs at least a byte")
    precondition(bodyBytes >= 0, "The body of a request has zero bytes or more")
    precondition(connections > 0, "An origin needs at least one connection")
    self.headBytes = headBytes
    self.bodyBytes = bodyBytes
    self.connections = connections
  }
}
