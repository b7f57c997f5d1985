import Plexus
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A space of a server that has restarted` {
  private typealias Node = `A space of the shared tier`.Node

  /// Keeps the data of the space as a snapshot.
  private static func save(_ server: RedisServer) throws {
    try copy("{s}:", to: "saved:{s}:", on: server)
  }

  /// Lets a server do what a restart with the snapshot does, as far as a space shows it.
  private static func restore(_ server: RedisServer, for tiers: [Tier]) throws {
    try copy("saved:{s}:", to: "{s}:", on: server)
    try RedisShell.perform(["SCRIPT FLUSH"], on: server)
    for tier in tiers { tier.route.master?.connection.checked.withLock { $0.doubt() } }
  }

  private static func copy(_ prefix: String, to target: String, on server: RedisServer) throws {
    let script = """
      for _, key in ipairs(redis.call('KEYS', '\(target)*')) do redis.call('DEL', key) end \
      for _, key in ipairs(redis.call('KEYS', '\(prefix)*')) do \
      local target = '\(target)' .. string.sub(key, \(prefix.count + 1)) \
      redis.call('RESTORE', target, 0, redis.call('DUMP', key)) end
      """
    try RedisShell.perform([#"EVAL "\#(script)" 0"#], on: server)
  }

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

  @Test func `restarts without a change in between have names of their own, and one range`()
    async throws
  {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    func list() throws -> String { try RedisShell.reply("GET {s}:2:schemas", on: server) }
    #expect(try !list().contains("-"))
    var (lists, tokens): (Set<String>, Set<String>) = ([], [])
    for number in 0..<4 {
      try RedisShell.perform(["SCRIPT FLUSH"], on: server)
      let later = try await Node("\(number)", on: server)
      _ = try await later.entry("k")
      lists.insert(try list())
      tokens.insert(try RedisShell.reply("GET {s}:2:tokens", on: server))
      await later.connection.close()
    }
    #expect(tokens.count == 4)
    #expect(lists.allSatisfy { $0.contains(":1-") && $0.count { $0 == ":" } == 1 })
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

  @Test func `restarts with one snapshot that lacks nothing begin no epoch`() async throws {
    let server = try RedisServer()
    let nodes = [try await Node("a", on: server), try await Node("b", on: server)]
    try await nodes[0].tier.store([("k", [1], [])])
    try Self.save(server)
    let epoch = nodes[0].tier.epoch
    for _ in 0..<4 {
      try Self.restore(server, for: nodes.map(\.tier))
      for node in nodes {
        _ = try await node.tier.beat(acknowledging: nil, trust: .seconds(60))
        #expect(try await node.entry("k")?.payload == [1])
      }
    }
    #expect(nodes.map(\.tier.epoch) == [epoch, epoch])
  }

  @Test func `a restart that many processes find at the same time is noted once`() async throws {
    let server = try RedisServer()
    let nodes = [try await Node("a", on: server), try await Node("b", on: server)]
    try await nodes[0].tier.store([("k", [1], [])])
    let epoch = nodes[0].tier.epoch
    try RedisShell.perform(["SCRIPT FLUSH"], on: server)
    var checks = (0..<20).map { nodes[$0 % 2].tier.restartCheck }
    func step(_ index: Int) async throws {
      let replies = await nodes[1].connection.send(checks[index].commands).map { result in
        (try? result.get()) ?? RESPValue.error(RedisError("NOSCRIPT No matching script.".utf8))
      }
      #expect(checks[index].answer(replies) == nil)
    }
    // Most of them look for the sign before the first one notes that it is missing.
    for index in checks.indices.dropLast(5) { for _ in 0..<2 { try await step(index) } }
    for index in checks.indices {
      while !checks[index].commands.isEmpty { try await step(index) }
      try await nodes[1].tier.remove(["none"])
    }
    let list = try RedisShell.reply("GET {s}:2:schemas", on: server)
    #expect(list.count { $0 == ":" } == 1)
    #expect(try await nodes[0].entry("k")?.payload == [1])
    #expect(nodes[0].tier.epoch == epoch)
  }

  /// Some nodes over a server that restarts, each with the value that it has seen last.
  private final class History {
    private let server: RedisServer
    private let tiers: [Tier]
    private var random: SeededRandom
    private var origin = 1
    private var floor: [Int]
    /// The events so far.
    private(set) var log: [String] = []

    init(of nodes: [Node], on server: RedisServer, seed: UInt64) throws {
      self.server = server
      try RedisShell.perform(["FLUSHALL", "SCRIPT FLUSH"], on: server)
      for node in nodes { node.connection.checked.withLock { $0.doubt() } }
      random = SeededRandom(seed: seed)
      tiers = nodes.enumerated().map { index, node in
        Tier(space: "s", schema: "1", node: "\(index)", route: Route(node.connection))
      }
      floor = nodes.map { _ in 0 }
    }

    /// Runs the server several times, with a loss after each run.
    ///
    /// - Returns: Whether a node was given an older value than before.
    func isBroken() async throws -> Bool {
      var isBroken = try await readsOlder(0)
      try `A space of a server that has restarted`.save(server)
      let runs = number(2...5)
      for run in 0..<runs {
        let count = number(1...6)
        // Often before the first token of the run.
        let save = number(0...1) * number(0...count)
        var reachable = tiers.indices.filter { _ in number(0...1) == 0 }
        if run == runs - 1 || reachable.isEmpty { reachable.append(number(0...2)) }
        for step in 0..<count {
          if step == save, number(0...1) == 0 {
            try `A space of a server that has restarted`.save(server)
            log.append("SAVE")
          }
          isBroken = try await change(reachable[number(0...reachable.count - 1)]) || isBroken
        }
        try `A space of a server that has restarted`.restore(server, for: tiers)
        log.append("RESTART")
        let skipped = UInt64.random(in: TierScripts.skips, using: &random)
        try await note(number(0...2), skipping: skipped)
      }
      let other = number(0...2)
      for _ in 0..<20 { try await tiers[other].remove(["none"]) }
      log.append("draw\(other)")
      for index in tiers.indices { isBroken = try await readsOlder(index) || isBroken }
      return isBroken
    }

    private func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }

    /// Notes a restart by one node, so that chance does not decide how many tokens are skipped.
    private func note(_ index: Int, skipping skipped: UInt64) async throws {
      let tier = tiers[index]
      let (nonce, knowledge) = tier.knowledgeWithNonce
      var check = RestartCheckState(
        tier.names,
        in: 0,
        nonce: nonce,
        knowledge: knowledge,
        skipping: skipped
      )
      while !check.commands.isEmpty {
        let replies = await tier.route.send(check.commands).map { result in
          (try? result.get()) ?? RESPValue.error(RedisError("NOSCRIPT No matching script.".utf8))
        }
        #expect(check.answer(replies) == nil)
      }
      log.append("note\(index)")
    }

    private func readsOlder(_ index: Int) async throws -> Bool {
      let value = try await value(index)
      log.append("get\(index)=\(value)")
      defer { floor[index] = max(floor[index], value) }
      return value < floor[index]
    }

    /// The value that a node gets, as a cache does: without a script, if that is possible.
    private func value(_ index: Int) async throws -> Int {
      var wish = SharedCache.Wish()
      wish.tags = ["t"]
      for _ in 0..<4 {
        if let entry = try await tiers[index].read(for: [("k", wish)])[0].get() {
          return Int(entry.payload[0])
        }
        switch try await tiers[index].look(for: [("k", wish)])[0].get() {
        case .entry(let entry): return Int(entry.payload[0])
        case .granted(let lease, _):
          let value = origin
          let fill = try await tiers[index].fill([UInt8(value)], under: lease, tags: ["t"])
          if fill == .stored { return value }
        // A lease of the history that was lost.
        default: try await tiers[index].remove(["k"])
        }
      }
      return origin
    }

    private func change(_ index: Int) async throws -> Bool {
      let tier = tiers[index]
      let kind = number(0...8)
      if (2...5).contains(kind) || kind == 7 {
        origin += 1
        floor[index] = origin
      }
      switch kind {
      case 0, 1: return try await readsOlder(index)
      case 2, 3: try await tier.remove(["k"])
      case 4: try await tier.remove(tags: ["t"])
      case 5: try await tier.outdate(["k"])
      case 6: _ = try await tier.beat(acknowledging: nil, trust: .seconds(1))
      case 7:
        if number(0...5) == 0 { try await tier.removeAll() } else { try await tier.remove(["k"]) }
      default: for _ in 0..<number(1...9) { try await tier.remove(["none"]) }
      }
      log.append("\(kind) by \(index), now \(origin)")
      return false
    }
  }

  @Test
  func `no node goes back to an older value, whatever was saved and lost, and who came first`()
    async throws
  {
    let server = try RedisServer()
    var nodes: [Node] = []
    for number in 0..<3 { nodes.append(try await Node("\(number)", on: server)) }
    // They contain a snapshot from between a restart and the next token.
    for seed in 420..<UInt64(480) {
      let history = try History(of: nodes, on: server, seed: seed)
      guard try await history.isBroken() else { continue }
      Issue.record("\(seed): \(history.log)")
      return
    }
  }
}
