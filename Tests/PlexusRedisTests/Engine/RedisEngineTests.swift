import Plexus
import PlexusRedis
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches over a Redis server` {
  /// A process, as far as the server can tell.
  private struct Node: Sendable {
    let engine: RedisEngine
    let map: MultiplexerMap<String, String>
    let fetches = Log<String>()
    let gate = Gate()

    init(
      _ server: RedisServer,
      schema: String = "1",
      policy: CachePolicy = CachePolicy(),
      nearLease: Duration = .seconds(60),
      fetchLease: Duration = .seconds(60),
      fetch: @escaping @Sendable (String) throws -> String
    ) async throws {
      var options = RedisOptions()
      // Tests do not depend on how busy the machine is.
      options.commandTimeout = .seconds(60)
      options.nearLease = nearLease
      options.fetchLease = fetchLease
      engine = try RedisEngine(server.address, options: options)
      var policy = policy
      policy.storageTimeout = .seconds(120)
      gate.open()
      let (fetches, gate) = (fetches, gate)
      map = MultiplexerMap(
        id: "values",
        policy: policy,
        cacher: engine.cacher(String.self, space: "values", schema: schema),
        tagging: Self.tags
      ) { key in
        fetches.append(key)
        try await gate.wait()
        return try fetch(key)
      }
      await engine.becomesConnected()
    }

    /// Keys have tags by their first letters.
    @Sendable
    private static func tags(of key: String) -> [CacheTag] {
      [CacheTag(String(key.prefix(1)))]
    }

    var fetchCount: Int { fetches.count }
  }

  /// Returns an engine that is connected, and whose commands have time, however busy the machine is.
  private func connected(
    to server: RedisServer,
    fetchLease: Duration = RedisOptions().fetchLease
  ) async throws -> RedisEngine {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.fetchLease = fetchLease
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    return engine
  }

  @Test(.guarantee(.enginesAreCheckedByOneSuite), arguments: SharedCacherConformance.Rule.allCases)
  func `caches over a Redis server pass the conformance suite`(
    rule: SharedCacherConformance.Rule
  ) async throws {
    let server = try RedisServer()
    // Leases of many keys are still held when a busy machine looks for them again.
    let fetchLease = rule == .manyKeys ? .seconds(60) : RedisOptions().fetchLease
    let suite = SharedCacherConformance { count in
      var nodes: [any SharedCacher<String>] = []
      for _ in 0..<count {
        let engine = try await connected(to: server, fetchLease: fetchLease)
        nodes.append(engine.cacher(String.self, space: "space", schema: "1"))
      }
      return nodes
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.nodesFetchOnce)) func `one fetch serves all nodes`() async throws {
    let server = try RedisServer()
    let a = try await Node(server) { _ in "1" }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    async let first = a.map.request("k")
    await a.gate.arrivals(1)
    try await withThrowingTaskGroup { group in
      for node in [a, b, b] { group.addTask { try await node.map.request("k") } }
      a.gate.open()
      for try await value in group { #expect(value == "1") }
    }
    #expect(try await first == "1")
    #expect(b.fetchCount == 0)
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `after a clear everywhere no node over a Redis server answers with an older value`()
    async throws
  {
    let server = try RedisServer()
    let origin = Guarded("1")
    let nodes = [
      try await Node(server) { _ in origin.withLock { $0 } },
      try await Node(server) { _ in origin.withLock { $0 } },
      try await Node(server) { _ in origin.withLock { $0 } },
    ]
    let repository = MuxRepository()
    nodes[0].map.register(in: repository)
    for round in 2..<20 {
      for node in nodes { _ = try await node.map.request("k") }
      origin.withLock { $0 = "\(round)" }
      try await repository.clearAll(.everywhere)
      for node in nodes { #expect(try await node.map.request("k") == "\(round)") }
    }
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `clears everywhere by several nodes at once all end`() async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    var nodes: [Node] = []
    for _ in 0..<3 { nodes.append(try await Node(server) { _ in origin.withLock { $0 } }) }
    for round in 2..<10 {
      for node in nodes { _ = try await node.map.request("k") }
      origin.withLock { $0 = "\(round)" }
      try await withThrowingTaskGroup { group in
        for node in nodes {
          let repository = MuxRepository()
          node.map.register(in: repository)
          group.addTask { try await repository.clearAll(.everywhere) }
          group.addTask { try await repository.clear(tags: ["k"], .everywhere) }
        }
        try await group.waitForAll()
      }
      for node in nodes { #expect(try await node.map.request("k") == "\(round)") }
    }
  }

  // The accent is a tag that would form a character with the separator before it.
  @Test(
    .guarantee(.tagRemovalsReachEveryNode),
    arguments: [ClearReach.shared, .everywhere],
    ["a", "\u{301}"]
  )
  func `a cleared tag is gone for every node of a Redis server, also without values in memory`(
    reach: ClearReach,
    tag: String
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    let fetch: @Sendable (String) -> String = { _ in origin.withLock { $0 } }
    do {
      let filler = try await Node(server, fetch: fetch)
      for key in ["\(tag)1", "b1"] { _ = try await filler.map.request(key) }
      try await filler.engine.close()
    }
    let (a, b) = (try await Node(server, fetch: fetch), try await Node(server, fetch: fetch))
    let repository = MuxRepository()
    a.map.register(in: repository)
    for round in 2..<6 {
      _ = try await b.map.request("\(tag)2")
      origin.withLock { $0 = "\(round)" }
      try await repository.clear(tags: [CacheTag(tag)], reach)
      // With the reach of the engine, a node follows as soon as it hears of it.
      while reach == .shared, try await b.map.request("\(tag)2") != "\(round)" {
        await Task.detached {}.value
      }
      #expect(try await b.map.request("\(tag)2") == "\(round)")
      #expect(try await b.map.request("\(tag)1") == "\(round)")
      #expect(try await a.map.request("\(tag)1") == "\(round)")
      // Another tag.
      #expect(try await a.map.request("b1") == "1")
    }
  }

  @Test(.guarantee(.everyTextIsAKey))
  func `keys and tags that are equal are the same on every node, however they are encoded`()
    async throws
  {
    let server = try RedisServer()
    let origin = Guarded("1")
    let fetch: @Sendable (String) -> String = { _ in origin.withLock { $0 } }
    let (a, b) = (try await Node(server, fetch: fetch), try await Node(server, fetch: fetch))
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    #expect(try await a.map.request(composed) == "1")
    #expect(try await b.map.request(decomposed) == "1")
    #expect(a.fetchCount + b.fetchCount == 1)
    let repository = MuxRepository()
    a.map.register(in: repository)
    origin.withLock { $0 = "2" }
    try await a.map.clear(composed)
    while try await b.map.request(decomposed) == "1" { await Task.detached {}.value }
    #expect(try await b.map.request(decomposed) == "2")
    origin.withLock { $0 = "3" }
    try await repository.clear(tags: [CacheTag(decomposed)], .everywhere)
    for node in [a, b] { #expect(try await node.map.request(composed) == "3") }
    #expect(a.fetchCount + b.fetchCount == 3)
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode))
  func `a value that was fetched before its tag was cleared is stored nowhere`()
    async throws
  {
    let server = try RedisServer()
    let a = try await Node(server) { _ in "old" }
    let b = try await Node(server) { _ in "new" }
    a.gate.close()
    async let old = a.map.request("a1")
    await a.gate.arrivals(1)
    let repository = MuxRepository()
    b.map.register(in: repository)
    try await repository.clear(tags: ["a"], .everywhere)
    #expect(try await b.map.request("a2") == "new")
    a.gate.open()
    #expect(try await old == "old")
    #expect(try await b.map.request("a1") == "new")
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `the removal of a key or a tag is not undone by an old snapshot`() async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    let fetch: @Sendable (String) -> String = { _ in origin.withLock { $0 } }
    let (a, b) = (try await Node(server, fetch: fetch), try await Node(server, fetch: fetch))
    for key in ["k", "a1"] { _ = try await a.map.request(key) }
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
    origin.withLock { $0 = "2" }
    try await a.map.clear("k")
    try await a.map.clear(tags: ["a"])
    server.kill()
    await a.engine.becomesIsolated()
    try server.start()
    await a.engine.becomesConnected()
    // Whatever the node hears first, it does not go back.
    for key in ["k", "a1"] { #expect(try await a.map.request(key) == "2") }
    await b.engine.becomesConnected()
    for key in ["k", "a1"] { #expect(try await b.map.request(key) == "2") }
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `a snapshot of Redis from between a lease and its fill makes no node go back`()
    async throws
  {
    let server = try RedisServer()
    let origin = Guarded("1")
    let fetch: @Sendable (String) -> String = { _ in origin.withLock { $0 } }
    let node = try await Node(server, fetchLease: .milliseconds(200), fetch: fetch)
    #expect(try await node.map.request("k") == "1")
    origin.withLock { $0 = "2" }
    var policy = CachePolicy()
    policy.timeToLive = .zero
    let other = try await Node(
      server,
      policy: policy,
      fetchLease: .milliseconds(200),
      fetch: fetch
    )
    // The first value is still fresh for the first node.
    other.gate.close()
    let renewal = Task { try await other.map.request("k") }
    await other.gate.arrivals(1)
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
    other.gate.open()
    #expect(try await renewal.value == "2")
    #expect(try await node.map.request("k") == "2")
    server.kill()
    await node.engine.becomesIsolated()
    try server.start()
    await RedisShell.waitUntilReady(server)
    await node.engine.becomesConnected()
    // With the reply for a key without a copy, the node has handled the reconnection.
    _ = try await node.map.request("other")
    #expect(try await node.map.request("k") == "2")
    #expect(node.fetchCount == 3)
  }

  /// Lets a node fail while another one waits for its fetch.
  ///
  /// - Returns: The failure of the other one.
  private func failure<Failure: Error>(
    ofAnotherWith error: Failure
  ) async throws -> SharedCache.Failure? {
    let server = try RedisServer()
    // Without the failure, the other one would wait for an hour.
    let a = try await Node(server, fetchLease: .seconds(3_600)) { _ in throw error }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    let first = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    let monitor = try await RedisMonitor(server)
    let second = Task { try await b.map.request("k") }
    // The look of the second node, which finds the lease of the first.
    await monitor.commands(1, with: "lua", "\"HMGET\"", ":e:")
    a.gate.open()
    await #expect(throws: Failure.self) { try await first.value }
    let failure = await #expect(throws: SharedCache.Failure.self) { try await second.value }
    #expect(b.fetchCount == 0)
    return failure
  }

  @Test(.guarantee(.failuresReachAllNodes)) func `a node that fails tells the others why`()
    async throws
  {
    let failure = try await failure(ofAnotherWith: Offline())
    #expect(failure?.isConnectivityFailure == true)
  }

  @Test(.guarantee(.failuresReachAllNodes))
  func `a failure with a long description reaches the nodes that wait`() async throws {
    struct Long: Error, CustomStringConvertible {
      let description = String(repeating: "x", count: 20 << 20)
    }
    let failure = try await failure(ofAnotherWith: Long())
    #expect(failure?.description.hasPrefix("xxx") == true)
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver), arguments: [Double.nan, 1])
  func `a value that cannot be stored delays no other node`(
    value: Double
  ) async throws {
    let server = try RedisServer()
    var maps: [MultiplexerMap<String, [Double]>] = []
    var engines: [RedisEngine] = []
    for _ in 0..<3 {
      var options = RedisOptions()
      (options.commandTimeout, options.fetchLease) = (.seconds(60), .seconds(3_600))
      options.outboxBytes = 256 << 10
      let engine = try RedisEngine(server.address, options: options)
      await engine.becomesConnected()
      let cacher = engine.cacher([Double].self, space: "values", schema: "1")
      // It cannot be encoded, or is larger than the outbox.
      maps.append(MultiplexerMap(cacher: cacher) { _ in .init(repeating: value, count: 1 << 17) })
      engines.append(engine)
    }
    // Otherwise, each node would wait as long as the lease of the one before, which is an hour.
    for map in maps { #expect(try await map.request("k").count == 1 << 17) }
    for engine in engines { try await engine.close() }
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a lease that was granted by a late reply delays no node`() async throws {
    let server = try RedisServer()
    var options = RedisOptions()
    (options.commandTimeout, options.fetchLease) = (.milliseconds(300), .seconds(3_600))
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    // Every request needs a newer value than the one before, and the lease for it.
    let policy = CachePolicy(timeToLive: .zero)
    let map = MultiplexerMap<String, String>(
      id: "values",
      policy: policy,
      cacher: engine.cacher(space: "values", schema: "1")
    ) { _ in "1" }
    let b = try await Node(server, policy: policy) { _ in "2" }
    let monitor = try await RedisMonitor(server)
    func leases() async throws -> Int {
      try await monitor.count(with: "lua", "\"SET\"", "{values}:2:l:1:values/k", on: server)
    }
    var count = 0
    // Until the server grants the lease to a request that has ended: without a copy, it begins with plain commands.
    repeat {
      #expect(try await map.request("k") == "1")
      count = try await leases()
      server.suspend()
      #expect(try await map.request("k") == "1")
      server.resume()
    } while try await leases() == count
    #expect(try await b.map.request("k") == "2")
    try await engine.close()
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a request that waits for another node fetches when the server is gone`()
    async throws
  {
    let server = try RedisServer()
    let a = try await Node(server, fetchLease: .seconds(3_600)) { _ in "1" }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    let first = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    let monitor = try await RedisMonitor(server)
    let second = Task { try await b.map.request("k") }
    await monitor.commands(1, with: "lua", "\"HMGET\"", ":e:")
    server.kill()
    // Otherwise, this would take as long as the lease, which is an hour.
    #expect(try await second.value == "2")
    a.gate.open()
    #expect(try await first.value == "1")
  }

  /// Texts that are keys and tags, and names of spaces without braces.
  static let texts = [
    "", "a}b{c", "{}", "{values}:2:e:1:k", "new\r\nline", "\0", "a\0b", "\u{301}", "\u{301}x",
    "\u{FFFD}",
    "\u{200D}", "🇩🇪", "*1\r\n$4\r\nPING\r\n", " ", "%s%d", String(repeating: "k", count: 512),
    String(repeating: "é", count: 1 << 19),
  ]

  @Test(.guarantee(.everyTextIsAKey), arguments: texts)
  func `every text can be a key, a tag, both at once, and the name of a space`(
    text: String
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    // The outbox is not larger than several times a name.
    let isLong = text.utf8.count > 1_000
    let space = "s" + (isLong ? "" : text.filter { !"{}".contains($0) })
    var nodes: [(engine: RedisEngine, map: MultiplexerMap<String, String>)] = []
    let fetches = Log<String>()
    for _ in 0..<2 {
      // A look for a long key takes some time.
      let engine = try await connected(to: server, fetchLease: .seconds(60))
      let cacher = engine.cacher(String.self, space: space, schema: isLong ? "1" : text)
      let tags: @Sendable (String) -> [CacheTag] = { [CacheTag($0)] }
      let map = MultiplexerMap<String, String>(
        id: "m",
        policy: CachePolicy(storageTimeout: .seconds(60)),
        cacher: cacher,
        tagging: tags
      ) { key in
        fetches.append(key)
        return origin.withLock { $0 }
      }
      nodes.append((engine, map))
    }
    let (a, b) = (nodes[0].map, nodes[1].map)
    for map in [a, b] { #expect(try await map.request(text) == "1") }
    #expect(fetches.count == 1)
    origin.withLock { $0 = "2" }
    try await a.clear(text)
    while try await b.request(text) == "1" { await Task.detached {}.value }
    origin.withLock { $0 = "3" }
    let repository = MuxRepository()
    a.register(in: repository)
    try await repository.clear(tags: [CacheTag(text)], .everywhere)
    for map in [b, a] { #expect(try await map.request(text) == "3") }
    origin.withLock { $0 = "4" }
    #expect(try await a.refresh(text).request(text) == "4")
    while try await b.request(text) == "3" { await Task.detached {}.value }
    #expect(fetches.count == 4)
    for node in nodes { try await node.engine.close() }
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a server that is away costs a fetch, and nothing is served from before it came back`()
    async throws
  {
    let server = try RedisServer()
    let origin = Guarded("1")
    let node = try await Node(server) { _ in origin.withLock { $0 } }
    #expect(try await node.map.request("k") == "1")
    server.kill()
    await node.engine.becomesIsolated()
    origin.withLock { $0 = "2" }
    // Another key, of which there is no copy.
    #expect(try await node.map.request("other") == "2")
    try server.start()
    await node.engine.becomesConnected()
    #expect(try await node.map.request("k") == "2")
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a node that goes gives its leases and its registration back`() async throws {
    let server = try RedisServer()
    let a = try await Node(server) { _ in "1" }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    let lost = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    try await a.engine.close()
    // Otherwise this would take as long as the lease, which is a minute.
    #expect(try await b.map.request("k") == "2")
    let repository = MuxRepository()
    b.map.register(in: repository)
    try await repository.clearAll(.everywhere)
    a.gate.open()
    #expect(try await lost.value == "1")
  }

  @Test(.guarantee(.closingWaitsForNoSingleCache))
  func `a node gives its leases and its registration back in a task that is cancelled`()
    async throws
  {
    let server = try RedisServer()
    let a = try await Node(server, fetchLease: .seconds(3_600)) { _ in "1" }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    let lost = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    try await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await a.engine.close()
    }.value
    // Otherwise this would take as long as the lease, which is an hour.
    #expect(try await b.map.request("k") == "2")
    a.gate.open()
    #expect(try await lost.value == "1")
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `an engine leaves no registration and no lease, whatever is requested meanwhile`()
    async throws
  {
    let server = try RedisServer()
    for round in 0..<20 {
      // Requests send heartbeats of their own.
      let node = try await Node(server, nearLease: .milliseconds(200)) { _ in "1" }
      let isOver = Guarded(false)
      let requests = Task {
        await withTaskGroup { group in
          for index in 0..<8 {
            group.addTask {
              var count = 0
              while !isOver.withLock({ $0 }) {
                count += 1
                _ = try? await node.map.request("\(round) \(index) \(count)")
              }
            }
          }
        }
      }
      await node.gate.arrivals(20)
      try await node.engine.close()
      isOver.withLock { $0 = true }
      await requests.value
      #expect(try Self.rest(server) == [":0\r\n", "*0\r\n"])
    }
  }

  /// The number of registrations and the leases at a server.
  private static func rest(_ server: RedisServer) throws -> [String] {
    [
      try RedisShell.run("ZCOUNT {values}:2:nodes 0 +inf", on: server),
      try RedisShell.run("KEYS {values}:2:l:*", on: server),
    ]
  }

  private static func wishes(_ keys: some Sequence<String>) -> [String: SharedCache.Wish] {
    Dictionary(uniqueKeysWithValues: keys.map { ($0, SharedCache.Wish()) })
  }

  /// Returns an engine with so many leases that their release takes time.
  private func holdingLeases(of server: RedisServer) async throws -> RedisEngine {
    let options = RedisOptions(commandTimeout: .seconds(60))
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    _ = try await cacher.look(for: Self.wishes((0..<2_000).map { "\($0)" }))
    return engine
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver)) func `two calls close an engine together`()
    async throws
  {
    let server = try RedisServer()
    for _ in 0..<4 {
      let engine = try await holdingLeases(of: server)
      async let first: Void = engine.close()
      async let second: Void = engine.close()
      _ = try await (first, second)
      #expect(try Self.rest(server) == [":0\r\n", "*0\r\n"])
    }
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a space that begins while its engine is closed leaves nothing`() async throws {
    let server = try RedisServer()
    let engine = try await holdingLeases(of: server)
    let isOver = Guarded(false)
    let looks = Task {
      var number = 1
      while !isOver.withLock({ $0 }) {
        number += 1
        let late = engine.cacher(String.self, space: "values", schema: "\(number)")
        _ = try? await late.look(for: Self.wishes(["late"]))
        await Task.detached {}.value
      }
    }
    try await engine.close()
    isOver.withLock { $0 = true }
    await looks.value
    #expect(try Self.rest(server) == [":0\r\n", "*0\r\n"])
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver), arguments: [false, true])
  func `an engine whose connection breaks gives its leases back when it is closed`(
    isClosing: Bool
  ) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    // Otherwise, the look can wait for a heartbeat, whose reply is held, too.
    let options = RedisOptions(commandTimeout: .seconds(60), nearLease: .seconds(60))
    let engine = try RedisEngine(proxy.address, options: options)
    await engine.becomesConnected()
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    _ = try await cacher.look(for: Self.wishes(["held"]))
    proxy.holdReplies()
    let look = Task {
      // Such a look takes its lease in one call.
      var wish = SharedCache.Wish()
      wish.newerThan = SharedCache.Version(epoch: 1, nonce: 1, token: 1)
      return try await cacher.look(for: ["lost": wish, "lost too": wish])
    }
    await Failover.poll {
      (try? RedisShell.run("EXISTS {values}:2:l:1:lost", on: server)) == ":1\r\n"
    }
    async let closed: Void? = isClosing ? engine.close() : nil
    if isClosing { _ = try RedisShell.run("BLPOP nothing 0.02", on: server) }
    proxy.cut()
    proxy.resume()
    _ = await look.result
    _ = try await closed
    if !isClosing { try await engine.close() }
    #expect(try Self.rest(server) == [":0\r\n", "*0\r\n"])
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `many keys can be requested while the server stands still`() async throws {
    let server = try RedisServer()
    var options = RedisOptions()
    options.outboxBytes = 1 << 20
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    let map = MultiplexerMap<Int, Int>(
      cacher: engine.cacher(Int.self, space: "values", schema: "1")
    ) { $0 }
    _ = try await map.request(-1)
    server.suspend()
    let count = 20_000
    try await withThrowingTaskGroup { group in
      for key in 0..<count { group.addTask { try await map.request(key) } }
      var sum = 0
      for try await value in group {
        sum += value
        #expect(engine.status.caches.outboxBytes <= 2 << 20)
      }
      #expect(sum == count * (count - 1) / 2)
    }
    #expect(engine.status.caches.unansweredCommands < count)
    server.resume()
    try await engine.close()
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a lease is renewed as long as the fetch takes`() async throws {
    let server = try RedisServer()
    // The leases of a node are renewed four times in its near lease.
    let a = try await Node(server, nearLease: .milliseconds(200)) { _ in "1" }
    let b = try await Node(server) { _ in "2" }
    a.gate.close()
    async let first = a.map.request("k")
    await a.gate.arrivals(1)
    let monitor = try await RedisMonitor(server)
    async let second = b.map.request("k")
    func leaseEnd() async throws -> Int {
      let script = "return tonumber(redis.call('HGET', '{values}:2:f:1:values/k', 'u'))"
      let reply = try RedisShell.run("EVAL \"\(script)\" 0", on: server)
      // The end of the line is one character.
      return try #require(Int(reply.dropFirst().dropLast()), "\(reply)")
    }
    await monitor.commands(1, with: "lua", "\"PEXPIRE\"", ":f:")
    let end = try await leaseEnd()
    await monitor.commands(5, with: "lua", "\"PEXPIRE\"", ":f:")
    #expect(try await leaseEnd() > end)
    a.gate.open()
    #expect(try await first == "1")
    #expect(try await second == "1")
  }

  @Test func `many values are written and removed`() async throws {
    let server = try RedisServer()
    let engine = try await connected(to: server)
    let cacher = engine.cacher(Int.self, space: "values", schema: "1")
    let keys = (0..<1_200).map { "\($0)" }
    try await cacher.store(
      Dictionary(uniqueKeysWithValues: keys.map { ($0, CacheEntry(value: 1, storedAt: .zero)) })
    )
    for key in keys { #expect(try await cacher.entry(forKey: key)?.value == 1) }
    try await cacher.removeEntries(forKeys: Set(keys.dropLast()))
    for key in keys.dropLast() { #expect(try await cacher.entry(forKey: key) == nil) }
    #expect(try await cacher.entry(forKey: "1199")?.value == 1)
    try await engine.close()
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `a thousand keys are stored, looked up and removed in parts`() async throws {
    let server = try RedisServer()
    let engine = try await connected(to: server)
    let cacher = engine.cacher(Int.self, space: "values", schema: "1")
    let monitor = try await RedisMonitor(server)
    // The commands of a heart have no entries among their keys.
    func scripts() async throws -> Int {
      try await monitor.count(with: "\"EVALSHA\"", "{values}:2:e:1:", on: server)
    }
    var entries: [String: CacheEntry<Int>] = [:]
    for key in 0..<1_000 { entries["\(key)"] = CacheEntry(value: key, storedAt: .zero) }
    try await cacher.store(entries)
    #expect(try await scripts() == 125)
    // Entries that are there need no script.
    let findings = try await cacher.look(for: entries.mapValues { _ in SharedCache.Wish() })
    #expect(try await scripts() == 125)
    #expect(try await monitor.count(with: "\"HMGET\"", "{values}:2:e:1:", on: server) == 1_000)
    #expect(findings.count == 1_000)
    for (key, finding) in findings {
      guard case .entry(let entry, _, _) = finding else {
        Issue.record("\(finding)")
        return
      }
      #expect("\(entry.value)" == key)
    }
    try await cacher.outdate(Set(entries.keys))
    #expect(try await scripts() == 250)
    try await cacher.removeEntries(forKeys: Set(entries.keys))
    #expect(try await scripts() == 375)
    try await engine.close()
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `a part that fails names its keys, and the other keys are found`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    // One of the keys is not permitted.
    let entries = "{values}:2:e:1:"
    let rules =
      "on >secret +@all ~{values}:2:[^e]* ~{values}:2:epoch ~\(entries)[^7]* ~\(entries)7?*"
    #expect(try RedisShell.run("ACL SETUSER app \(rules)", on: server) == "+OK\r\n")
    var options = RedisOptions()
    options.credentials = { RedisCredentials(user: "app", password: "secret") }
    options.commandTimeout = .seconds(60)
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    let cacher = engine.cacher(Int.self, space: "values", schema: "1")
    let keys = Set((0..<1_000).map { "\($0)" })
    let wishes = Dictionary(uniqueKeysWithValues: keys.map { ($0, SharedCache.Wish()) })
    let findings = try await cacher.look(for: wishes)
    #expect(findings["7"] == nil)
    #expect(findings.count >= 1_000 - 8)
    let error = await #expect(throws: CacherError.self) { try await cacher.outdate(keys) }
    #expect(error?.failures["7"] != nil)
    #expect((1...8).contains(error?.failures.count ?? 0))
    await #expect(throws: (any Error).self) {
      try await cacher.look(for: ["7": SharedCache.Wish()])
    }
    // The key that could not be outdated is still owed.
    await #expect(throws: (any Error).self) { try await engine.close() }
  }

  @Test(.guarantee(.foreignEntriesAreMisses)) func `a damaged entry is fetched again`() async throws
  {
    let server = try RedisServer()
    let writer = try await Node(server) { _ in "1" }
    _ = try await writer.map.request("k")
    for damage in ["garbage", "", "{}", "{\"value\":7}"] {
      let reply = try RedisShell.run("HSET {values}:2:e:1:values/k d '\(damage)'", on: server)
      #expect(reply == ":0\r\n")
      let reader = try await Node(server) { _ in "2" }
      #expect(try await reader.map.request("k") == "2")
      #expect(reader.fetchCount == 1)
    }
  }

  @Test(.guarantee(.foreignEntriesAreMisses))
  func `values of another schema are not used, and live in turn`() async throws {
    let server = try RedisServer()
    let old = try await Node(server) { _ in "old" }
    let new = try await Node(server, schema: "2") { _ in "new" }
    #expect(try await old.map.request("k") == "old")
    #expect(try await new.map.request("k") == "new")
  }

  @Test func `an engine reports an existing connection at once`() async throws {
    let server = try RedisServer()
    for _ in 0..<100 {
      let engine = try RedisEngine(server.address)
      await engine.becomesConnected()
      #expect(engine.status.caches.health == .connected)
      try await engine.close()
    }
  }

  @Test func `the health ends with the engine`() async throws {
    let server = try RedisServer()
    let node = try await Node(server) { _ in "1" }
    let health = Recorder(node.engine.health())
    try await node.engine.close()
    for await state in node.engine.health() {
      #expect(state == .closed)
      break
    }
    #expect(try await node.map.request("k") == "1")
    health.cancel()
  }
}
