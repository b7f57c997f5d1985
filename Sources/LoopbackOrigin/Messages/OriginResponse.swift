/// What an origin answers to a request.
///
/// To a `GET` that is answered with status 200 the origin adds what HTTP expects of it: with an
/// ``etag`` it answers `If-None-Match` with 304, and it serves a `Range`, with or without
/// `If-Range`, with 206 or 416. The handler just returns the whole.
public struct OriginResponse: Hashable, Sendable {
  /// How the client knows where the body ends.
  public enum Framing: Hashable, Sendable {
    /// By its length, which is sent before it.
    case contentLength
    /// By chunks, so that it does not know the length before the end.
    case chunked
    /// By the end of the connection.
    case untilClose
  }

  /// The status code.
  public var status: Int

  /// The header fields, besides those that the origin adds: `Content-Length` or
  /// `Transfer-Encoding`, `Connection`, `Date`, `Accept-Ranges` and `Content-Range`.
  public var headers: OriginHeaders

  /// The body.
  public var body: [UInt8]

  /// How the client knows where the body ends.
  public var framing: Framing = .contentLength

  /// Whether the client may ask for a part.
  public var allowsRanges = true

  /// What goes wrong on the way, if anything.
  public var fault: OriginFault?

  /// Creates a response.
  ///
  /// - Parameters:
  ///   - status: The status code.
  ///   - headers: The header fields.
  ///   - body: The body.
  /// - Precondition: The status is between 200 and 599.
  public init(status: Int = 200, headers: OriginHeaders = [:], body: [UInt8] = []) {
    precondition(
      (200...599).contains(status),
      "A response has a status between 200 and 599, not \(status)"
    )
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Creates a response with text.
  ///
  /// - Parameters:
  ///   - text: The body, sent as UTF-8.
  ///   - status: The status code.
  ///   - contentType: The type of the body.
  /// - Precondition: The status is between 200 and 599.
  public init(
    text: String,
    status: Int = 200,
    contentType: String = "text/plain; charset=utf-8"
  ) {
    self.init(status: status, headers: ["Content-Type": contentType], body: Array(text.utf8))
  }

  /// Creates a response with JSON.
  ///
  /// - Parameters:
  ///   - json: The JSON text.
  ///   - status: The status code.
  /// - Precondition: The status is between 200 and 599.
  public init(json: String, status: Int = 200) {
    self.init(text: json, status: status, contentType: "application/json")
  }

  /// The version of the resource, with its quotation marks: `"7"`, or `W/"7"` for a weak one.
  public var etag: String? {
    get { headers["ETag"] }
    set { headers["ETag"] = newValue }
  }
}
