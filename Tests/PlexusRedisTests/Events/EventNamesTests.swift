import Foundation
import Plexus
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Topics with names in several spellings` {
  private static let composed = "caf\u{E9}"
  private static let decomposed = "cafe\u{301}"

  /// Connects the notes of a node to a topic.
  private func connect(
    _ node: EventNode,
    as name: String,
    _ mode: LinkMode
  ) async -> ObservationToken {
    let token = node.bus.connect(Note.self, as: name, over: node.engine.events, mode)
    if mode != .publishOnly { await node.reports.contains("connected") }
    return token
  }

  @Test(
    .guarantee(.equalTextsAreOneTopic),
    arguments: [
      LinkMode.ephemeral, .everyNode(),
      .oneNode(group: "group", retryAfter: .seconds(60), attempts: 3),
    ]
  )
  func `names in several spellings are one topic, whose events reach all its nodes`(
    mode: LinkMode
  ) async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    receiver.observe()
    let tokens = [
      await connect(sender, as: Self.composed, .publishOnly),
      await connect(receiver, as: Self.decomposed, mode),
    ]
    try await sender.publish("1", "2")
    #expect(await receiver.notes.first(2) == ["1", "2"])
    await receiver.acknowledgedAll()
    for token in tokens { token.cancel() }
  }

  @Test(.guarantee(.equalTextsAreOneTopic))
  func `names in several spellings are one topic with one group, which handles an event once`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, worker, other) = (
      try EventNode(server), try EventNode(server), try EventNode(server)
    )
    let all = Log<String>()
    for node in [worker, other] { node.observe(all) }
    let tokens = [
      await connect(sender, as: "notes", .publishOnly),
      await connect(
        worker,
        as: "notes",
        .oneNode(group: Self.composed, retryAfter: .seconds(60), attempts: 3)
      ),
      await connect(
        other,
        as: "notes",
        .oneNode(group: Self.decomposed, retryAfter: .seconds(60), attempts: 3)
      ),
    ]
    for number in 0..<20 { try await sender.publish("\(number)") }
    await all.wait { Set($0).count == 20 }
    for node in [worker, other] { await node.acknowledgedAll() }
    let script = "return #redis.call('XINFO', 'GROUPS', '{notes}:stream')"
    #expect(try RedisShell.run("EVAL \"\(script)\" 0", on: server) == ":1\r\n")
    #expect(all.count == 20)
    for token in tokens { token.cancel() }
  }

  @Test(.guarantee(.equalTextsAreOneTopic))
  func `an event that waits for a batch of another spelling is stored in its topic`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let node = try EventNode(server)
    let link = node.engine.events
    let message = LinkMessage(id: "1", type: "t", version: 1, origin: "o", body: [])
    _ = try await link.publish(message, to: Self.composed)
    server.suspend()
    let tasks = (0..<10).map { number in
      Task {
        try await link.publish(
          message,
          to: number.isMultiple(of: 2) ? Self.composed : Self.decomposed
        )
      }
    }
    await node.status { $0.unconfirmedEvents == 10 }
    server.resume()
    for task in tasks { _ = try await task.value }
    #expect(try RedisShell.run("XLEN {\(Self.composed)}:stream", on: server) == ":11\r\n")
    #expect(try RedisShell.run("EXISTS {\(Self.decomposed)}:stream", on: server) == ":0\r\n")
  }
}
