import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A server on a port of its own that answers each command as a test determines, and need not follow the protocol.
final class AnsweringServer: Sendable {
  /// A command of a client.
  struct Command: Sendable {
    /// The number of the connection, from 1.
    let connection: Int
    /// The words; of a script that was loaded, the source instead of the digest.
    let words: [String]
    /// The reply of a server that works, if it does not depend on data.
    fileprivate(set) var usual: String

    /// The first argument of a script after its keys.
    var firstArgument: String {
      let index = words.count > 2 ? Int(words[2]).map { 3 + $0 } : nil
      return index.flatMap { words.indices.contains($0) ? words[$0] : nil } ?? ""
    }
  }

  private struct State {
    var connectionCount = 0
    var clients: Set<Int32> = []
    /// The scripts that were loaded or run, by their digests.
    var scripts: [String: String] = [:]
  }

  /// The reply to `HELLO` of a server of a cluster.
  static let clusterHello = hello.replacing("$10\r\nstandalone", with: "$7\r\ncluster")

  /// The reply to `HELLO` of a server that speaks RESP3.
  static let hello =
    "%3\r\n$5\r\nproto\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"

  private let listener: LoopbackSocket
  private let thread: LoopThread
  private let shared: Shared

  /// The part of the server that its threads use.
  private final class Shared: Sendable {
    let state = Guarded(State())
    let commands = Log<Command>()
    let answer: @Sendable (Command) -> String?

    init(_ answer: @escaping @Sendable (Command) -> String?) {
      self.answer = answer
    }

    func serve(_ client: Int32) {
      let number = state.withLock { state in
        state.connectionCount += 1
        state.clients.insert(client)
        return state.connectionCount
      }
      var received: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65_536)
      reading: while true {
        let count = read(client, &buffer, buffer.count)
        guard count > 0 else { break }
        received += buffer[..<count]
        while let words = Self.takeCommand(from: &received) {
          let command = command(words, on: number)
          if let command { commands.append(command) }
          let reply = command.map(answer) ?? "-NOSCRIPT No matching script.\r\n"
          guard let reply else { continue }
          guard RedisShell.send(Array(reply.utf8)[...], to: client) else { break reading }
        }
      }
      state.withLock { _ = $0.clients.remove(client) }
      close(client)
    }

    /// Returns what a client sends, or `nil` for a script that was not loaded.
    private func command(_ words: [String], on connection: Int) -> Command? {
      var command = Command(connection: connection, words: words, usual: "+OK\r\n")
      switch words[0] {
      case "HELLO":
        command.usual = AnsweringServer.hello
      case "ECHO":
        command.usual = "+\(words[1])\r\n"
      case "SCRIPT", "EVAL":
        let source = words[words[0] == "EVAL" ? 1 : 2]
        let digest = SHA1.hexadecimalDigest(source.utf8)
        state.withLock { $0.scripts[digest] = source }
        command.usual = "+\(digest)\r\n"
      case "EVALSHA":
        guard let source = state.withLock({ $0.scripts[words[1]] }) else { return nil }
        command = Command(
          connection: connection,
          words: [words[0], source] + words[2...],
          usual: command.usual
        )
      default: break
      }
      return command
    }

    /// Takes out a command that has arrived completely.
    private static func takeCommand(from bytes: inout [UInt8]) -> [String]? {
      var rest = bytes[...]
      func number(_ type: Character) -> Int? {
        guard let end = rest.firstIndex(of: 10) else { return nil }
        defer { rest = rest[(end + 1)...] }
        let line = String(decoding: rest[..<end].dropLast(), as: UTF8.self)
        return line.first == type ? Int(line.dropFirst()) : nil
      }
      guard let count = number("*") else { return nil }
      var words: [String] = []
      for _ in 0..<count {
        guard let length = number("$"), rest.count >= length + 2 else { return nil }
        words.append(String(decoding: rest.prefix(length), as: UTF8.self))
        rest = rest.dropFirst(length + 2)
      }
      bytes = Array(rest)
      return words
    }
  }

  /// Starts a server.
  ///
  /// - Parameter answer: Returns the bytes after a command; `nil` for none.
  init(answer: @escaping @Sendable (Command) -> String?) throws {
    let listener = try LoopbackSocket()
    guard listen(listener.descriptor, 64) == 0 else { throw SystemError(call: "listen") }
    let shared = Shared(answer)
    (self.listener, self.shared) = (listener, shared)
    thread = try LoopThread {
      while true {
        let client = accept(listener.descriptor, nil, nil)
        guard client >= 0 else { return }
        Thread.detachNewThread { shared.serve(client) }
      }
    }
  }

  deinit {
    shutdown(listener.descriptor, Int32(SHUT_RDWR))
    thread.join()
    shared.state.withLock { state in
      for client in state.clients { shutdown(client, Int32(SHUT_RDWR)) }
    }
  }

  var address: RedisAddress { .tcp(host: "127.0.0.1", port: listener.port) }

  /// The commands so far.
  var commands: Log<Command> { shared.commands }

  /// The number of connections so far.
  var connectionCount: Int { shared.state.withLock { $0.connectionCount } }

  /// Sends bytes that answer no command to all clients.
  func send(_ text: String) {
    shared.state.withLock { state in
      for client in state.clients { _ = RedisShell.send(Array(text.utf8)[...], to: client) }
    }
  }
}
