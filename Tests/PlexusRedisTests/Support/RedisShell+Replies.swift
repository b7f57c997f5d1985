import Foundation
import PlexusSupport
import TestSupport

extension RedisShell {
  /// A reply of a server in the second version of the protocol.
  enum Reply: Sendable {
    case bytes([UInt8])
    case failure(String)
    case list([Reply])
    case null

    /// The text of a reply that is no list and no failure.
    var text: String? {
      if case .bytes(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
    }

    /// The replies of a list.
    var elements: [Reply] {
      if case .list(let elements) = self { elements } else { [] }
    }
  }

  /// Reads replies from a connection.
  private struct ReplyReader {
    let descriptor: Int32
    private var rest: ArraySlice<UInt8> = []

    init(_ descriptor: Int32) {
      self.descriptor = descriptor
    }

    /// Waits for further bytes.
    private mutating func read() throws {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = Foundation.read(descriptor, &buffer, buffer.count)
      guard count > 0 else { throw SystemError(call: "read") }
      rest = ArraySlice(rest + buffer[..<count])
    }

    /// Takes a number of bytes and the end of a line.
    private mutating func take(_ count: Int) throws -> [UInt8] {
      while rest.count < count + 2 { try read() }
      defer { rest = rest.dropFirst(count + 2) }
      return Array(rest.prefix(count))
    }

    private mutating func line() throws -> String {
      while true {
        if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          return String(decoding: try take(end - rest.startIndex - 1), as: UTF8.self)
        }
        try read()
      }
    }

    mutating func reply() throws -> Reply {
      let line = try line()
      let content = String(line.dropFirst())
      switch line.first {
      case "-": return .failure(content)
      case "$":
        guard let count = Int(content), count >= 0 else { return .null }
        return .bytes(try take(count))
      case "*":
        guard let count = Int(content), count >= 0 else { return .null }
        var elements: [Reply] = []
        for _ in 0..<count { elements.append(try reply()) }
        return .list(elements)
      default: return .bytes(Array(content.utf8))
      }
    }
  }

  /// Sends commands, whose words can have any bytes, on one connection, and returns their replies.
  static func replies(to commands: [[[UInt8]]], on server: RedisServer) throws -> [Reply] {
    let descriptor = try connect(to: server)
    defer { end(descriptor) }
    var reader = ReplyReader(descriptor)
    return try commands.map { words in
      var bytes = Array("*\(words.count)\r\n".utf8)
      for word in words { bytes += Array("$\(word.count)\r\n".utf8) + word + Array("\r\n".utf8) }
      guard send(bytes[...], to: descriptor) else { throw SystemError(call: "send") }
      return try reader.reply()
    }
  }

  /// Sends a command, whose words are separated by spaces, and returns its reply.
  static func fullReply(to command: String, on server: RedisServer) throws -> Reply {
    let words = command.split(separator: " ").map { Array($0.utf8) }
    return try replies(to: [words], on: server)[0]
  }
}
