import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes whose Redis server or clock has a fault` {
  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a process that hears nothing follows a clear within its lease`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let monitor = try await RedisMonitor(server)
    let proxy = try RedisProxy(server)
    let lease = Duration.milliseconds(500)
    let deaf = try await NodeProcess(server, through: proxy, nearLease: 500, commandTimeout: 250)
    let node = try await NodeProcess(server)
    await monitor.acknowledgements(2)
    #expect(try await deaf.ask("get k") == "1")
    proxy.stall()
    try origin.set("2")
    // The clear waits for no other process.
    #expect(try await node.ask("clear k") == "cleared")
    let cleared = ContinuousClock.now
    while true {
      let asked = ContinuousClock.now
      guard try await deaf.ask("get k") == "1" else { break }
      #expect(asked - cleared < lease)
    }
    #expect(deaf.lastAnswer == "2")
    proxy.resume()
    for _ in 0..<20 { #expect(try await deaf.ask("get k") == "2") }
    #expect(try await node.ask("get k") == "2")
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a clear that does not reach the server fails, and is made up for`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let proxy = try RedisProxy(server)
    let remote = try await NodeProcess(server, through: proxy)
    let other = try await NodeProcess(server)
    for node in [remote, other] { #expect(try await node.ask("get k") == "1") }
    proxy.refuse()
    #expect(try await remote.ask("clear k").hasPrefix("error: "))
    try origin.set("2")
    #expect(try await remote.ask("get k") == "2")
    #expect(try await other.ask("get k") == "1")
    proxy.endRefusal()
    // No further call is needed.
    while try await other.ask("get k") == "1" { await Task.detached {}.value }
    #expect(other.lastAnswer == "2")
    #expect(try await remote.ask("get k") == "2")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a clear waits for a process whose registration the server has lost`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let monitor = try await RedisMonitor(server)
    let proxy = try RedisProxy(server)
    let node = try await NodeProcess(server, nearLease: 3_000)
    let deaf = try await NodeProcess(
      server,
      through: proxy,
      nearLease: 3_000,
      commandTimeout: 250
    )
    await monitor.acknowledgements(2)
    for node in [node, deaf] { #expect(try await node.ask("get k") == "1") }
    proxy.stall()
    #expect(try await deaf.ask("get k") == "1")
    _ = try RedisShell.run("FLUSHALL", on: server)
    try origin.set("2")
    // Another key, for which the node has to ask: it has heard of the loss.
    _ = try await node.ask("get other")
    #expect(try await node.ask("clear") == "cleared")
    #expect(try await deaf.ask("get k") == "2")
    proxy.resume()
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `a process does not go back to what the server had when it hung`() async throws {
    let (server, origin, node) = try await NodeProcess.behindHangingServer()
    // What the server has is not even used instead of an error.
    try origin.set("offline")
    server.resume()
    let monitor = try await RedisMonitor(server)
    func looks() async throws -> Int {
      try await monitor.count(with: "lua", "\"HMGET\"", ":e:1:values/k", on: server)
    }
    let before = try await looks()
    repeat {
      #expect(["2", "error: offline, no connection"].contains(try await node.ask("get k")))
    } while try await looks() < before + 3
    // A process that has returned nothing newer uses it.
    let newcomer = try await NodeProcess(server)
    #expect(["1", "error: offline, no connection"].contains(try await newcomer.ask("get k")))
    try origin.set("3")
    while try await node.ask("get k") != "3" {}
    for _ in 0..<20 { #expect(try await node.ask("get k") == "3") }
  }

  @Test(
    .guarantee(.engineMeasuresAge),
    .enabled(if: SkewedClock.compiler != nil, "there is no C compiler, or no LD_PRELOAD")
  )
  func `processes whose wall clocks are wrong share values, leases and clears`() async throws {
    let day = 86_400
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let clocks = [
      try SkewedClock(ahead: 0), try SkewedClock(ahead: day), try SkewedClock(ahead: -day),
    ]
    var nodes: [NodeProcess] = []
    for clock in clocks {
      nodes.append(try await NodeProcess(server, nearLease: 1_000, clock: clock))
    }
    var times: [Int] = []
    for node in nodes { times.append(try #require(Int(try await node.ask("clock")))) }
    #expect(times[1] - times[0] > day / 2 && times[0] - times[2] > day / 2)
    var fetchCount = 0
    func expect(_ value: String, for key: String) async throws {
      for node in nodes { #expect(try await node.ask("get \(key)") == value) }
      fetchCount += 1
      #expect(try origin.fetchCount == fetchCount)
    }
    for (number, writer) in nodes.enumerated() {
      // A value of any process is fresh for all others, and the last clear counts.
      try origin.set("\(number).1")
      #expect(try await writer.ask("get \(number)") == "\(number).1")
      try await expect("\(number).1", for: "\(number)")
      try origin.set("\(number).2")
      #expect(try await writer.ask("clear") == "cleared")
      try await expect("\(number).2", for: "\(number)")
    }
    // The lease of the process whose clock is behind is not over for the others.
    let monitor = try await RedisMonitor(server)
    try origin.hold(true)
    try nodes[2].send("get held")
    await nodes[2].answers("fetching")
    try origin.hold(false)
    let counts = nodes.map(\.answerCount)
    for node in nodes[..<2] { try node.send("get held") }
    await monitor.looks(for: "held", by: 3)
    try nodes[2].send("admit")
    for (node, count) in zip(nodes, counts) {
      #expect(await node.nextAnswer(after: count) == "2.2")
    }
    try await expect("2.2", for: "held")
    // The clocks jump: the values stay fresh.
    for (clock, days) in zip(clocks, [2, -2, 0]) { try clock.set(ahead: days * day) }
    for node in nodes { #expect(try await node.ask("get 2") == "2.2") }
    #expect(try origin.fetchCount == fetchCount)
  }

  @Test(.guarantee(.foreignEntriesAreMisses))
  func `a damaged entry is a miss for every process`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let writer = try await NodeProcess(server)
    let readers = [try await NodeProcess(server), try await NodeProcess(server)]
    let damages = [
      "HSET * d garbage", "HSET * d {}", "HDEL * d", "HSET * t yesterday", "HDEL * t",
      "HSET * v 99999999999999999999", "HSET * v -1", "HSET * e garbage", "HDEL * e", "SET * text",
      "LPUSH * text",
    ]
    for (number, damage) in damages.enumerated() {
      try origin.set("1")
      #expect(try await writer.ask("get \(number)") == "1")
      try origin.set("2")
      let entry = "{values}:2:e:1:values/\(number)"
      if damage.hasPrefix("LPUSH") { _ = try RedisShell.run("DEL \(entry)", on: server) }
      try RedisShell.perform([damage.replacing("*", with: entry)], on: server)
      for node in readers { #expect(try await node.ask("get \(number)") == "2") }
    }
    for damage in ["garbage", "-", "99999999999999999999-a"] {
      try origin.set("1")
      #expect(try await writer.ask("get \(damage)") == "1")
      try origin.set("2")
      _ = try RedisShell.run("SET {values}:2:epoch \(damage)", on: server)
      for node in readers { #expect(try await node.ask("get \(damage)") == "2") }
    }
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the bytes that wait for a stopped server have a limit, and no request fails`()
    async throws
  {
    let server = try RedisServer()
    _ = try OriginFiles(server)
    let node = try await NodeProcess(server, commandTimeout: 1_000, outboxBytes: 256 << 10)
    server.suspend()
    // More than the outbox and the system hold: 6 MB.
    let count = node.answerCount
    for number in 0..<200 {
      try node.send("get \(number)-\(String(repeating: "k", count: 30 << 10))")
    }
    var statuses = 0
    while node.answerCount < count + statuses + 200 {
      let status = try await node.ask("status", for: "status ")
      statuses += 1
      #expect(try #require(Int(status.split(separator: " ")[0])) <= 256 << 10)
    }
    #expect(node.allAnswers[count...].count { $0 == "1" } == 200)
    server.resume()
  }
}
