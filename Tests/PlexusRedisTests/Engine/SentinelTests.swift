import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `An engine whose master is that of sentinels` {
  private static let entry = CacheEntry(value: "1", storedAt: .zero)

  private func engine(
    _ sentinels: [RedisAddress],
    name: String = "main",
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) throws -> RedisEngine {
    var options = RedisOptions(commandTimeout: .milliseconds(500))
    change(&options)
    return try RedisEngine(.sentinel(name: name, sentinels), options: options)
  }

  @Test(.guarantee(.sentinelsAreFollowed))
  func `an engine follows a failover of the sentinels after the crash of the master`() async throws
  {
    let servers = try await Failover()
    let sentinel = try await SentinelServer(of: servers.firstPort)
    await sentinel.knowsReplica()
    let closed = RedisAddress.tcp(host: "127.0.0.1", port: try LoopbackSocket().port)
    // The first sentinel is not there.
    let engine = try engine([closed, sentinel.address]) { $0.clearReplicas = 0 }
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    await servers.replicate()
    let node = try EventNode(at: .sentinel(name: "main", [sentinel.address]))
    await node.receive(.everyNode())
    servers.first.kill()
    await Failover.poll {
      (try? RedisShell.reply("ROLE", on: servers.second))?.contains("master") == true
    }
    let stopwatch = Stopwatch()
    while (try? await cacher.store(["k": Self.entry])) == nil { await Task.detached {}.value }
    let duration = stopwatch.elapsed
    print("after a failover of sentinels: \(duration)")
    #expect(duration < .seconds(60))
    let sender = try EventNode(servers.second)
    await sender.connect(.publishOnly)
    try await sender.publish("after")
    await node.notes.contains("after")
    for engine in [engine, node.engine, sender.engine] { try await engine.close() }
  }

  @Test(.guarantee(.sentinelsAreFollowed))
  func `an engine follows an announcement although the old master still answers as one`()
    async throws
  {
    let servers = try await Failover()
    try RedisShell.perform(["REPLICAOF NO ONE"], on: servers.second)
    let port = Guarded(servers.firstPort)
    let sentinel = try announcingServer(port)
    let engine = try engine([sentinel.address])
    try await engine.connect(within: .seconds(60))
    let monitor = try await RedisMonitor(servers.second)
    await sentinel.commands.wait { $0.contains { $0.words.first == "SUBSCRIBE" } }
    #expect(engine.status.reconnections == 0)
    port.withLock { $0 = servers.secondPort }
    sentinel.send(
      ">3\r\n+message\r\n+\(SentinelChannel.name)\r\n"
        + "+main 127.0.0.1 \(servers.firstPort) 127.0.0.1 \(servers.secondPort)\r\n"
    )
    await monitor.commands(1, with: "\"CLIENT\"", "\"TRACKING\"")
    try await engine.close()
  }

  private enum SentinelChannel {
    static let name = "+switch-master"
  }

  private static let hello = "%2\r\n+proto\r\n:3\r\n+mode\r\n+sentinel\r\n"

  /// A sentinel that gives a port of 127.0.0.1.
  private func announcingServer(_ port: Guarded<UInt16>) throws -> AnsweringServer {
    try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": return Self.hello
      case "SUBSCRIBE": return ">3\r\n+subscribe\r\n+\(SentinelChannel.name)\r\n:1\r\n"
      case "SENTINEL": return "*2\r\n+127.0.0.1\r\n+\(port.withLock { $0 })\r\n"
      default: return command.usual
      }
    }
  }

  @Test func `an engine signs in to sentinels with credentials of their own`() async throws {
    let port = try LoopbackSocket().port
    let master = try RedisServer("--port", "\(port)", "--bind", "127.0.0.1", "--requirepass", "a")
    let sentinel = try await SentinelServer(of: port, password: "b")
    let engine = try engine([sentinel.address]) { options in
      options.credentials = { RedisCredentials(password: "a") }
      options.sentinelCredentials = { RedisCredentials(password: "b") }
    }
    try await engine.connect(within: .seconds(60))
    try await engine.close()
    let wrong = try self.engine([sentinel.address]) { options in
      options.credentials = { RedisCredentials(password: "a") }
      options.sentinelCredentials = { RedisCredentials(password: "a") }
    }
    let error = await #expect(throws: RedisEngineError.self) {
      try await wrong.connect(within: .seconds(60))
    }
    #expect(error?.kind == .authentication)
    try await wrong.close()
    withExtendedLifetime(master) {}
  }

  @Test(.guarantee(.sentinelsNeverGetThePassword))
  func `an engine renews the credentials of a sentinel with those of sentinels`() async throws {
    let master = try AnsweringServer { $0.usual }
    guard case .tcp(_, let number) = master.address else { return }
    let port = Guarded(number)
    let sentinel = try announcingServer(port)
    let engine = try engine([sentinel.address]) { options in
      options.credentials = { RedisCredentials(user: "app", password: "secret of the master") }
      options.sentinelCredentials = expiringCredentials(of: "watcher")
    }
    await sentinel.commands.wait { $0.contains { $0.words[0] == "AUTH" } }
    let words = sentinel.commands.entries.map(\.words)
    #expect(words.filter { $0[0] == "AUTH" }.allSatisfy { $0[1] == "watcher" })
    #expect(!words.joined().contains("secret of the master"))
    try await engine.close()
  }

  @Test(.guarantee(.sentinelsAreNotTrusted)) func `an unknown name is an error at once`()
    async throws
  {
    let server = try await Failover()
    let sentinel = try await SentinelServer(of: server.firstPort)
    let engine = try engine([sentinel.address], name: "other")
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(60))
    }
    #expect(error?.kind == .configuration)
    #expect(error?.description.contains("no master with the name other") == true)
    try await engine.close()
    let master = try self.engine([server.firstAddress])
    let mode = await #expect(throws: RedisEngineError.self) {
      try await master.connect(within: .seconds(60))
    }
    #expect(mode?.kind == .configuration)
    try await master.close()
    #expect(throws: RedisEngineError.self) { try self.engine([]) }
  }

  @Test func `a plain address of a sentinel is an error at once that says what to do`()
    async throws
  {
    let port = try LoopbackSocket().port
    let master = try RedisServer("--port", "\(port)", "--bind", "127.0.0.1")
    let sentinel = try await SentinelServer(of: port)
    for engine in [
      try RedisEngine(sentinel.address), try RedisEngine(url: "redis://\(sentinel.address)"),
    ] {
      let error = await #expect(throws: RedisEngineError.self) {
        try await engine.connect(within: .seconds(60))
      }
      #expect(error?.kind == .configuration)
      let text = error?.description ?? ""
      #expect(text.contains("at \(sentinel.address) runs in the mode sentinel"), "\(text)")
      #expect(
        text.contains("Use the address of a standalone server, or .sentinel(name:_:)"),
        "\(text)"
      )
      try await engine.close()
    }
    withExtendedLifetime(master) {}
  }

  @Test func `a server that is no master is refused, and the sentinel is asked again`()
    async throws
  {
    let servers = try await Failover()
    let port = Guarded(servers.secondPort)
    let sentinel = try announcingServer(port)
    let engine = try engine([sentinel.address])
    var subscription = engine.health().makeAsyncIterator()
    /// Waits until the server is refused, and the sentinel was asked again since then.
    func isRefused() async {
      while let health = await subscription.next() {
        guard case .isolated(let reason) = health, reason.contains("role is replica") else {
          continue
        }
        break
      }
      let count = sentinel.commands.count
      await sentinel.commands.wait { $0.dropFirst(count).contains { $0.words[0] == "SENTINEL" } }
    }
    // It is a replica from the start.
    await isRefused()
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(1))
    }
    #expect(error?.kind == .notMaster)
    port.withLock { $0 = servers.firstPort }
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    // An earlier answer of the sentinel can end the connection once more.
    while (try? await cacher.store(["k": Self.entry])) == nil { await Task.detached {}.value }
    // It is demoted later, and the sentinel does not know it yet.
    await servers.replicate()
    try servers.exchangeRoles()
    await isRefused()
    port.withLock { $0 = servers.secondPort }
    try await engine.connect(within: .seconds(60))
    while (try? await cacher.entry(forKey: "k"))?.value != "1" { await Task.detached {}.value }
    try await engine.close()
  }

  /// Replies of a sentinel that are no address.
  static let replies = [
    "+OK\r\n", "*0\r\n", "*1\r\n+a\r\n", "*3\r\n+a\r\n+1\r\n+b\r\n", "*2\r\n+a\r\n+0\r\n",
    "*2\r\n+a\r\n+99999\r\n", "*2\r\n+a\r\n:-1\r\n", "*2\r\n+\r\n+1\r\n", "*1000000000\r\n",
    "$100000\r\n" + String(repeating: "x", count: 100_000) + "\r\n", "-ERR no\r\n", "nonsense\r\n",
    "*2\r\n+a\r\n+1\r\n*2\r\n+b\r\n+2\r\n",
  ]

  @Test(.guarantee(.sentinelsAreNotTrusted), arguments: replies)
  func `a sentinel is not trusted`(reply: String) async throws {
    let servers = try RedisServer()
    let hostile = try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": Self.hello
      case "SENTINEL": reply
      default: command.usual
      }
    }
    let engine = try engine([hostile.address])
    await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(200))
    }
    try await engine.close()
    withExtendedLifetime(servers) {}
  }
}
