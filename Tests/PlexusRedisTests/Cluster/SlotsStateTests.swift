import TestSupport
import Testing

@testable import PlexusRedis

struct `Slots of a cluster` {
  private let seed = RedisAddress.tcp(host: "seed", port: 1)

  private func server(_ host: String, _ port: Int64) -> RESPValue {
    .array([.string(Array(host.utf8)), .integer(port), .string(Array("name".utf8)), .array([])])
  }

  private func range(_ first: Int64, _ last: Int64, _ servers: RESPValue...) -> RESPValue {
    .array([.integer(first), .integer(last)] + servers)
  }

  @Test(arguments: [
    ("123456789", 12_739), ("", 0), ("prices", 3_628), ("{prices}:2:epoch", 3_628),
    ("{}a", SlotsState.slot(of: "{}a")), ("a{prices}b{sales}", 3_628), ("{sales}:stream", 2_067),
    ("{{prices}}", SlotsState.slot(of: "{prices")),
  ])
  func `the slot of a key is that of the text in its first braces`(key: String, slot: Int) {
    #expect(SlotsState.slot(of: key) == slot)
  }

  @Test func `empty braces, and braces that do not end, are part of a key`() {
    #expect(SlotsState.slot(of: "{}prices") != SlotsState.slot(of: "prices"))
    #expect(SlotsState.slot(of: "{prices") != SlotsState.slot(of: "prices"))
    #expect(SlotsState.slot(of: "a}{prices}") == SlotsState.slot(of: "prices"))
  }

  @Test(arguments: [
    ("MOVED 3999 127.0.0.1:6381", "127.0.0.1", 6_381, false), ("ASK 0 ::1:1", "::1", 1, true),
    ("MOVED 16383 redis-1.example:65535", "redis-1.example", 65_535, false),
    ("MOVED 5 :7000", "seed", 7_000, false), ("ASK 5 ?:7000", "seed", 7_000, true),
  ])
  func `a redirection names a server`(
    text: String,
    host: String,
    port: UInt16,
    isOnce: Bool
  ) throws {
    let redirection = try #require(Redirection(RedisError(text.utf8)))
    #expect(redirection.address(from: seed) == .tcp(host: host, port: port))
    #expect(redirection.isOnce == isOnce)
  }

  @Test(
    .guarantee(.clusterServersAreNotTrusted),
    arguments: [
      "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED 1 a", "MOVED 1 a:0",
      "MOVED 1 a:65536", "MOVED x a:1", "MOVED 1 a:1 b", "TRYAGAIN 1 a:1", "ERR x",
      "MOVED 1 \u{7F}:1", "MOVED 1 \(String(repeating: "a", count: 256)):1",
    ]
  )
  func `a redirection that names none is not followed`(text: String) {
    #expect(Redirection(RedisError(text.utf8)) == nil)
  }

  @Test func `a map says which master has a slot, and a redirection corrects it`() throws {
    var slots = try SlotsState([seed])
    #expect(slots.master(of: 5) == nil)
    let map = RESPValue.array([
      range(0, 5_460, server("a", 1), server("b", 2)), range(5_461, 16_382, server("", 3)),
    ])
    #expect(try slots.learn(map, from: seed))
    #expect(try !slots.learn(map, from: seed))
    #expect(slots.master(of: 0) == .tcp(host: "a", port: 1))
    #expect(slots.master(of: 5_460) == .tcp(host: "a", port: 1))
    #expect(slots.master(of: 5_461) == .tcp(host: "seed", port: 3))
    #expect(slots.master(of: 16_383) == nil)
    #expect(try slots.move(16_383, to: .tcp(host: "c", port: 4)))
    #expect(try !slots.move(16_383, to: .tcp(host: "c", port: 4)))
    #expect(slots.master(of: 16_383) == .tcp(host: "c", port: 4))
    #expect(slots.servers.map(\.description) == ["seed:1", "a:1", "seed:3", "c:4", "b:2"])
  }

  @Test(.guarantee(.clusterServersAreNotTrusted))
  func `masters that answer keep their slots whatever a server says`() throws {
    let (a, b) = (RedisAddress.tcp(host: "a", port: 1), RedisAddress.tcp(host: "b", port: 2))
    var slots = try SlotsState([seed])
    let map = RESPValue.array([range(0, 99, server("a", 1)), range(100, 199, server("b", 2))])
    _ = try slots.learn(map, from: seed)
    _ = try slots.move(5, to: b)
    #expect(try !slots.learn(map, from: seed, keeping: [a, b]))
    #expect(slots.master(of: 5) == b)
    #expect(slots.isMaster(a))
    // The other one has failed.
    let new = RESPValue.array([range(0, 199, server("c", 3)), range(200, 300, server("a", 1))])
    #expect(try slots.learn(new, from: seed, keeping: [a]))
    #expect(slots.master(of: 0) == a)
    #expect(slots.master(of: 5) == .tcp(host: "c", port: 3))
    #expect(slots.master(of: 100) == .tcp(host: "c", port: 3))
    #expect(slots.master(of: 250) == a)
    #expect(!slots.isMaster(b))
    slots.forget(0)
    #expect(slots.master(of: 0) == nil)
    #expect(slots.master(of: 1) == a)
    #expect(try slots.learn(new, from: seed, keeping: [a]))
    #expect(slots.master(of: 0) == .tcp(host: "c", port: 3))
  }

