import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Addresses of a cluster` {
  @Test func `the address of a server that is away does not matter beside that of another one`()
    async throws
  {
    let cluster = try await RedisCluster()
    // It is bound, and does not listen.
    let closed = try LoopbackSocket()
    let away = RedisAddress.tcp(host: "127.0.0.1", port: closed.port)
    let origin = Guarded("1")
    for seeds in [[away, cluster.address(of: 1)], [cluster.address(of: 2), away]] {
      let node = try await ClusterNode(.cluster(seeds), origin)
      #expect(try await node.request("k") == "1")
      try await node.engine.close()
    }
  }

  @Test func `a cluster that starts later is reached then`() async throws {
    let cluster = try await RedisCluster(masters: 1)
    cluster.kill(0)
    let closed = try LoopbackSocket()
    let away = RedisAddress.tcp(host: "127.0.0.1", port: closed.port)
    let options = RedisOptions(commandTimeout: .seconds(2))
    let engine = try RedisEngine(.cluster([away, cluster.address(of: 0)]), options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(200))
    }
    #expect(error?.kind == .unreachable)
    try await cluster.restart(0)
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let entry = CacheEntry(value: "1", storedAt: .zero)
    while (try? await cacher.store(["k": entry])) == nil { await Task.detached {}.value }
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await engine.close()
  }

  @Test func `an address of the cluster whose server has left it is replaced by the others`()
    async throws
  {
    let cluster = try await RedisCluster(options: ClusterNode.partial)
    let owner = try cluster.owner(of: "values")
    let (seed, target) = ((owner + 1) % 3, (owner + 2) % 3)
    // The only address that the process has is not that of the master of its cache.
    let node = try await ClusterNode(
      .cluster([cluster.address(of: seed)]),
      Guarded("1"),
      ClusterNode.soon
    )
    #expect(try await node.request("k") == "1")
    cluster.kill(seed)
    try await cluster.moveSlot(of: "values", to: target)
    await node.clear()
    try await [node].expectSharing("1", at: cluster, ClusterNode.soon)
    try await [node].close()
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a standalone server is no cluster, which is an error at once`() async throws {
    let port = try LoopbackSocket().port
    let server = try RedisServer("--port", "\(port)", "--bind", "127.0.0.1")
    await RedisShell.waitUntilReady(server)
    let engine = try RedisEngine(.cluster([.tcp(host: "127.0.0.1", port: port)]))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .configuration || error?.kind == .cluster)
    try await engine.close()
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a plain address of a node of a cluster is an error at once that says what to do`()
    async throws
  {
    let cluster = try await RedisCluster(masters: 1)
    let engine = try RedisEngine(cluster.address(of: 0))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .cluster)
    #expect(error?.description.contains(".cluster") == true, "\(error?.description ?? "")")
    try await engine.close()
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `an address or a database that a cluster cannot have is an error of the engine`() {
    let server = RedisAddress.tcp(host: "127.0.0.1", port: 1)
    let wrong: [(address: RedisAddress, database: Int)] = [
      (.cluster([]), 0), (.cluster([server]), 1), (.cluster([.unix(path: "/nowhere")]), 0),
      (.cluster([server, .unix(path: "/nowhere")]), 0), (.cluster([.cluster([server])]), 0),
      (.cluster([.sentinel(name: "main", [server])]), 0),
      (.sentinel(name: "main", [.cluster([server])]), 0),
    ]
    for (address, database) in wrong {
      let error = #expect(throws: RedisEngineError.self, "\(address)") {
        try RedisEngine(address, options: RedisOptions(database: database))
      }
      #expect(error?.kind == .configuration, "\(address)")
    }
  }

  /// Expects that an engine that knows one server uses all masters, and follows a slot to another one.
  private func expectAllServersInUse(of cluster: RedisCluster) async throws {
    let origin = Guarded("1")
    let spaces = (0..<12).map { "space\($0)" }
    let seeds = RedisAddress.cluster([cluster.address(of: 0)])
    let node = try await ClusterNode(seeds, origin, spaces: spaces, ClusterNode.soon)
    for space in spaces { #expect(try await node.request("k", in: space) == "1") }
    let target = (try cluster.owner(of: "space0") + 1) % 3
    try await cluster.moveSlot(of: "space0", to: target)
    origin.withLock { $0 = "2" }
    await node.clear()
    for space in spaces { #expect(try await node.request("k", in: space) == "2") }
    try await [node].close()
  }

  @Test func `servers without an endpoint are reached at the host of the server that was asked`()
    async throws
  {
    let options = ["--cluster-preferred-endpoint-type", "unknown-endpoint"]
    let cluster = try await RedisCluster(options: options)
    try await expectAllServersInUse(of: cluster)
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a right that is missing for finding the slots is named`() async throws {
    let cluster = try await RedisCluster()
    try cluster.performEverywhere("ACL SETUSER app on >secret ~* &* +@all -cluster")
    var options = RedisOptions(commandTimeout: .seconds(60))
    options.credentials = { RedisCredentials(user: "app", password: "secret") }
    let engine = try RedisEngine(cluster.address, options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(5))
    }
    #expect(error?.kind == .permission)
    #expect(error?.description.contains("+cluster|slots") == true, "\(error?.description ?? "")")
    try cluster.performEverywhere("ACL SETUSER app +cluster|slots")
    await engine.becomesConnected()
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": CacheEntry(value: "1", storedAt: .zero)])
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await engine.close()
  }

  @Test func `a cluster that requires a password gets that of the credentials everywhere`()
    async throws
  {
    let cluster = try await RedisCluster()
    try cluster.performEverywhere("ACL SETUSER app on >secret ~* &* +@all")
    try cluster.performEverywhere("ACL SETUSER default resetkeys resetchannels")
    let spaces = (0..<12).map { "space\($0)" }
    let node = try await ClusterNode(cluster.address, Guarded("1"), spaces: spaces) {
      $0.credentials = { RedisCredentials(user: "app", password: "secret") }
    }
    for space in spaces { #expect(try await node.request("k", in: space) == "1") }
    let wrong = try RedisEngine(
      cluster.address,
      options: RedisOptions(credentials: { RedisCredentials(user: "app", password: "mistaken") })
    )
    let error = await #expect(throws: RedisEngineError.self) {
      try await wrong.connect(within: .seconds(600))
    }
    #expect(error?.kind == .authentication)
    #expect(error?.description.contains("mistaken") == false)
    try await wrong.close()
    try await [node].close()
  }

  /// Replies that are no list of slots.
  static let replies = [
    "+OK\r\n", "*0\r\n", "*1\r\n+a\r\n", "*1\r\n*2\r\n:0\r\n:16383\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n", "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:9\r\n:5\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:0\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:99999\r\n", "*1000000000\r\n",
    "$100000\r\n" + String(repeating: "x", count: 100_000) + "\r\n", "-ERR no\r\n", "nonsense\r\n",
  ]

  @Test(.guarantee(.clusterServersAreNotTrusted), arguments: replies)
  func `a server is not trusted with its list of slots`(reply: String) async throws {
    let hostile = try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": "%2\r\n+proto\r\n:3\r\n+mode\r\n+cluster\r\n"
      case "CLUSTER": reply
      default: command.usual
      }
    }
    let options = RedisOptions(commandTimeout: .seconds(1))
    let engine = try RedisEngine(.cluster([hostile.address]), options: options)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    _ = try? await cacher.entry(forKey: "k")
    // The process fetches by itself.
    let map = MultiplexerMap<String, String>(id: "values", cacher: cacher) { _ in "fetched" }
    #expect(try await map.request("k") == "fetched")
    try? await engine.close()
  }

  #if TLS
  @Test(.enabled(if: TLSServer.isAvailable, "openssl, or a redis-server with TLS, is missing"))
  func `all servers are reached with TLS if the addresses are`() async throws {
    let keys = try TLSServer()
    let cluster = try await RedisCluster(encryption: keys)
    try await expectAllServersInUse(of: cluster)
  }
  #endif
}
