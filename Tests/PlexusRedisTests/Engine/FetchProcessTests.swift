import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes that fetch over a Redis server` {
  @Test(.guarantee(.announcementsWakeNodes))
  func `processes that wait for a fetch ask nothing until its value is announced`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let monitor = try await RedisMonitor(server)
    var nodes: [NodeProcess] = []
    // The lease lasts longer than the test: a process that nothing wakes does not answer. On a busy machine, too, the
    // heartbeats keep the trust in the copies.
    for _ in 0..<4 {
      nodes.append(try await NodeProcess(server, nearLease: 4_000, fetchLease: 1_000_000))
    }
    await monitor.acknowledgements(4)
    try origin.hold(true)
    try nodes[0].send("get k")
    await nodes[0].answers("fetching")
    for node in nodes[1...] { try node.send("get k") }
    // Each of them has found the lease.
    await monitor.looks(for: "k", by: 4)
    // Those of the heartbeats, which renew the lease, do not name the entry.
    func commands() async throws -> Int {
      try await monitor.count(with: "unix:", ":e:1:values/k", on: server)
    }
    let before = try await commands()
    // Time passes: two heartbeats of each process.
    let beats = try await monitor.count(with: "\"HELLO\"", on: server)
    await monitor.commands(beats + 2 * 4, with: "\"HELLO\"")
    #expect(try await commands() == before)
    let counts = nodes.map(\.answerCount)
    try nodes[0].send("admit")
    for (node, count) in zip(nodes, counts) { #expect(await node.nextAnswer(after: count) == "1") }
    // One fill, once more with its script, which the server does not know, and at most two round trips of each process
    // that has waited.
    #expect(try await commands() <= before + 2 + 3 * 2)
    #expect(try origin.fetchCount == 1)
  }

  @Test func `a process whose fetch was detached is woken by a clear of its tag`() async throws {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.nearLease = .seconds(60)
    // The lease lasts longer than the test.
    options.fetchLease = .seconds(1_000)
    let holder = try RedisEngine(server.address, options: options)
    let cacher = holder.cacher(String.self, space: "values", schema: "1")
    let gate = Gate()
    let map = MultiplexerMap(
      id: "values",
      cacher: cacher,
      tagging: { (key: String) in [CacheTag(key)] },
      onKeyFetch: { _ in
        try await gate.wait()
        return "held"
      }
    )
    await holder.becomesConnected()
    let node = try await CacheNode(server.address) { _ in "own" }
    await monitor.acknowledgements(2)
    let held = Task { try await map.request("k") }
    await monitor.commands(1, with: "unix:", "\"EVAL", "l:1:values/k")
    async let value = node.map.request("k")
    await monitor.commands(2, with: "unix:", "\"EVAL", "l:1:values/k")
    // It looks again, without an entry in memory.
    try await cacher.remove(.tags(["other"]), reach: .everywhere)
    for number in 0..<3 { _ = try await node.map.request("other \(number)") }
    try await cacher.remove(.tags(["k"]), reach: .shared)
    #expect(try await value == "own")
    gate.open()
    _ = await held.result
    try await node.close()
    try await holder.close()
  }

  @Test(
    .guarantee(.outdatedLeasesStoreNothing),
    arguments: ["clear k", "clear", "refresh k", "get k"]
  )
  func `a fetch of a process that was stopped stores nothing over a later change`(
    change: String
  ) async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let monitor = try await RedisMonitor(server)
    // Only a lease that is lost lets another process fetch.
    let lease = change == "get k" ? 500 : 60_000
    let stopped = try await NodeProcess(server, nearLease: 500, fetchLease: lease)
    let other = try await NodeProcess(server)
    try origin.hold(true)
    try stopped.send("get k")
    await stopped.answers("fetching")
    stopped.stop()
    try origin.hold(false)
    try origin.set("2")
    switch change {
    case "refresh k":
      try other.send(change)
      await monitor.commands(1, with: "lua", "\"DEL\"", ":l:1:values/k")
    case "get k": #expect(try await other.ask(change) == "2")
    default: #expect(try await other.ask(change) == "cleared")
    }
    // The value is on its way before the process hears of anything.
    try stopped.send("admit")
    stopped.goOn()
    await stopped.answers("1")
    let newcomer = try await NodeProcess(server)
    for node in [newcomer, other, stopped] { #expect(try await node.ask("get k") == "2") }
    #expect(try origin.fetchCount == 2)
  }

  @Test(
    .guarantee(.failuresReachAllNodes),
    arguments: [
      ("offline", "error: offline, no connection"),
      ("missing", "error: missing, no failure of the origin"),
    ]
  )
  func `a failed fetch fails once for all processes that wait, with its kind`(
    failure: String,
    answer: String
  ) async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let monitor = try await RedisMonitor(server)
    var nodes: [NodeProcess] = []
    for _ in 0..<4 { nodes.append(try await NodeProcess(server)) }
    try origin.set(failure)
    try origin.hold(true)
    try nodes[0].send("get k")
    await nodes[0].answers("fetching")
    // From now on, a process that fetches does not wait.
    try origin.hold(false)
    for node in nodes[1...] { try node.send("get k") }
    await monitor.looks(for: "k", by: 4)
    let counts = nodes.map(\.answerCount)
    try nodes[0].send("admit")
    for (node, count) in zip(nodes, counts) {
      #expect(await node.nextAnswer(after: count) == answer)
    }
    #expect(try origin.fetchCount == 1)
    try origin.set("2")
    for node in nodes { #expect(try await node.ask("get k") == "2") }
    #expect(try origin.fetchCount == 2)
  }
}
