import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches whose keys another program has changed` {
  /// A process, as far as the server can tell.
  private struct Node: Sendable {
    let engine: RedisEngine
    let map: MultiplexerMap<String, String>
    let fetches = Log<String>()
    let errors = Log<String>()
    private let observation: Task<Void, Never>

    init(_ server: RedisServer, nearLease: Duration = .seconds(60)) async throws {
      var options = RedisOptions()
      options.commandTimeout = .seconds(60)
      options.nearLease = nearLease
      options.fetchLease = .seconds(60)
      engine = try RedisEngine(server.address, options: options)
      let (fetches, errors) = (fetches, errors)
      let cacher = engine.cacher(String.self, space: "values", schema: "1")
      map = MultiplexerMap(id: "values", cacher: cacher, tagging: Self.tags) { key in
        fetches.append(key)
        return "new"
      }
      let events = map.events()
      observation = Task {
        for await event in events { if case .cacherFailed = event { errors.append("\(event)") } }
      }
      await engine.becomesConnected()
    }

    /// Keys have tags by their first letters.
    @Sendable
    private static func tags(of key: String) -> [CacheTag] {
      [CacheTag(String(key.prefix(1)))]
    }

    func close() async throws {
      try await engine.close()
      observation.cancel()
    }
  }

  private static let entry = "{values}:2:e:1:values/bad"
  private static let lease = "{values}:2:l:1:values/bad"
  private static let fetch = "{values}:2:f:1:values/bad"
  private static let tag = "{values}:2:t:b"

  /// Commands of other programs on the keys of one entry.
  private static let damages: [[String]] = [
    ["SET \(entry) text"], ["DEL \(entry)", "RPUSH \(entry) x"],
    ["DEL \(entry)", "ZADD \(entry) 1 x"],
    ["HDEL \(entry) d", "HSET \(entry) v 99999999999999999999"], ["HSET \(entry) v x"],
    ["HSET \(entry) v 1000000"], ["HSET \(entry) o 99999999999999999999"], ["HSET \(entry) o x"],
    ["HSET \(entry) o 1000000"],
    ["DEL \(entry)", "RPUSH \(lease) x"], ["DEL \(entry)", "HSET \(lease) x x"],
    ["DEL \(entry)", "SET \(lease) text PX 86400000"],
    [
      "DEL \(entry)",
      #"EVAL "redis.call('SET', '\#(lease)', redis.call('GET', '{values}:2:epoch') .. ' x', 'PX', 86400000)" 0"#,
    ],
    ["DEL \(entry)", "SET \(fetch) text"], ["DEL \(entry)", "RPUSH \(fetch) x"],
    ["DEL \(tag)", "RPUSH \(tag) x"], ["HSET \(tag).x x x", "RENAME \(tag).x \(tag)"],
    ["SET \(tag) x"],
    [
      #"EVAL "redis.call('SET', '\#(tag)', redis.call('GET', '{values}:2:epoch') .. ' 1000000')" 0"#
    ],
    [
      #"EVAL "redis.call('SET', '\#(tag)', redis.call('GET', '{values}:2:epoch') .. ' 99999999999999999999')" 0"#
    ],
  ]

  @Test(.guarantee(.keysChangedByOthersAreFetchedOnce), arguments: damages)
  func `a damaged key is fetched once, and delays no other key`(
    damage: [String]
  ) async throws {
    let server = try RedisServer()
    let filler = try await Node(server)
    let keys = (0..<63).map { "\($0)" } + ["bad"]
    for key in keys { #expect(try await filler.map.request(key) == "new") }
    try RedisShell.perform(damage, on: server)
    let node = try await Node(server)
    // The look of a key that the server has: the node reads the next ones together.
    _ = try await node.map.request("0")
    try await withThrowingTaskGroup { group in
      for key in keys { group.addTask { try await node.map.request(key) } }
      for try await value in group { #expect(value == "new") }
    }
    #expect(node.fetches.entries == ["bad"])
    let other = try await Node(server)
    for key in keys { #expect(try await other.map.request(key) == "new") }
    #expect(other.fetches.entries == [])
    #expect(node.errors.entries + other.errors.entries == [])
  }

  @Test(.guarantee(.keysChangedByOthersAreFetchedOnce), arguments: damages)
  func `a damaged key can be cleared and refreshed`(damage: [String]) async throws {
    let server = try RedisServer()
    let node = try await Node(server)
    _ = try await node.map.request("bad")
    try RedisShell.perform(damage, on: server)
    try await node.map.clear("bad")
    #expect(try await node.map.request("bad") == "new")
    try RedisShell.perform(damage, on: server)
    let cacher = node.engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.outdate(["values/bad", "values/other"])
    #expect(try await (Node(server)).map.request("bad") == "new")
    #expect(node.errors.entries == [])
  }

  @Test(
    .guarantee(.keysChangedByOthersAreFetchedOnce),
    arguments: [
      "DEL {values}:2:epoch", "DEL {values}:2:tokens", "SET {values}:2:epoch text",
      "SET {values}:2:epoch ''",
      "SET {values}:2:epoch 99999999999999999999-a", "SET {values}:2:epoch 9-zzzzzzzzzzzzz",
      "SET {values}:2:epoch 9-a-b", "SET {values}:2:epoch -9-a", "SET {values}:2:epoch 9-A",
      "SET {values}:2:tokens text", "SET {values}:2:tokens ''", "SET {values}:2:tokens -5",
      "SET {values}:2:tokens 9223372036854775807", "SET {values}:2:tokens 99999999999999999999",
      "SET {values}:2:tokens 0x10", "RENAME list {values}:2:epoch", "RENAME list {values}:2:tokens",
      "RENAME list {values}:2:nodes", "RENAME list {values}:2:acks", "RENAME list {values}:2:fence",
      "SET {values}:2:fence text", "SET {values}:2:fence 99999999999999999999",
      "HSET {values}:2:acks gone x", "ZADD {values}:2:nodes -1 gone", "DEL {values}:2:nodes",
      "ZADD {values}:2:nodes +inf gone", "DEL {values}:2:nodes {values}:2:acks",
      "DEL {values}:2:schemas", "SET {values}:2:schemas text", "RENAME list {values}:2:schemas",
      "SET {values}:2:schemas 99999999999999999999", "FLUSHALL",
    ],
    [true, false]
  )
  func `a damaged space is used again, whether or not a process was there before`(
    damage: String,
    survives: Bool
  ) async throws {
    let server = try RedisServer()
    // A clear waits as long as processes can trust their copies whose registrations are lost.
    let old = try await Node(server, nearLease: .seconds(2))
    for key in ["a", "b"] { _ = try await old.map.request(key) }
    if !survives { try await old.close() }
    try RedisShell.perform(["RPUSH list x", damage], on: server)
    let a = try await Node(server, nearLease: .seconds(2))
    let b = try await Node(server, nearLease: .seconds(2))
    for key in ["a", "c"] { #expect(try await a.map.request(key) == "new") }
    let fetched = a.fetches.entries
    for key in ["a", "c"] { #expect(try await b.map.request(key) == "new") }
    // A process that was there before can raise the epoch once more, when it hears of the loss.
    #expect(survives || b.fetches.entries == [], "after \(fetched)")
    let repository = MuxRepository()
    a.map.register(in: repository)
    try await repository.clear(tags: ["a"], .everywhere)
    #expect(try await b.map.request("a") == "new")
    #expect(a.errors.entries + b.errors.entries == [])
    for node in [a, b, old] { try await node.close() }
  }

  @Test func `a fill stores after the loss of the scripts, and not after that of everything`()
    async throws
  {
    let server = try RedisServer()
    let node = try await Node(server)
    let cacher = node.engine.cacher(String.self, space: "other", schema: "1")
    for command in ["FLUSHALL", "SCRIPT FLUSH"] {
      guard
        case .granted(let lease, _)? = try await cacher.look(for: ["k": SharedCache.Wish()])["k"]
      else {
        Issue.record("There is no lease")
        return
      }
      try RedisShell.perform([command], on: server)
      let fill = try await cacher.fill(CacheEntry(value: "1", storedAt: .zero), under: lease)
      #expect(fill == (command == "FLUSHALL" ? .cleared : .stored))
      try await cacher.remove(.keys(["k"]), reach: .shared)
    }
  }
}
