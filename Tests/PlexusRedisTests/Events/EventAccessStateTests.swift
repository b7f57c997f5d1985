import Foundation
import Plexus
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The user of the events of an engine` {
  /// Gives the server no data, no scripts and no refusals, and the user some rules.
  private func prepare(_ server: RedisServer, _ rules: [String]) throws {
    let commands = [
      "FLUSHALL", "SCRIPT FLUSH", "ACL SETUSER events reset \(rules.joined(separator: " "))",
      "ACL LOG RESET",
    ]
    try RedisShell.perform(commands, on: server)
  }

  /// Whether the server has refused a command, key or channel of the user.
  private static func hasRefused(_ server: RedisServer) -> Bool {
    (try? RedisShell.run("ACL LOG 1", on: server)) != "*0\r\n"
  }

  private func link(to server: RedisServer) -> RedisEvents {
    var settings = RedisConnection.Settings(server.address)
    settings.credentials = { RedisCredentials(user: "events", password: "secret") }
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    var options = RedisOptions()
    options.eventTimeout = .seconds(60)
    return RedisEvents(settings, options)
  }

  /// Uses every operation of a topic and its groups, until one fails.
  private func use(
    _ link: RedisEvents,
    _ server: RedisServer,
    by reader: EventReader<GroupReaderState>
  ) async throws {
    let names = TopicNames("orders")
    func publish() async throws {
      let message = LinkMessage(id: "1", type: "t", version: 1, origin: "o", body: [1])
      _ = try await link.publish(message, to: "orders")
    }
    try await publish()
    try await publish()
    var channel: EventReader<ChannelReaderState>? = EventReader(link, names)
    _ = try await channel?.next()
    let stream = EventReader(link, names, after: .start)
    for _ in 0..<3 { _ = try await stream.next() }
    link.beat()
    // A server that was restarted with older data, which gives the highest epoch to the next message.
    let batch = EventOutboxState<Void>.Batch(
      topic: "orders",
      number: 1 << 40,
      messages: [.init(id: 1, header: "h\n1\no\nt", body: [], deadline: 0)],
      latest: PublishedState.Confirmed(
        number: 1,
        position: LinkPosition(epoch: 1 << 42, number: 7),
        time: -2 * TopicNames.memory
      )
    )
    let call = TopicScripts.publish(batch, names, node: link.node, limit: 1_000, at: 0)
    _ = try await link.run(TopicScripts.publish, call.keys, call.arguments)
    var positions: [LinkPosition] = []
    while positions.count < 3 {
      guard case .message(_, let position, _) = try await reader.next() else { continue }
      positions.append(position)
      switch positions.count {
      case 1: try await link.acknowledge(position, of: "orders", group: "billing")
      case 2: try await link.reject(position, of: "orders", group: "billing", because: "test")
      // It is given back when the link is closed.
      default: break
      }
    }
    channel = nil
    await wait {
      let channels = try? RedisShell.run("PUBSUB CHANNELS", on: server)
      return channels == "*0\r\n" || Self.hasRefused(server)
    }
  }

  /// Polls until a condition is met.
  private func wait(until isMet: @escaping @Sendable () -> Bool) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while !isMet() { poll(nil, 0, 5) }
        continuation.resume()
      }
    }
  }

  /// Uses everything as a user with some rules.
  ///
  /// - Returns: Whether the server has refused something.
  private func isRefused(_ rules: [String], by server: RedisServer) async throws -> Bool {
    try prepare(server, rules)
    let link = link(to: server)
    _ = try link.route(for: TopicNames("orders").stream)
    var isConnected = false
    for await health in link.health.subscription(bufferingPolicy: .unbounded) {
      isConnected = health == .connected
      // A busy machine can also give the credentials too late.
      if isConnected || Self.hasRefused(server) { break }
    }
    let reader = EventReader(
      link,
      TopicNames("orders"),
      group: "billing",
      retryAfter: .seconds(1_000)
    )
    if isConnected { try? await use(link, server, by: reader) }
    await link.close()
    withExtendedLifetime(reader) {}
    return !isConnected || Self.hasRefused(server)
  }

  @Test(.guarantee(.eventUsersNeedDocumentedRights))
  func `the user of events needs exactly the commands, keys and channels of the article`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let rules = try AccessRules.rules(of: "events")
    #expect(try await !isRefused(rules, by: server))
    #expect(try RedisShell.run("XLEN {orders}:stream", on: server) == ":3\r\n")
    #expect(try RedisShell.run("XLEN {orders}.dead.billing:stream", on: server) == ":1\r\n")
    for rule in rules where ["+", "~", "&"].contains(rule.prefix(1)) {
      let isRefused = try await isRefused(rules.filter { $0 != rule }, by: server)
      #expect(isRefused, "\(rule) is not needed")
    }
  }
}
