/// The steps of sending a response.
struct Transmission: Equatable {
  /// The next step.
  enum Step: Equatable {
    case send(ArraySlice<UInt8>)
    case pause(Duration)
    case end(Ending)
  }

  /// The state of the connection after the last byte.
  enum Ending: Equatable {
    /// The connection waits for the next request.
    case keepAlive
    /// The connection is closed gracefully.
    case close
    /// The connection is reset.
    case reset
    /// The connection stays open, and nothing more is sent.
    case stall
    /// The connection sends what is written to the stream of the response.
    case stream
  }

  private var head: [UInt8]
  private var payload: ArraySlice<UInt8>
  private var pace: (bytes: Int, pause: Duration)?
  private var hasPaused = false
  private let ending: Ending

  /// Plans the response to a request.
  ///
  /// - Parameters:
  ///   - response: The response.
  ///   - request: The request, or `nil` if it was malformed.
  ///   - fault: The fault to apply, if any.
  ///   - keepsAlive: Whether the connection can be used for another request.
  ///   - date: The value of the `Date` field.
  init(
    _ response: OriginResponse,
    to request: OriginRequest?,
    fault: OriginFault?,
    keepsAlive: Bool,
    date: String
  ) {
    if case .raw(let bytes, let count, let pause) = fault {
      (head, payload, ending) = ([], bytes[...], .close)
      pace = count.map { (max(1, $0), pause) }
      return
    }
    var response = response
    if case .status(let status) = fault {
      response = .error(status)
    } else if let request {
      response = response.applyingConditions(of: request)
    }
    if response.framing == .chunked, request?.understandsChunks == false {
      response.framing = .untilClose
    }
    let hasBody =
      request?.method != .head && response.status != 204 && response.status != 304
    if response.status == 204 || response.status == 304 { response.framing = .contentLength }
    let body = hasBody ? response.body : []
    var ending: Ending = keepsAlive && response.framing != .untilClose ? .keepAlive : .close
    if response.stream != nil, hasBody { ending = .stream }
    var sent = body.count
    var declared = response.body.count
    switch fault {
    case nil, .status: break
    case .reset(let count): (ending, sent) = (.reset, count ?? 0)
    case .stall(let count): (ending, sent) = (.stall, count ?? 0)
    case .truncation(let count): (ending, sent) = (.close, count)
    case .wrongContentLength(let length): (ending, declared) = (.close, length)
    case .drip(let bytes, let pause): pace = (max(1, bytes), pause)
    case .raw: break
    }
    let isCut = sent < body.count
    let payload = body.prefix(max(0, sent))
    if fault?.isImmediate == true, ending != .keepAlive && ending != .close {
      (head, self.payload) = ([], [])
    } else {
      head = response.head(declaring: declared, closes: ending != .keepAlive, date: date)
      let isChunked = response.framing == .chunked && hasBody
      self.payload = isChunked ? chunked(payload, isComplete: !isCut) : payload
    }
    self.ending = ending
  }

  /// Returns the next step.
  mutating func next() -> Step {
    if !head.isEmpty {
      // Without pauses, the body is sent together with the head.
      if pace == nil {
        head += payload
        payload = []
      }
      defer { head = [] }
      return .send(head[...])
    }
    guard !payload.isEmpty else { return .end(ending) }
    guard let pace else {
      defer { payload = [] }
      return .send(payload)
    }
    hasPaused.toggle()
    if hasPaused { return .pause(pace.pause) }
    defer { payload = payload.dropFirst(pace.bytes) }
    return .send(payload.prefix(pace.bytes))
  }

  static func == (one: Transmission, other: Transmission) -> Bool {
    one.head == other.head && one.payload == other.payload && one.ending == other.ending
      && one.pace?.bytes == other.pace?.bytes && one.pace?.pause == other.pace?.pause
      && one.hasPaused == other.hasPaused
  }
}

extension OriginResponse {
  /// Returns a response that contains only its status as text.
  static func error(_ status: Int) -> OriginResponse {
    OriginResponse(text: "\(status) \(reason(of: status))\n", status: status)
  }

  /// Returns the status line and the header fields.
  fileprivate func head(declaring length: Int, closes: Bool, date: String) -> [UInt8] {
    var headers = headers
    headers["Date"] = date
    switch framing {
    case .contentLength:
      headers["Content-Length"] = status == 204 || status == 304 ? nil : "\(length)"
    case .chunked: headers["Transfer-Encoding"] = "chunked"
    case .untilClose: break
    }
    if allowsRanges, status == 200 || status == 206 { headers["Accept-Ranges"] = "bytes" }
    headers["Connection"] = closes ? "close" : "keep-alive"
    var text = "HTTP/1.1 \(status) \(reason(of: status))\r\n"
    for field in headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array("\(text)\r\n".utf8)
  }
}

/// Returns the body in chunks; the terminating chunk is omitted if the body is incomplete.
private func chunked(_ body: ArraySlice<UInt8>, isComplete: Bool) -> ArraySlice<UInt8> {
  var encoded: [UInt8] = []
  var rest = body
  while !rest.isEmpty {
    let chunk = rest.prefix(8_192)
    encoded += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Array("\r\n".utf8)
    rest = rest.dropFirst(chunk.count)
  }
  return (isComplete ? encoded + Array("0\r\n\r\n".utf8) : encoded)[...]
}

private func reason(of status: Int) -> String {
  switch status {
  case 200: "OK"
  case 201: "Created"
  case 202: "Accepted"
  case 204: "No Content"
  case 206: "Partial Content"
  case 301: "Moved Permanently"
  case 302: "Found"
  case 303: "See Other"
  case 304: "Not Modified"
  case 307: "Temporary Redirect"
  case 308: "Permanent Redirect"
  case 400: "Bad Request"
  case 401: "Unauthorized"
  case 403: "Forbidden"
  case 404: "Not Found"
  case 405: "Method Not Allowed"
  case 413: "Content Too Large"
  case 414: "URI Too Long"
  case 416: "Range Not Satisfiable"
  case 417: "Expectation Failed"
  case 429: "Too Many Requests"
  case 431: "Request Header Fields Too Large"
  case 500: "Internal Server Error"
  case 501: "Not Implemented"
  case 502: "Bad Gateway"
  case 503: "Service Unavailable"
  case 504: "Gateway Timeout"
  case 505: "HTTP Version Not Supported"
  default: "Status"
  }
}
