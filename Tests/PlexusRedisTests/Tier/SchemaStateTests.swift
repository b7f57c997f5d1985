import Plexus
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Schemas of a space` {
  private typealias Node = `A space of the shared tier`.Node

  private let server: RedisServer
  private let old: Node
  private let new: Node

  init() async throws {
    server = try RedisServer()
    old = try await Node("a", on: server)
    new = try await Node("b", on: server, schema: "2")
  }

  /// Sends a command as another program does.
  private func send(_ words: RedisCommand.Argument...) async throws -> RESPValue {
    guard case .text(let name) = words[0] else { return .null }
    return try await old.connection.send(RedisCommand(name, Array(words.dropFirst())))
  }

  /// Stores an entry of each schema, of which another process looks for the one.
  private func fill(_ key: String = "k") async throws {
    for (node, payload) in [(old, 1), (new, 2)] as [(Node, UInt8)] {
      let lease = try await node.lease(key)
      #expect(try await node.tier.fill([payload], under: lease) == .stored)
    }
  }

  private func payloads(_ key: String = "k") async throws -> [[UInt8]?] {
    [try await old.entry(key)?.payload, try await new.entry(key)?.payload]
  }

  @Test func `schemas of a space have entries, leases and failures of their own`() async throws {
    try await fill()
    #expect(try await payloads() == [[1], [2]])
    for (node, payload) in [(old, 1), (new, 2)] as [(Node, UInt8)] {
      #expect(try await node.read("k")?.payload == [payload])
    }
    let lease = try await old.lease("failing")
    let version = lease.version
    try await old.tier.release([lease], because: [7])
    guard case .granted = try await new.look("failing", { $0.awaited = version }) else {
      Issue.record("The failure of another schema")
      return
    }
    #expect(
      try await old.look("failing") { $0.awaited = version } == .failedElsewhere(payload: [7])
    )
  }

  @Test(.guarantee(.clearsReachAllSchemas))
  func `schemas of a space lose their entries and leases by a removal in one of them`() async throws
  {
    for (remover, other) in [(old, new), (new, old)] {
      try await fill()
      let lease = try await other.lease("open")
      _ = try await other.read("k")
      try await remover.tier.remove(["k", "open"])
      #expect(try await payloads() == [nil, nil])
      #expect(try await other.tier.fill([3], under: lease) == .superseded)
      await other.change(of: other.tier.names.entry("k"))
      try await remover.tier.remove(["k", "open"])
    }
  }

  @Test(.guarantee(.clearsReachAllSchemas))
  func `schemas of a space keep their entries as fallbacks after an outdating in one of them`()
    async throws
  {
    try await fill()
    let lease = try await new.lease("open")
    try await old.tier.outdate(["k", "open", "none"])
    #expect(try await payloads() == [nil, nil])
    #expect(try await new.tier.fill([3], under: lease) == .superseded)
    guard case .nothing(let previous?) = try await new.look("k", { $0.takesLease = false }) else {
      Issue.record("The entry is gone")
      return
    }
    #expect(previous.payload == [2])
    // An entry that is not there gets no mark.
    #expect(try await send("EXISTS", .text(old.tier.names.entry("none"))).integer == 0)
  }

  @Test(.guarantee(.clearsReachAllSchemas))
  func `schemas are outdated by a value that is stored in another one, and not by a fill`()
    async throws
  {
    try await fill()
    let lease = try await new.lease("open")
    try await old.tier.store([("k", [3], []), ("open", [3], [])])
    #expect(try await payloads() == [[3], nil])
    #expect(try await new.tier.fill([4], under: lease) == .superseded)
    let renewal = try await new.lease("k")
    #expect(try await new.tier.fill([5], under: renewal) == .stored)
    #expect(try await payloads() == [[3], [5]])
  }

  @Test func `schemas lose what has a tag that one of them removes, and everything by one removal`()
    async throws
  {
    try await old.tier.store([("k", [1], ["t"])])
    try await new.tier.store([("l", [2], ["t"])])
    try await old.tier.remove(tags: ["t"])
    #expect(try await new.entry("l") { $0.tags = ["t"] } == nil)
    try await old.tier.remove(["k"])
    try await fill()
    try await new.tier.removeAll()
    #expect(try await payloads() == [nil, nil])
  }

  @Test(.guarantee(.clearsReachAllSchemas))
  func `schemas that a process has not heard of are found by its removals`() async throws {
    try await fill()
    for number in 3..<12 {
      let node = try await Node("c", on: server, schema: "\(number):")
      try await node.tier.store([("k", [1], [])])
      try await node.tier.store([("k", [2], [])])
      #expect(try await node.read("k")?.payload == [2])
      try await old.tier.remove(["other", "k"])
      #expect(try await node.entry("k") == nil)
      let lease = try await node.lease("k")
      try await old.tier.outdate(["k"])
      #expect(try await node.tier.fill([3], under: lease) == .superseded)
    }
  }

  @Test(.guarantee(.clearsReachAllSchemas), arguments: ["", "x", "-1"])
  func `schemas of a space lose everything if the server has lost their list`(
    list: String
  ) async throws {
    try await fill()
    let lease = try await new.lease("open")
    let schemas = RedisCommand.Argument.text(old.tier.names.schemas)
    _ = list.isEmpty ? try await send("DEL", schemas) : try await send("SET", schemas, .text(list))
    try await old.tier.remove(["k", "open"])
    #expect(try await new.tier.fill([3], under: lease) != .stored)
    #expect(try await payloads() == [nil, nil])
    try await fill()
    try await old.tier.remove(["k"])
    #expect(try await payloads() == [nil, nil])
  }

  @Test func `schemas that are no longer used are dropped from the list`() async throws {
    try await fill()
    let schemas = RedisCommand.Argument.text(old.tier.names.schemas)
    _ = try await send("SET", schemas, "60000 ancient=1 2=99999999999999")
    let lease = try await old.lease("x")
    #expect(try await old.tier.fill([1], under: lease) == .stored)
    let list = try #require(try await send("GET", schemas).text)
    #expect(Set(TierNames.schemas(in: list)) == ["1", "2"])
    #expect(list.hasPrefix("60000 "))
  }

  @Test(.guarantee(.foreignLayoutsAreUntouched))
  func `schemas of another layout are neither read nor changed`() async throws {
    let commands = [
      "SET {s}:epoch 99-a", "SET {s}:tokens 1000", "SET {s}:fence 7", "SET {s}:t:t 99-a_5",
      "HSET {s}:e:k e 99-a v 5 t 1 s 1 d old", "SET {s}:l:k 99-a_x:9", "HSET {s}:f:k v 9 d failure",
      "ZADD {s}:nodes -2 '' 99999999999999 other", "HSET {s}:acks '' 0 other 99-a_7",
    ]
    try RedisShell.perform(commands, on: server)
    let keys = ["epoch", "tokens", "fence", "t:t", "e:k", "l:k", "f:k", "nodes", "acks"]
      .map { "{s}:\($0)" }
    func dumps() async throws -> [RESPValue] {
      var dumps: [RESPValue] = []
      for key in keys { dumps.append(try await send("DUMP", .text(key))) }
      return dumps
    }
    let before = try await dumps()
    #expect(try await payloads() == [nil, nil])
    try await fill()
    #expect(try await payloads() == [[1], [2]])
    let beat = try await old.tier.beat(acknowledging: nil, trust: .seconds(60))
    #expect(beat.loss == nil)
    let fence = try await old.tier.fence()
    _ = try await old.tier.beat(acknowledging: fence, trust: .seconds(60))
    #expect(try await old.tier.laggards(behind: fence).nodes == [])
    try await old.tier.outdate(["k"])
    try await old.tier.remove(["k"])
    try await old.tier.remove(tags: ["t"])
    try await old.tier.removeAll()
    try await old.tier.leave()
    #expect(try await dumps() == before)
    #expect(!before.contains(.null))
  }
}
