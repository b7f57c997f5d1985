/// A response of an origin to a request.
///
/// Handlers return the full resource. For a `GET` response with status 200, the origin handles conditional
/// requests and ranges: it answers a matching `If-None-Match` with 304 if there is an ``etag``, and a `Range`, with
/// or without `If-Range`, with 206 or 416.
public struct OriginResponse: Hashable, Sendable {
  /// The method that marks the end of the body.
  public enum Framing: Hashable, Sendable {
    /// The length, which is sent before the body.
    case contentLength
    /// Chunked transfer coding, with a length that is not known in advance.
    case chunked
    /// The end of the connection.
    case untilClose
  }

  /// The status code.
  public var status: Int

  /// The header fields, except the fields that the origin adds: `Content-Length` or `Transfer-Encoding`,
  /// `Connection`, `Date`, `Accept-Ranges` and `Content-Range`.
  public var headers: OriginHeaders

  /// The body.
  public var body: [UInt8]

  /// The method that marks the end of the body.
  public var framing: Framing = .contentLength

  /// Whether the client can request a range.
  public var allowsRanges = true

  /// The body in place of ``body``, if it is written while the client reads it.
  public var stream: OriginStream?

  /// The fault in sending the response, if any.
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
      "The status of a response must be between 200 and 599, not \(status)"
    )
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Creates a text response.
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

  /// Creates a JSON response.
  ///
  /// - Parameters:
  ///   - json: The JSON text.
  ///   - status: The status code.
  /// - Precondition: The status is between 200 and 599.
  public init(json: String, status: Int = 200) {
    self.init(text: json, status: status, contentType: "application/json")
  }

  /// Creates a response whose body is written while the client reads it.
  ///
  /// - Parameters:
  ///   - stream: The body.
  ///   - contentType: The type of the body.
  public init(stream: OriginStream, contentType: String) {
    self.init(headers: ["Content-Type": contentType])
    self.stream = stream
    allowsRanges = false
    framing = .untilClose
  }

  /// The entity tag including its quotation marks: `"7"`, or `W/"7"` for a weak one.
  public var etag: String? {
    get { headers["ETag"] }
    set { headers["ETag"] = newValue }
  }
}
