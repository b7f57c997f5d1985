import Foundation
import Plexus
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

extension AnsweringServer {
  /// Starts a server that introduces itself as a working one does.
  ///
  /// - Parameters:
  ///   - hello: The reply to `HELLO`.
  ///   - answer: The replies to other commands than `CLIENT` and `SCRIPT`, whose names come first.
  fileprivate convenience init(
    hello: String = hello,
    answer: @escaping @Sendable (_ command: [String]) -> String
  ) throws {
    try self.init { command in
      switch command.words.first {
      case "HELLO": hello
      case "CLIENT", "SCRIPT": command.usual
      default: answer(command.words)
      }
    }
  }
}

@Suite(.fewAtOnce)
struct `Events over a server that answers wrongly` {
  private func link(to server: AnsweringServer, timeout: Duration = .seconds(60)) -> RedisEvents {
    var settings = RedisConnection.Settings(server.address)
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    var options = RedisOptions()
    options.eventTimeout = timeout
    return RedisEvents(settings, options)
  }

  private static let message = LinkMessage(
    id: "1",
    type: "t",
    version: 1,
    origin: "o",
    body: [1]
  )

  /// The entry of a message.
  private static func entry(_ id: String) -> String {
    "*2\r\n\(string(id))*4\r\n\(string("h"))\(string("1\n1\no\nt"))\(string("d"))\(string("x"))"
  }

  private static func string(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }

  /// Replies that are no reply to any command of events.
  static let nonsense = [
    "_\r\n", ":7\r\n", "+OK\r\n", "*0\r\n", "*-1\r\n", "%1\r\n+a\r\n+b\r\n",
    "*3\r\n_\r\n_\r\n_\r\n", ",nan\r\n", "#t\r\n",
    "*2\r\n:1\r\n:2\r\n", "*2\r\n+1-1\r\n+2-2\r\n", "*1\r\n*1\r\n*1\r\n*0\r\n",
    "*2\r\n+99999999999999999999-1\r\n_\r\n", "*2\r\n+-1-5\r\n_\r\n",
    "*2\r\n$3\r\n1-1\r\n*1\r\n+h\r\n",
    "-NOSCRIPT No matching script.\r\n", "-NOGROUP none\r\n", "-MOVED 1 127.0.0.1:1\r\n", "-\r\n",
    "-ERR \(String(repeating: "x", count: 60_000))\r\n",
    "*3\r\n+18446744073709551615-18446744073709551615\r\n*0\r\n*3\r\n+0-0\r\n*0\r\n:-5\r\n",
    "*1\r\n+18446744073709551615-18446744073709551615\r\n",
  ]

  @Test(.guarantee(.wrongServersAreUsedWithPauses), arguments: nonsense)
  func `events over a server that answers wrongly fail or end, and crash nothing`(
    reply: String
  ) async throws {
    let server = try AnsweringServer { _ in reply }
    let link = link(to: server, timeout: .milliseconds(500))
    _ = try? await link.publish(Self.message, to: "topic")
    try? await link.acknowledge(LinkPosition(epoch: 1, number: 1), of: "topic", group: "group")
    try? await link.reject(
      LinkPosition(epoch: 1, number: 1),
      of: "topic",
      group: "group",
      because: "x"
    )
    let modes: [LinkMode] = [
      .ephemeral, .everyNode(), .everyNode(from: .start),
      .everyNode(from: LinkPosition(epoch: .max, number: .max)),
      .oneNode(group: "group", retryAfter: .seconds(1), attempts: 1),
    ]
    let closing = Task {
      await server.commands.wait { $0.count { $0.words.first == "HELLO" } > 2 }
      await link.close()
    }
    await withTaskGroup { group in
      for mode in modes {
        group.addTask {
          var count = 0
          do {
            for try await _ in link.deliveries(of: "topic", mode) {
              count += 1
              guard count < 50 else { return }
            }
          } catch {}
        }
      }
    }
    // Readers that wait for the next event end with the link.
    closing.cancel()
    await closing.value
    await #expect(throws: RedisEngineError.self) {
      try await link.publish(Self.message, to: "topic")
    }
  }

  @Test(.guarantee(.wrongServersAreUsedWithPauses))
  func `a group that is gone whenever it is read is read again with pauses only`()
    async throws
  {
    let server = try AnsweringServer { command in
      switch command.first {
      case "XREADGROUP": "-NOGROUP No such key or consumer group\r\n"
      case "EVAL": "*3\r\n_\r\n+0-0\r\n_\r\n"
      case "EVALSHA",
        "EVAL" where command.count == 5:
        "*2\r\n+0-0\r\n_\r\n"
      default: "*0\r\n"
      }
    }
    let link = link(to: server)
    var gaps = 0
    await #expect(throws: RedisEngineError.self) {
      let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(1), attempts: 1)
      for try await delivery in link.deliveries(of: "topic", mode) {
        if case .gap = delivery { gaps += 1 }
        guard gaps < 100 else { return }
      }
    }
    #expect(gaps < 3)
    await link.close()
  }

  @Test(.guarantee(.wrongServersAreUsedWithPauses))
  func `an entry that cannot be read is an error, and is not left out silently`() async throws {
    let entries = "\(Self.entry("1-0"))*2\r\n+broken\r\n*0\r\n\(Self.entry("1-2"))"
    let server = try AnsweringServer { command in
      switch command.first {
      case "XRANGE": "*3\r\n\(entries)"
      case "XREADGROUP": "%1\r\n+topic\r\n*3\r\n\(entries)"
      default: "*0\r\n"
      }
    }
    let link = link(to: server)
    await #expect(throws: (any Error).self) {
      try await link.range("topic", from: .start, count: 3)
    }
    await link.close()
  }

  // MARK: - The connection

  private let changes = Log<String>()

  private func connect(to server: AnsweringServer) throws -> RedisConnection {
    var settings = RedisConnection.Settings(server.address)
    settings.commandTimeout = .seconds(60)
    settings.connectTimeout = .seconds(60)
    return try RedisConnection(settings) { [changes] event in
      switch event {
      case .connected: changes.append("connected")
      case .disconnected(let error): changes.append("\(error)")
      case .push, .refusal: break
      }
    }
  }

  @Test(
    .guarantee(.wrongServersAreUsedWithPauses),
    arguments: [
      "+OK\r\n", "*2\r\n+proto\r\n:2\r\n", "%1\r\n+proto\r\n:2\r\n", "$-1\r\n", ":3\r\n",
    ]
  )
  func `a server that does not switch to RESP3 is not used, and the reason is named`(
    hello: String
  ) async throws {
    let server = try AnsweringServer(hello: hello) { _ in "+OK\r\n" }
    let connection = try connect(to: server)
    await changes.wait { !$0.isEmpty }
    #expect(changes.entries.first?.contains("RESP3") == true)
    await connection.close()
  }

  @Test(.guarantee(.wrongServersAreUsedWithPauses))
  func `messages of the server between replies shift none of them`() async throws {
    let server = try AnsweringServer { command in
      ">2\r\n+invalidate\r\n*1\r\n+k\r\n+\(command.last ?? "")\r\n>1\r\n+unknown\r\n>0\r\n"
    }
    let connection = try connect(to: server)
    let commands = (0..<100).map { RedisCommand("ECHO", [.text("\($0)")]) }
    let replies = await connection.send(commands).map { try? $0.get().text }
    #expect(replies == (0..<100).map { "\($0)" })
    await connection.close()
  }
}
