import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches over a server whose operator interferes` {
  /// A process, as far as the server can tell, and the newest value that it has returned for each key.
  private final class Node {
    let engine: RedisEngine
    let map: MultiplexerMap<String, Int>
    let repository = MuxRepository()
    var newest: [String: Int] = [:]

    convenience init(
      _ server: RedisServer,
      _ options: RedisOptions,
      _ origin: Guarded<Int>
    ) async throws {
      try await self.init(server.address, options, origin)
    }

    init(_ address: RedisAddress, _ options: RedisOptions, _ origin: Guarded<Int>) async throws {
      engine = try RedisEngine(address, options: options)
      let cacher = engine.cacher(Int.self, space: "s", schema: "1")
      map = MultiplexerMap(id: "m", cacher: cacher, tagging: Self.tags) { _ in
        origin.withLock { $0 }
      }
      map.register(in: repository)
      await engine.becomesConnected()
    }

    @Sendable
    private static func tags(of key: String) -> [CacheTag] { [CacheTag(key)] }
  }

  /// The commands of an operator, some of which a server refuses.
  private static let commands = [
    "CLIENT KILL TYPE normal", "CLIENT PAUSE 30 ALL", "CLIENT PAUSE 30 WRITE", "CLIENT UNPAUSE",
    "FLUSHALL", "SCRIPT FLUSH", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0",
    "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "DEL {s}:2:epoch", "DEL {s}:2:tokens",
    "DEL {s}:2:acks", "DEL {s}:2:nodes", "DEL {s}:2:acks {s}:2:nodes", "DEL {s}:2:schemas",
    "DEL {s}:2:fence", "DEL {s}:2:t:a", "DEL {s}:2:e:1:m/a", "DEL {s}:2:l:1:m/a",
    "DEL {s}:2:f:1:m/a", "PERSIST {s}:2:l:1:m/a", "PEXPIRE {s}:2:e:1:m/b 1", "PEXPIRE {s}:2:t:b 1",
  ]

  @Test(
    .guarantee(.clearEverywhereOutlastsTrust),
    arguments: ["nodes", "acks", "nodes {s}:2:acks"]
  )
  func `a clear waits for a process whose registration was deleted`(
    deleted: String
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded(1)
    var options = RedisOptions()
    options.commandTimeout = .milliseconds(500)
    // The process that clears trusts its copies for a shorter time.
    options.nearLease = .seconds(1)
    let a = try await Node(server, options, origin)
    let proxy = try RedisProxy(server)
    options.nearLease = .seconds(4)
    let b = try await Node(proxy.address, options, origin)
    let monitor = try await RedisMonitor(server)
    for node in [a, b] { #expect(try await node.map.request("k") == 1) }
    // Both have acknowledged the epoch, and trust their copies.
    await monitor.acknowledgements(2, of: "s")
    #expect(try await b.map.request("k") == 1)
    proxy.stall(later: true)
    let beats = try await monitor.count(with: "lua", "\"ZADD\"", on: server)
    try RedisShell.perform(["DEL {s}:2:\(deleted)", "SET {s}:2:fence 0"], on: server)
    origin.withLock { $0 = 2 }
    // The registration of the first process is made again first, and tells nothing of the other one.
    await monitor.commands(beats + 1, with: "lua", "\"ZADD\"")
    try await a.repository.clearAll(.everywhere)
    #expect(try await b.map.request("k") == 2)
    proxy.cut()
    for node in [a, b] { try await node.engine.close() }
  }

  @Test(.guarantee(.faultyServersCauseNoOlderAnswers), arguments: 0..<8)
  func `no request fails, goes back, or returns what was cleared`(
    seed: UInt64
  ) async throws {
    let server = try RedisServer()
    var random = SeededRandom(seed: seed)
    var options = RedisOptions()
    options.nearLease = .milliseconds(400)
    options.fetchLease = .milliseconds(400)
    let origin = Guarded(1)
    var nodes: [Node] = []
    let proxy = try RedisProxy(server)
    for address in [server.address, server.address, proxy.address] {
      nodes.append(try await Node(address, options, origin))
    }
    // The value before the last clear of each key.
    var cleared: [String: Int] = [:]
    var history: [String] = []
    func request(_ key: String, of number: Int) async throws {
      let value = try await nodes[number].map.request(key)
      history.append("\(number) gets \(key) = \(value)")
      #expect(value >= nodes[number].newest[key] ?? 0, "\(history.suffix(30))")
      #expect(value >= cleared[key] ?? 0, "\(history.suffix(30))")
      #expect(value <= origin.withLock { $0 })
      nodes[number].newest[key] = value
    }
    for _ in 0..<300 {
      let number = Int.random(in: 0..<3, using: &random)
      let node = nodes[number]
      let key = ["a", "b"].randomElement(using: &random) ?? ""
      switch Int.random(in: 0..<100, using: &random) {
      case ..<60:
        try await request(key, of: number)
      case ..<70:
        origin.withLock { $0 += 1 }
      case ..<74:
        let value = origin.withLock { $0 }
        guard (try? await node.repository.clearAll(.everywhere)) != nil else {
          history.append("\(number) fails to clear all")
          continue
        }
        history.append("\(number) clears all before \(value)")
        for key in ["a", "b"] { cleared[key] = value }
        for other in [2, 1, 0] { try await request(key, of: other) }
      case ..<78:
        let value = origin.withLock { $0 }
        guard (try? await node.repository.clear(tags: [CacheTag(key)], .everywhere)) != nil else {
          history.append("\(number) fails to clear \(key)")
          continue
        }
        history.append("\(number) clears \(key) before \(value)")
        cleared[key] = value
        for other in [2, 1, 0] { try await request(key, of: other) }
      case ..<80:
        try? await node.map.clear(key)
      case ..<82:
        _ = try await node.map.refresh(key).request(key)
      case ..<84:
        proxy.stall(later: Bool.random(using: &random))
        history.append("2 is cut off")
      case ..<87:
        if Bool.random(using: &random) { proxy.resume() } else { proxy.cut() }
        history.append("2 is back")
      default:
        let command = Self.commands.randomElement(using: &random) ?? ""
        _ = try RedisShell.run(command, on: server)
        history.append(command)
      }
    }
    proxy.cut()
    // The server can refuse what is owed.
    for node in nodes { try? await node.engine.close() }
  }
}
