import Foundation
import PlexusSupport
import TestSupport
import Testing

/// Sends commands to a server as an operator does.
enum RedisShell {
  /// Connects to a server.
  ///
  /// - Returns: The descriptor, which the caller closes.
  static func connect(to server: RedisServer) throws -> Int32 {
    let (descriptor, status) = open(server.socket, Foundation.connect)
    guard descriptor >= 0, status == 0 else {
      close(descriptor)
      throw SystemError(call: "connect")
    }
    return descriptor
  }

  /// Listens at a path.
  ///
  /// - Returns: The descriptor, which the caller closes.
  static func listen(at path: String) throws -> Int32 {
    let (descriptor, status) = open(path, bind)
    guard descriptor >= 0, status == 0, Foundation.listen(descriptor, 64) == 0 else {
      close(descriptor)
      throw SystemError(call: "listen")
    }
    return descriptor
  }

  /// Opens a socket, and binds or connects it to a path.
  private static func open(
    _ path: String,
    _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> (descriptor: Int32, status: Int32) {
    #if canImport(Darwin)
    let type = SOCK_STREAM
    #else
    let type = Int32(SOCK_STREAM.rawValue)
    #endif
    let descriptor = socket(AF_UNIX, type, 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    return (descriptor, status)
  }

  /// Sends bytes to a peer that can have gone.
  ///
  /// - Returns: Whether all of them were sent.
  static func send(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Sends a command.
  static func send(_ command: String, to descriptor: Int32) throws {
    guard send(Array("\(command)\r\n".utf8)[...], to: descriptor) else {
      throw SystemError(call: "send")
    }
  }

  /// Waits until a server that was started answers.
  static func waitUntilReady(_ server: RedisServer) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while true {
          // One with a password refuses the command.
          let reply = (try? run("PING", on: server)) ?? ""
          if reply.hasPrefix("+PONG") || reply.hasPrefix("-NOAUTH") { break }
          poll(nil, 0, 5)
        }
        continuation.resume()
      }
    }
  }

  /// Sends a command on a connection of its own and returns the first line of its reply.
  static func run(_ command: String, on server: RedisServer) throws -> String {
    let descriptor = try connect(to: server)
    defer { close(descriptor) }
    try send(command, to: descriptor)
    var reply: [UInt8] = []
    var byte: [UInt8] = [0]
    while reply.last != UInt8(ascii: "\n"), read(descriptor, &byte, 1) == 1 { reply += byte }
    return String(decoding: reply, as: UTF8.self)
  }

  /// Sends commands, each on a connection of its own, and expects that none of them fails.
  static func perform(
    _ commands: [String],
    on server: RedisServer,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for command in commands {
      let reply = try run(command, on: server)
      #expect(!reply.hasPrefix("-"), "\(command): \(reply)", sourceLocation: sourceLocation)
    }
  }
}
