import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A client that sends exactly the given bytes.
///
/// Its calls block separate threads, for at most a minute each.
public final class RawClient: Sendable {
  public struct Failure: Error, Equatable, Sendable {
    public let code: Int32

    public static let refused = Failure(code: ECONNREFUSED)
    public static let reset = Failure(code: ECONNRESET)
  }

  /// A response as received.
  public struct Response: Equatable, Sendable {
    public var status: Int
    public var headers: [String: String]
    public var body: String
  }

  /// Bytes that have been read but not returned.
  private struct Unread {
    var bytes: [UInt8] = []

    mutating func take(_ count: Int) -> [UInt8] {
      defer { bytes.removeFirst(min(count, bytes.count)) }
      return Array(bytes.prefix(count))
    }
  }

  private let descriptor: Int32
  private let unread = Guarded(Unread())

  public init(port: UInt16) async throws {
    descriptor = Self.makeSocket()
    // Other tests start processes, which must not inherit the connection.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var patience = timeval(tv_sec: 240, tv_usec: 0)
    setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_RCVTIMEO,
      &patience,
      socklen_t(MemoryLayout<timeval>.size)
    )
    try await blocking { [descriptor] in
      let status = Self.withAddress(port) { connect(descriptor, $0, $1) }
      if status < 0 { throw Failure(code: errno) }
    }
  }

  deinit {
    close(descriptor)
  }

  /// Returns whether the port is free.
  public static func canBind(to port: UInt16) -> Bool {
    let descriptor = makeSocket()
    defer { close(descriptor) }
    return withAddress(port) { bind(descriptor, $0, $1) } == 0
  }

  private static func makeSocket() -> Int32 {
    #if canImport(Glibc)
    socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    socket(AF_INET, SOCK_STREAM, 0)
    #endif
  }

  private static func withAddress(
    _ port: UInt16,
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        body(pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// Sends a text.
  public func send(_ text: String) async throws {
    try await send(Array(text.utf8))
  }

  /// Sends bytes.
  public func send(_ bytes: [UInt8]) async throws {
    try await blocking { [descriptor] in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { buffer in
          #if canImport(Darwin)
          Darwin.send(descriptor, buffer.baseAddress, buffer.count, 0)
          #elseif canImport(Glibc)
          Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
          #else
          Musl.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
          #endif
        }
        if count < 0 { throw Failure(code: errno) }
        rest = rest.dropFirst(count)
      }
    }
  }

  /// Closes the sending side of the connection.
  public func finishSending() {
    shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Reads the bytes that have arrived, or waits for the next ones; returns no bytes at the end.
  public func receive() async throws -> [UInt8] {
    let waiting = unread.withLock { $0.take(.max) }
    if !waiting.isEmpty { return waiting }
    if let bytes = try receiveNow() { return bytes }
    return try await blocking { [descriptor] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let received = recv(descriptor, &buffer, buffer.count, 0)
      if received < 0 { throw Failure(code: errno) }
      return Array(buffer[..<received])
    }
  }

  /// Reads a number of bytes, or fewer at the end.
  public func receive(exactly count: Int) async throws -> String {
    var bytes = unread.withLock { $0.take(count) }
    while bytes.count < count {
      let more = try await receive()
      if more.isEmpty { break }
      let needed = more.prefix(count - bytes.count)
      bytes += needed
      unread.withLock { $0 = Unread(bytes: Array(more.dropFirst(needed.count))) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads the bytes that have arrived, or returns `nil` if there are none.
  private func receiveNow() throws -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let received = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    if received >= 0 { return Array(buffer[..<received]) }
    guard errno == EAGAIN else { throw Failure(code: errno) }
    return nil
  }

  /// Reads everything until the origin closes the connection.
  public func receiveToEnd() async throws -> String {
    try await receive(exactly: .max)
  }

  /// Reads one response with a length, without reading into the next one.
  public func response(to method: String = "GET") async throws -> Response {
    var head = ""
    while !head.hasSuffix("\r\n\r\n") {
      let byte = try await receive(exactly: 1)
      if byte.isEmpty { throw Failure(code: 0) }
      head += byte
    }
    let lines = head.split(separator: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    let status = Int(lines[0].split(separator: " ")[1]) ?? 0
    let length = method == "HEAD" ? 0 : Int(headers["content-length"] ?? "0") ?? 0
    return Response(status: status, headers: headers, body: try await receive(exactly: length))
  }

  /// Sends a request without a body and reads the response.
  public func exchange(
    _ target: String,
    method: String = "GET",
    headers: [String] = []
  ) async throws -> Response {
    let lines = ["\(method) \(target) HTTP/1.1", "Host: origin"] + headers
    try await send(lines.joined(separator: "\r\n") + "\r\n\r\n")
    return try await response(to: method)
  }
}

/// Runs a blocking operation outside of the cooperative thread pool.
public func blocking<Value: Sendable>(
  _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread { continuation.resume(with: Result { try body() }) }.start()
  }
}
