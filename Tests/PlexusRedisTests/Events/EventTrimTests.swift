import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A topic with a group that is absent` {
  @Test(.guarantee(.trimmingTopicsContinue))
  func `a topic with an absent group continues for others, and reports the gap to the group`()
    async throws
  {
    let server = try RedisServer()
    func node() throws -> EventNode {
      try EventNode(server) { ($0.eventLimit, $0.whenGroupIsBehind) = (1_000, .trim) }
    }
    let worker = try node()
    await worker.receive(EventNode.group)
    let (sender, listener) = (try node(), try node())
    await sender.connect(.publishOnly)
    try await sender.publish("first")
    await worker.notes.contains("first")
    await worker.acknowledgedAll()
    try await worker.engine.close()
    await listener.receive(.everyNode())
    // Other readers are not behind.
    for wave in 0..<5 {
      try await withThrowingTaskGroup { group in
        for number in 0..<500 { group.addTask { try await sender.publish("\(wave).\(number)") } }
        try await group.waitForAll()
      }
      await listener.notes.first(500 * (wave + 1))
    }
    let length = try RedisShell.run("XLEN {notes}:stream", on: server)
    #expect(try #require(Int(length.dropFirst().dropLast(2))) <= 2_000)
    let late = try node()
    await late.receive(EventNode.group)
    await late.log.wait { $0.contains { $0.contains("gap") } }
    try await sender.publish("last")
    await late.notes.contains("last")
    #expect(late.notes.count > 1_000 && late.notes.count <= 2_001)
    for node in [sender, listener, late] { try await node.engine.close() }
  }

  @Test(.guarantee(.absentGroupsGetTheGapFirst))
  func `an absent group is given the gap before the first event that it still has`() async throws {
    let server = try RedisServer()
    func node() throws -> EventNode {
      try EventNode(server) { ($0.eventLimit, $0.whenGroupIsBehind) = (1_000, .trim) }
    }
    let sender = try node()
    await sender.connect(.publishOnly)
    let worker = try node()
    await worker.receive(EventNode.group)
    try await sender.publish("first")
    await worker.notes.contains("first")
    await worker.acknowledgedAll()
    try await worker.engine.close()
    for wave in 0..<5 {
      try await withThrowingTaskGroup { group in
        for number in 0..<500 { group.addTask { try await sender.publish("\(wave).\(number)") } }
        try await group.waitForAll()
      }
    }
    let late = try node()
    var kinds: [String] = []
    for try await delivery in late.engine.events.deliveries(of: "notes", EventNode.group) {
      switch delivery {
      case .connected: kinds.append("connected")
      case .gap: kinds.append("gap")
      case .message: kinds.append("message")
      }
      if kinds.last == "message" { break }
    }
    #expect(kinds == ["connected", "gap", "message"])
    for node in [sender, late] { try await node.engine.close() }
  }

  @Test
  func `a topic with an absent group refuses events at twice its limit, and the health says so`()
    async throws
  {
    let server = try RedisServer()
    let worker = try EventNode(server) { $0.eventLimit = 1_000 }
    await worker.receive(EventNode.group)
    try await worker.engine.close()
    let sender = try EventNode(server) { $0.eventLimit = 1_000 }
    await sender.connect(.publishOnly)
    let refused = Guarded(0)
    await withTaskGroup { group in
      for number in 0..<2_100 {
        group.addTask {
          if (try? await sender.publish("\(number)")) == nil { refused.withLock { $0 += 1 } }
        }
      }
    }
    #expect(refused.withLock { $0 } == 100)
    for await health in sender.engine.eventHealth() {
      guard case .degraded(let reason) = health else { continue }
      #expect(reason.contains("The group group is"))
      break
    }
    try await sender.engine.close()
  }
}
