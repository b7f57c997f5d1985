/// An incremental parser that splits the bytes of a connection into requests.
///
/// Append bytes as they arrive and then take events until none is left. After ``Event/failure(status:)``, the
/// rest of the input cannot be parsed.
struct RequestParser {
  enum Event: Equatable {
    /// More bytes are needed.
    case needsMore
    /// The client waits for `100 Continue` before it sends the body.
    case expectsContinue
    /// A request is complete.
    case request(OriginRequest, keepsAlive: Bool)
    /// The request is invalid; respond with the status and close the connection.
    case failure(status: Int)
  }

  private let limits: OriginLimits
  private var buffer: [UInt8] = []
  /// The position at which the search for the end of the head continues.
  private var scanned = 0
  /// The head of the request whose body is incomplete.
  private var head: RequestHead?

  init(limits: OriginLimits) {
    self.limits = limits
  }

  /// The number of bytes that belong to no complete request yet.
  var bufferedCount: Int { buffer.count }

  /// Appends received bytes.
  mutating func append(_ bytes: [UInt8]) {
    buffer += bytes
  }

  /// Returns the next event.
  mutating func next() -> Event {
    if head == nil {
      guard let length = headLength() else {
        return buffer.count > limits.headBytes ? .failure(status: statusOfLargeHead) : .needsMore
      }
      guard length <= limits.headBytes else { return .failure(status: statusOfLargeHead) }
      do {
        let head = try RequestHead(buffer[..<length], bodyLimit: limits.bodyBytes)
        buffer.removeFirst(length)
        self.head = head
        scanned = 0
        if head.expectsContinue, buffer.count < head.bodyLength { return .expectsContinue }
      } catch {
        return .failure(status: error.status)
      }
    }
    guard let head, buffer.count >= head.bodyLength else { return .needsMore }
    self.head = nil
    let body = Array(buffer[..<head.bodyLength])
    buffer.removeFirst(head.bodyLength)
    return .request(head.request(body: body), keepsAlive: head.keepsAlive)
  }

  /// Returns the length of the head including the empty line, or `nil` if it is incomplete.
  private mutating func headLength() -> Int? {
    dropEmptyLines()
    while let lineFeed = buffer[scanned...].firstIndex(of: .lineFeed) {
      // The line begins at `scanned`, unless the previous piece ended within the line.
      let lineStart = buffer[..<lineFeed].lastIndex(of: .lineFeed).map { $0 + 1 } ?? 0
      scanned = lineFeed + 1
      let line = buffer[lineStart..<lineFeed]
      if line.isEmpty || line.elementsEqual([.carriageReturn]) { return scanned }
    }
    scanned = buffer.count
    return nil
  }

  /// Drops empty lines, which some clients send between two requests.
  private mutating func dropEmptyLines() {
    guard scanned == 0 else { return }
    let start = buffer.firstIndex { $0 != .lineFeed && $0 != .carriageReturn } ?? buffer.count
    buffer.removeFirst(start)
  }

  private var statusOfLargeHead: Int {
    buffer.prefix(limits.headBytes).contains(.lineFeed) ? 431 : 414
  }
}

extension UInt8 {
  static let lineFeed = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")
  static let space = UInt8(ascii: " ")
}
