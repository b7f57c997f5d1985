/// Something that goes wrong between an origin and its client.
///
/// Numbers of bytes are counted from the first byte of the body. A fault that strikes "at once"
/// strikes before the first byte of the response, and the handler of the request is not called.
public enum OriginFault: Hashable, Sendable {
  /// The answer is this status instead, at once; it is between 200 and 599.
  case status(Int)

  /// The connection is reset: at once, or after so many bytes of the body.
  ///
  /// A reset may overtake what was sent before it.
  case reset(afterBytes: Int? = nil)

  /// Nothing more is sent and the connection stays open until the client closes it or the origin
  /// stops or goes offline: at once, or after so many bytes of the body.
  case stall(afterBytes: Int? = nil)

  /// The connection is closed in good order after so many bytes of the body, as if that were all.
  case truncation(afterBytes: Int)

  /// The whole body is sent with this `Content-Length`, and then the connection is closed.
  case wrongContentLength(Int)

  /// The body is sent so many bytes at a time, with a pause before each.
  case drip(bytes: Int, every: Duration)

  /// These bytes are sent instead of an answer, whatever they are, and then the connection is closed: all at
  /// once, or so many at a time with a pause before each.
  case raw([UInt8], bytesAtOnce: Int? = nil, every: Duration = .zero)

  /// Whether the fault strikes before the handler is called.
  var isImmediate: Bool {
    switch self {
    case .status, .reset(nil), .stall(nil), .raw: true
    case .reset, .stall, .truncation, .wrongContentLength, .drip: false
    }
  }
}
