import Foundation
import PlexusSupport
import TestSupport

/// Sends commands to a server as an operator does.
enum RedisShell {
  /// Connects to a server.
  ///
  /// - Returns: The descriptor, which the caller closes.
  static func connect(to server: RedisServer) throws -> Int32 {
    #if canImport(Darwin)
    let type = SOCK_STREAM
    #else
    let type = Int32(SOCK_STREAM.rawValue)
    #endif
    let descriptor = socket(AF_UNIX, type, 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array(server.folder.appending(path: "socket").path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard descriptor >= 0, status == 0 else { throw SystemError(call: "connect") }
    return descriptor
  }

  /// Sends a command.
  static func send(_ command: String, to descriptor: Int32) throws {
    let bytes = Array("\(command)\r\n".utf8)
    guard write(descriptor, bytes, bytes.count) == bytes.count else {
      throw SystemError(call: "write")
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
}
