import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A space of a server that has restarted` {
  private typealias Node = `A space of the shared tier`.Node

  /// Lets a server skip tokens as one does that has restarted, and draws one.
  private func restart(_ server: RedisServer) async throws {
    try RedisShell.perform(["SCRIPT FLUSH"], on: server)
    let node = try await Node("later", on: server)
    try await node.tier.remove(["none"])
    await node.connection.close()
  }

  @Test func `entries are read by a script from a restart to the next heartbeat`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    _ = try await node.tier.beat(acknowledging: nil, trust: .seconds(60))
    let epoch = node.tier.epoch
    #expect(try await node.read("k")?.payload == [1])
    try await restart(server)
    // It does not show whether the token that the node has seen was lost.
    #expect(try await node.read("k") == nil)
    #expect(try await node.entry("k")?.payload == [1])
    #expect(try await node.read("k") == nil)
    _ = try await node.tier.beat(acknowledging: nil, trust: .seconds(60))
    #expect(try await node.read("k")?.payload == [1])
    #expect(node.tier.epoch == epoch)
  }

  @Test func `a node that was cut off during more restarts than are noted begins a new epoch`()
    async throws
  {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    for _ in 0..<16 { try await restart(server) }
    #expect(try await node.entry("k")?.payload == [1])
    try await restart(server)
    #expect(try await node.entry("k") == nil)
    // Once only.
    let epoch = node.tier.epoch
    try await node.tier.store([("k", [2], [])])
    try await restart(server)
    #expect(try await node.entry("k")?.payload == [2])
    #expect(node.tier.epoch == epoch)
  }

  @Test func `a restart without a change since the last one skips nothing`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    func list() throws -> String { try RedisShell.reply("GET {s}:2:schemas", on: server) }
    #expect(try !list().contains("-"))
    var lists: Set<String> = []
    for number in 0..<4 {
      try RedisShell.perform(["SCRIPT FLUSH"], on: server)
      let later = try await Node("\(number)", on: server)
      _ = try await later.entry("k")
      lists.insert(try list())
      await later.connection.close()
    }
    #expect(lists.count == 1)
    #expect(lists.allSatisfy { $0.contains(":1-") })
  }

  @Test func `many restarts leave tokens to give out`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    try RedisShell.perform(["SET {s}:2:tokens \(TierScripts.largestNumber - 4_000)"], on: server)
    for _ in 0..<8 { try await restart(server) }
    let last = try await node.lease("new").version.token
    #expect(last < TierScripts.largestNumber)
  }
}
