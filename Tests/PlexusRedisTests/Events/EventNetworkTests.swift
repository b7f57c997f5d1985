import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Events over a bad network` {
  /// Numbers of bytes after which connections break: more than a script, and no whole number of messages.
  private static let limits = [9_001, 7_013, 11_027, 8_009]

  @Test(.guarantee(.brokenConnectionsLoseNoEvent))
  func `connections that break within messages lose and repeat nothing`()
    async throws
  {
    let server = try RedisServer()
    let proxies = [
      try RedisProxy(server, breakingAfter: Self.limits),
      try RedisProxy(server, breakingAfter: Self.limits.reversed()),
    ]
    let sender = try EventNode(at: proxies[0].address)
    let receiver = try EventNode(at: proxies[1].address)
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await withThrowingTaskGroup { group in
      for part in 0..<5 {
        group.addTask {
          for number in 0..<60 { try await sender.publish("\(part * 1_000 + number)") }
        }
      }
      try await group.waitForAll()
    }
    let received = await receiver.notes.first(300)
    #expect(Set(received).count == 300)
    #expect(receiver.notes.count == 300)
    for part in 0..<5 {
      let own = received.compactMap { Int($0) }.filter { $0 / 1_000 == part }
      #expect(own == own.sorted())
    }
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":300\r\n")
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
    #expect(receiver.reports.entries.contains("interrupted"))
    withExtendedLifetime((proxies, sender, receiver)) {}
  }

  @Test(.guarantee(.brokenConnectionsLoseNoEvent))
  func `a group handles everything over connections that break within messages`()
    async throws
  {
    let server = try RedisServer()
    let sender = try EventNode(server)
    await sender.connect(.publishOnly)
    let all = Log<String>()
    let proxies = [
      try RedisProxy(server, breakingAfter: Self.limits),
      try RedisProxy(server, breakingAfter: Self.limits.reversed()),
    ]
    let workers = try proxies.map { try EventNode(at: $0.address) }
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(1), attempts: 100)
    for worker in workers {
      worker.observe(all)
      await worker.connect(mode)
    }
    for number in 0..<200 { try await sender.publish("\(number)") }
    await all.wait { Set($0).count == 200 }
    for proxy in proxies { proxy.heal() }
    // No event is a dead letter, and none waits once the workers have left.
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":0\r\n")
    #expect(workers.allSatisfy { !$0.reports.entries.contains("gap") })
  }

  /// Returns a node that publishes, and one behind a proxy that notices a lost connection soon.
  private func nodes() throws -> (proxy: RedisProxy, sender: EventNode, receiver: EventNode) {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    return (
      proxy, try EventNode(server),
      try EventNode(at: proxy.address) { $0.eventTimeout = .milliseconds(500) }
    )
  }

  @Test(
    .guarantee(.brokenConnectionsLoseNoEvent),
    arguments: [LinkMode.everyNode(), EventNode.group]
  )
  func `a connection that is lost without a notice is replaced`(mode: LinkMode) async throws {
    let (proxy, sender, receiver) = try nodes()
    await sender.connect(.publishOnly)
    await receiver.receive(mode)
    try await sender.publish("0")
    await receiver.notes.first(1)
    proxy.stall()
    try await sender.publish("1")
    #expect(await receiver.notes.first(2) == ["0", "1"])
    try await sender.publish("2")
    #expect(await receiver.notes.first(3) == ["0", "1", "2"])
  }

  @Test(.guarantee(.brokenConnectionsLoseNoEvent))
  func `an ephemeral connection that is lost without a notice says what it has missed`()
    async throws
  {
    let (proxy, sender, receiver) = try nodes()
    receiver.observe()
    await sender.connect(.publishOnly)
    try await sender.publish("0")
    await receiver.connect(.ephemeral)
    proxy.stall()
    try await sender.publish("1")
    // On a busy machine, its connection can have been replaced before that.
    await receiver.log.wait { $0.contains("named gap") || $0.contains("1") }
    #expect(!receiver.notes.entries.contains("0"))
  }

  @Test(.guarantee(.brokenConnectionsLoseNoEvent))
  func `an event whose confirmation was lost is recognized when it is sent again`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let sender = try EventNode(at: proxy.address)
    let receiver = try EventNode(server)
    await receiver.receive(.everyNode())
    await sender.connect(.publishOnly)
    try await sender.publish("0")
    for number in 1...5 {
      let publishing = Task { try await sender.publish("\(number)") }
      // The server has it as soon as it was announced, and the sender may know or not.
      await receiver.notes.contains("\(number)")
      proxy.cut()
      try await publishing.value
    }
    try await sender.publish("end")
    #expect(await receiver.notes.first(7) == ["0", "1", "2", "3", "4", "5", "end"])
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":7\r\n")
  }

  @Test(.guarantee(.brokenConnectionsLoseNoEvent))
  func `a node that is overtaken while its connection stalls loses no event`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let sender = try EventNode(server)
    let (slow, other) = (try EventNode(at: proxy.address), try EventNode(server))
    await sender.connect(.publishOnly)
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(1), attempts: 9)
    let gate = Gate()
    slow.observe { _ in try await gate.wait() }
    await slow.connect(mode)
    try await sender.publish("1")
    await slow.notes.first(1)
    #expect(slow.engine.status.unacknowledgedEvents == 1)
    proxy.stall()
    await other.receive(mode)
    // Its renewals do not arrive, and the other node handles the event.
    #expect(await other.notes.first(1) == ["1"])
    // Its acknowledgement arrives behind that of the other node.
    gate.open()
    proxy.resume()
    for number in 2..<40 { try await sender.publish("\(number)") }
    let all = Set((1..<40).map { "\($0)" })
    try await slow.engine.close()
    try await sender.publish("end")
    // What it has given back can follow the last one.
    await other.notes.wait { [slow] notes in
      Set(notes).union(slow.notes.entries) == all.union(["end"])
    }
  }

  @Test(arguments: [LinkMode.everyNode(), EventNode.group], [false, true])
  func `the next event arrives soon after the server is back`(
    mode: LinkMode,
    restarts: Bool
  ) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let receiver = try EventNode(at: proxy.address)
    await receiver.receive(mode)
    proxy.refuse()
    if restarts { server.kill() }
    await receiver.reports.contains("interrupted")
    // The pauses between attempts of both connections have become as long as they can be.
    let count = proxy.refusedCount
    await Failover.poll { proxy.refusedCount >= count + 16 }
    if restarts { try server.start() }
    await RedisShell.waitUntilReady(server)
    let sender = try EventNode(server)
    await sender.connect(.publishOnly)
    try await sender.publish("first")
    proxy.endRefusal()
    let stopwatch = Stopwatch()
    await receiver.notes.contains("first")
    let duration = stopwatch.elapsed
    print("an event after the server is back: \(duration)")
    #expect(duration < .seconds(60))
    for node in [sender, receiver] { try await node.engine.close() }
  }
}
