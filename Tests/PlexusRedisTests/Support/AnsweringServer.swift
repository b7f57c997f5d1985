import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A server on a port of its own that answers each command with any bytes, so that its replies can be wrong.
final class AnsweringServer: Sendable {
  /// Returns the reply to a command, whose name comes first; an empty one for none.
  typealias Answer = @Sendable (_ command: [String]) -> String

  /// The reply to `HELLO` of a server that speaks RESP3.
  static let hello = "%1\r\n$5\r\nproto\r\n:3\r\n"

  private let listener: LoopbackSocket
  private let thread: LoopThread
  /// The names of the commands so far.
  let commands: Log<String>

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - hello: The reply to `HELLO`.
  ///   - answer: The replies to other commands, except `CLIENT` and `SCRIPT`.
  init(hello: String = hello, answer: @escaping Answer) throws {
    let listener = try LoopbackSocket()
    guard listen(listener.descriptor, 16) == 0 else { throw SystemError(call: "listen") }
    let commands = Log<String>()
    (self.listener, self.commands) = (listener, commands)
    thread = try LoopThread {
      while true {
        let client = accept(listener.descriptor, nil, nil)
        guard client >= 0 else { return }
        Thread.detachNewThread {
          Self.serve(client) { command in
            commands.append(command.first ?? "")
            return switch command.first {
            case "HELLO": hello
            case "CLIENT": "+OK\r\n"
            case "SCRIPT": Self.digest(of: command)
            default: answer(command)
            }
          }
        }
      }
    }
  }

  deinit {
    shutdown(listener.descriptor, Int32(SHUT_RDWR))
    thread.join()
  }

  var address: RedisAddress { .tcp(host: "127.0.0.1", port: listener.port) }

  /// Returns the reply to `SCRIPT LOAD`, which is different for scripts of different lengths.
  private static func digest(of command: [String]) -> String {
    let digest = "digest\(command.last?.utf8.count ?? 0)"
    return "$\(digest.utf8.count)\r\n\(digest)\r\n"
  }

  private static func serve(_ client: Int32, _ answer: Answer) {
    defer { close(client) }
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = read(client, &buffer, buffer.count)
      guard count > 0 else { return }
      received += buffer[..<count]
      while let words = takeCommand(from: &received) {
        guard RedisShell.send(Array(answer(words).utf8)[...], to: client) else { return }
      }
    }
  }

  /// Takes the next command, which is an array of strings, if all of it has arrived.
  private static func takeCommand(from received: inout [UInt8]) -> [String]? {
    var rest = received[...]
    guard let count = takeNumber(from: &rest) else { return nil }
    var words: [String] = []
    for _ in 0..<count {
      guard let length = takeNumber(from: &rest), rest.count >= length + 2 else { return nil }
      words.append(String(decoding: rest.prefix(length), as: UTF8.self))
      rest = rest.dropFirst(length + 2)
    }
    received = Array(rest)
    return words
  }

  /// Takes a line with a length.
  private static func takeNumber(from rest: inout ArraySlice<UInt8>) -> Int? {
    guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { rest = rest[(end + 1)...] }
    return Int(String(decoding: rest[..<(end - 1)].dropFirst(), as: UTF8.self))
  }
}
