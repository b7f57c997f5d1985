internal import Foundation

/// The request line and the header fields of a request.
struct RequestHead {
  /// An error for a refused head.
  struct Refusal: Error {
    /// The status of the response.
    let status: Int

    static let malformed = Refusal(status: 400)
  }

  let method: OriginRequest.Method
  let headers: OriginHeaders
  let bodyLength: Int
  /// Whether the connection can be used for another request.
  let keepsAlive: Bool
  /// Whether the client waits for `100 Continue` before it sends the body.
  let expectsContinue: Bool

  private let understandsChunks: Bool
  private let target: String
  private let path: String
  private let pathComponents: [String]
  private let queryItems: [OriginRequest.QueryItem]

  /// Parses a head.
  ///
  /// - Parameters:
  ///   - bytes: The request line, the header fields and the empty line.
  ///   - bodyLimit: The maximum size of the body.
  /// - Throws: A refusal with the status of the response.
  init(_ bytes: ArraySlice<UInt8>, bodyLimit: Int) throws(Refusal) {
    var lines = bytes.split(separator: .lineFeed, omittingEmptySubsequences: false).map { line in
      line.last == .carriageReturn ? line.dropLast() : line
    }[...]
    let requestLine = lines.removeFirst().split(separator: .space, omittingEmptySubsequences: false)
    guard requestLine.count == 3, requestLine[0].allSatisfy(\.isTokenCharacter),
      !requestLine[0].isEmpty, let target = String(validating: requestLine[1], as: UTF8.self)
    else { throw .malformed }
    let isLatest = try Self.isLatest(version: requestLine[2])

    var headers = OriginHeaders()
    for line in lines where !line.isEmpty {
      let (name, value) = try Self.field(line)
      headers.add(name, value)
    }
    let hosts = headers.values(of: "Host").count
    guard hosts == 1 || (hosts == 0 && !isLatest) else { throw .malformed }

    let name = String(decoding: requestLine[0], as: UTF8.self)
    guard let method = OriginRequest.Method(rawValue: name) else { throw Refusal(status: 501) }
    self.method = method
    self.headers = headers
    self.target = target
    understandsChunks = isLatest
    (path, pathComponents, queryItems) = try Self.parts(of: target)
    bodyLength = try Self.bodyLength(headers, limit: bodyLimit)

    let options = (headers["Connection"] ?? "").lowercased()
      .split { $0 == "," || $0 == " " || $0 == "\t" }
    keepsAlive = isLatest ? !options.contains("close") : options.contains("keep-alive")
    switch headers["Expect"]?.lowercased() {
    case nil: expectsContinue = false
    case "100-continue": expectsContinue = isLatest
    default: throw Refusal(status: 417)
    }
  }

  /// Returns the request with its body.
  func request(body: [UInt8]) -> OriginRequest {
    OriginRequest(
      method: method,
      target: target,
      path: path,
      pathComponents: pathComponents,
      queryItems: queryItems,
      headers: headers,
      body: body,
      understandsChunks: understandsChunks
    )
  }

  /// Returns whether the version is HTTP/1.1 or a later 1.x, and not HTTP/1.0.
  private static func isLatest(version: ArraySlice<UInt8>) throws(Refusal) -> Bool {
    let text = String(decoding: version, as: UTF8.self)
    guard version.count == 8, text.hasPrefix("HTTP/"), version.dropFirst(6).first == 0x2E,
      let major = Int(text.dropFirst(5).prefix(1)), let minor = Int(text.suffix(1))
    else { throw .malformed }
    guard major == 1 else { throw Refusal(status: 505) }
    return minor > 0
  }

  private static func field(
    _ line: ArraySlice<UInt8>
  ) throws(Refusal) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .malformed }
    let name = line[..<colon]
    // A name with a space, or a line that begins with one, must be rejected, not repaired.
    guard !name.isEmpty, name.allSatisfy(\.isTokenCharacter) else { throw .malformed }
    let isBlank = { (byte: UInt8) in byte == .space || byte == UInt8(ascii: "\t") }
    var value = line[(colon + 1)...].drop(while: isBlank)
    while let last = value.last, isBlank(last) { value.removeLast() }
    guard value.allSatisfy(\.isFieldCharacter) else { throw .malformed }
    return (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
  }

  private static func parts(
    of target: String
  ) throws(Refusal) -> (path: String, components: [String], query: [OriginRequest.QueryItem]) {
    var rest = target[...]
    if rest == "*" { return ("*", [], []) }
    // A client that treats the origin as a proxy sends the whole URL.
    if !rest.hasPrefix("/") {
      guard rest.lowercased().hasPrefix("http://") else { throw .malformed }
      rest = rest.dropFirst(7).drop { $0 != "/" && $0 != "?" }
      if !rest.hasPrefix("/") { rest = "/" + rest }
    }
    rest = rest.prefix { $0 != "#" }
    let encodedPath = rest.prefix { $0 != "?" }
    guard let path = encodedPath.removingPercentEncoding else { throw .malformed }
    var components: [String] = []
    for component in encodedPath.split(separator: "/") {
      guard let component = component.removingPercentEncoding else { throw .malformed }
      components.append(component)
    }
    var items: [OriginRequest.QueryItem] = []
    for item in rest.dropFirst(encodedPath.count + 1).split(separator: "&") {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = parts[0].removingPercentEncoding else { throw .malformed }
      var value: String?
      if parts.count == 2 {
        guard let decoded = parts[1].removingPercentEncoding else { throw .malformed }
        value = decoded
      }
      items.append(OriginRequest.QueryItem(name: name, value: value))
    }
    return (path, components, items)
  }

  private static func bodyLength(_ headers: OriginHeaders, limit: Int) throws(Refusal) -> Int {
    if headers["Transfer-Encoding"] != nil { throw Refusal(status: 501) }
    let lengths = Set(headers.values(of: "Content-Length"))
    guard let text = lengths.first else { return 0 }
    guard lengths.count == 1, !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { throw .malformed }
    // A number that overflows also exceeds the limit.
    guard let length = Int(text), length <= limit else { throw Refusal(status: 413) }
    return length
  }
}