  @Test func `a server whose host name is not known is reached at its number`() throws {
    func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }
    var slots = try SlotsState([seed])
    let words = RESPValue.array([text("hostname"), text(""), text("ip"), text("10.0.0.7")])
    let master = RESPValue.array([text("?"), .integer(7), text("name"), words])
    let bare = RESPValue.array([text("?"), .integer(8), text("name"), .array([])])
    _ = try slots.learn(
      .array([range(0, 99, master), range(100, 199, bare)]),
      from: seed
    )
    #expect(slots.master(of: 0) == .tcp(host: "10.0.0.7", port: 7))
    #expect(slots.master(of: 100) == .tcp(host: "seed", port: 8))
  }

  @Test func `another server is asked after one that said nothing new for some times`() throws {
    var slots = try SlotsState([seed, .tcp(host: "other", port: 2)])
    var first: [String] = []
    for _ in 0..<12 {
      first.append(slots.servers[0].description)
      slots.turn()
    }
    #expect(Set(first) == ["seed:1", "other:2"])
    #expect(Array(first[0..<4]) == Array(first[8..<12]))
    #expect(Set(first[0..<4]).count == 1 && Set(first[4..<8]).count == 1)
  }

  @Test(.guarantee(.clusterServersAreNotTrusted)) func `a reply that is no map changes nothing`()
    throws
  {
    var slots = try SlotsState([seed])
    _ = try slots.learn(.array([range(0, 16_383, server("a", 1))]), from: seed)
    var ranges: [RESPValue] = [.integer(1), range(0, 1), range(0, 1, .array([.string([])]))]
    for (first, last) in [(-1, 1), (0, 16_384), (2, 1)] as [(Int64, Int64)] {
      ranges.append(range(first, last, server("b", 1)))
    }
    for (host, port) in [("b", 0), ("b", 65_536), ("b b", 1)] as [(String, Int64)] {
      ranges.append(range(0, 1, server(host, port)))
    }
    for reply in ranges.map({ RESPValue.array([$0]) }) + [.null, .integer(1), .array([])] {
      #expect(throws: RedisConnectionError.self) { try slots.learn(reply, from: seed) }
      #expect(slots.master(of: 0) == .tcp(host: "a", port: 1))
    }
  }

  @Test(.guarantee(.clusterServersAreNotTrusted)) func `a cluster has at most 1,024 servers`()
    throws
  {
    var slots = try SlotsState([seed])
    for port in 1...1_024 { _ = try slots.move(port, to: .tcp(host: "a", port: UInt16(port))) }
    #expect(throws: RedisConnectionError.self) {
      try slots.move(1_025, to: .tcp(host: "a", port: 1_025))
    }
    #expect(slots.master(of: 1_025) == nil)
    let ranges = (0..<1_025).map { range($0, $0, server("b", $0 + 1)) }
    #expect(throws: RedisConnectionError.self) { try slots.learn(.array(ranges), from: seed) }
    let replicas = RESPValue.array(
      [.integer(0), .integer(1)] + (1...1_026).map { server("c", $0) }
    )
    #expect(throws: RedisConnectionError.self) { try slots.learn(.array([replicas]), from: seed) }
    #expect(slots.master(of: 1) == .tcp(host: "a", port: 1))
  }

  @Test(.guarantee(.movedSlotsAreFollowed)) func `a map can have a range for each slot`() throws {
    var slots = try SlotsState([seed])
    let ranges = (0..<Int64(SlotsState.count)).map { slot -> RESPValue in
      let port = slot % 3 + 1
      return range(slot, slot, server("a", port), server("b", port))
    }
    #expect(try slots.learn(.array(ranges), from: seed))
    #expect(slots.master(of: 16_383) == .tcp(host: "a", port: 1))
    #expect(slots.servers.count == 7)
  }

  @Test(
    .guarantee(.clusterErrorsSayWhatToDo),
    arguments: [
      [], [.unix(path: "/run/redis")], [.cluster([.tcp(host: "a", port: 1)])],
      [.tcp(host: "a", port: 1), .sentinel(name: "main", [.tcp(host: "a", port: 1)])],
    ] as [[RedisAddress]]
  )
  func `a cluster needs the addresses of servers`(addresses: [RedisAddress]) {
    #expect(throws: RedisConnectionError.self) { try SlotsState(addresses) }
  }
}
