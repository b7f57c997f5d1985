/// A fault in the exchange between an origin and its client.
///
/// Byte counts begin with the first byte of the body. An immediate fault occurs before the first byte of the
/// response, and the handler of the request is not called.
public enum OriginFault: Hashable, Sendable {
  /// Responds immediately with a status between 200 and 599.
  case status(Int)

  /// Resets the connection, immediately or after a number of bytes.
  ///
  /// The client may receive the reset before data that was sent earlier.
  case reset(afterBytes: Int? = nil)

  /// Stops sending, immediately or after a number of bytes, and keeps the connection open until the client closes it
  /// or the origin stops or goes offline.
  case stall(afterBytes: Int? = nil)

  /// Closes the connection gracefully after a number of bytes of the body.
  case truncation(afterBytes: Int)

  /// Sends the whole body with this `Content-Length` and then closes the connection.
  case wrongContentLength(Int)

  /// Sends the body in pieces of this size, with a pause before each.
  case drip(bytes: Int, every: Duration)

  /// Sends these bytes in place of a response and then closes the connection: all at once, or in pieces of a size
  /// with a pause before each.
  case raw([UInt8], bytesAtOnce: Int? = nil, every: Duration = .zero)

  /// Whether the fault occurs before the handler is called.
  var isImmediate: Bool {
    switch self {
    case .status, .reset(nil), .stall(nil), .raw: true
    case .reset, .stall, .truncation, .wrongContentLength, .drip: false
    }
  }
}
