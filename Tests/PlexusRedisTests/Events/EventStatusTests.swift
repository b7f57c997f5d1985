import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The status of an engine` {
  @Test(.guarantee(.engineStatusHasStateAndLoad))
  func `the status of an engine tells about the connection of the events`()
    async throws
  {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.engine.becomesConnected()
    #expect(node.engine.status.caches.health == .connected)
    #expect(node.engine.status.events.health == nil)
    for await health in node.engine.eventHealth() {
      #expect(health == nil)
      break
    }
    await node.connect(.everyNode())
    #expect(node.engine.status.events.health == .connected)
    server.kill()
    for await health in node.engine.eventHealth() {
      guard case .isolated(let reason) = health else { continue }
      #expect(!reason.isEmpty)
      break
    }
    try server.start()
    for await health in node.engine.eventHealth() where health == .connected { break }
    try await node.engine.close()
    #expect(node.engine.status.events.health == .closed)
    #expect(node.engine.status.caches.health == .closed)
    #expect(node.engine.status.events.unansweredCommands == 0)
  }

  @Test(.guarantee(.engineStatusHasStateAndLoad))
  func `the status of an engine counts events that the server has not confirmed`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.connect(.publishOnly)
    try await node.publish("0")
    #expect(node.engine.status.unconfirmedEvents == 0)
    server.suspend()
    let publishing = (1...3).map { number in Task { try await node.publish("\(number)") } }
    await node.status { $0.unconfirmedEvents == 3 && $0.events.unansweredCommands >= 2 }
    // The system has no room for these bytes, so that they wait.
    let large = Task { try await node.publish(String(repeating: "x", count: 8 << 20)) }
    await node.status { $0.events.outboxBytes > 1 << 20 }
    server.resume()
    for task in publishing + [large] { try await task.value }
    let status = node.engine.status
    #expect(status.unconfirmedEvents == 0)
    #expect(status.events.outboxBytes == 0)
    #expect(status.events.unansweredCommands == 0)
  }

  @Test(.guarantee(.engineStatusHasStateAndLoad))
  func `the status of an engine counts events of groups that are not acknowledged`() async throws {
    let server = try RedisServer()
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    let gate = Gate()
    worker.observe { note in if note.text == "0" { try await gate.wait() } }
    await sender.connect(.publishOnly)
    await worker.connect(EventNode.group)
    try await sender.publish("0", "1")
    await worker.notes.first(1)
    #expect(worker.engine.status.unacknowledgedEvents >= 1)
    gate.open()
    await worker.notes.first(2)
    await worker.acknowledgedAll()
  }

  @Test(.guarantee(.engineStatusHasStateAndLoad))
  func `an engine has one connection however many tasks use the events first`() async throws {
    let server = try RedisServer()
    for _ in 0..<20 {
      let node = try EventNode(server)
      node.observe()
      await withTaskGroup { group in
        for _ in 0..<8 { group.addTask { await node.connect(.everyNode()) } }
      }
      let sender = try EventNode(server)
      await sender.connect(.publishOnly)
      await node.reports.wait { $0.count { $0 == "connected" } == 8 }
      try await sender.publish("1")
      await node.notes.first(8)
      #expect(!node.reports.entries.contains("interrupted"))
      try await node.engine.close()
      try await sender.engine.close()
    }
  }
}
