import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The health of an engine` {
  private static let entry = CacheEntry(value: "1", storedAt: .zero)

  private func engine(
    _ server: RedisServer,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) async throws -> RedisEngine {
    await RedisShell.waitUntilReady(server)
    var options = RedisOptions(commandTimeout: .seconds(60))
    change(&options)
    return try RedisEngine(server.address, options: options)
  }

  /// Returns the reason why the engine is degraded, once it contains a text.
  private func degradation(of engine: RedisEngine, _ text: String) async -> String {
    for await health in engine.health() {
      if case .degraded(let reason) = health, reason.contains(text) { return reason }
    }
    return ""
  }

  @Test(.guarantee(.refusedCommandsDegradeTheHealth))
  func `the health is degraded while heartbeats are refused, and names what is missing`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >secret ~* &* +@all -zadd"], on: server)
    let engine = try await engine(server) {
      $0.credentials = { RedisCredentials(user: "app", password: "secret") }
      $0.nearLease = .milliseconds(200)
    }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let reason = await degradation(of: engine, "heartbeats")
    #expect(reason.contains("+zadd"))
    let error = await #expect(throws: RedisEngineError.self) {
      try await cacher.entry(forKey: "k")
    }
    #expect(error?.kind == .permission)
    #expect(engine.status.errors[.permission, default: 0] > 0)
    try RedisShell.perform(["ACL SETUSER app +zadd"], on: server)
    await engine.becomesConnected()
    #expect(try await cacher.entry(forKey: "k") == nil)
    try await engine.close()
  }

  @Test func `values of the server count only while heartbeats are answered`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >secret ~* &* +@all"], on: server)
    let engine = try await engine(server) {
      $0.credentials = { RedisCredentials(user: "app", password: "secret") }
      $0.nearLease = .milliseconds(200)
    }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    // The server still answers plain reads, as one does that was demoted. A change of the fence needs a heartbeat.
    let commands = ["ACL SETUSER app -zadd", "SET {values}:2:fence 0"]
    try RedisShell.perform(commands, on: server)
    while (try? await cacher.entry(forKey: "k")) != nil { await Task.detached {}.value }
    await #expect(throws: RedisEngineError.self) { try await cacher.entry(forKey: "k") }
    try RedisShell.perform(["ACL SETUSER app +zadd"], on: server)
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await engine.close()
  }

  @Test(.guarantee(.refusedCommandsDegradeTheHealth))
  func `the health of an engine is degraded by a server without memory, and recovers`() async throws
  {
    let server = try RedisServer()
    let engine = try await engine(server)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
    await #expect(throws: CacherError.self) { try await cacher.store(["k": Self.entry]) }
    let reason = await degradation(of: engine, "stores")
    #expect(reason.contains("OOM") && reason.contains("maxmemory"))
    try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    let recovery = Task {
      while !Task.isCancelled { try? await cacher.store(["k": Self.entry]) }
    }
    await engine.becomesConnected()
    recovery.cancel()
    try await engine.close()
  }

  @Test(.guarantee(.refusedCommandsDegradeTheHealth))
  func `publishing that is refused degrades the events`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.connect(.publishOnly)
    try await node.publish("1")
    try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
    await #expect(throws: (any Error).self) { try await node.publish("2") }
    for await health in node.engine.eventHealth() {
      guard case .degraded(let reason) = health else { continue }
      #expect(reason.contains("publishing") && reason.contains("OOM"))
      break
    }
    try await node.engine.close()
  }

  @Test(.guarantee(.closingIsNoInterruption)) func `the end by the owner is no interruption`()
    async throws
  {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.receive(.everyNode())
    try await node.engine.connect(within: .seconds(60))
    let states = Recorder(node.engine.health())
    let events = Recorder(node.engine.eventHealth())
    try await node.engine.close()
    _ = await states.first(2)
    _ = await events.first(2)
    #expect(states.elements == [.connected, .closed])
    #expect(events.elements == [.connected, .closed])
    let error = await #expect(throws: RedisEngineError.self) {
      try await node.engine.connect(within: .seconds(60))
    }
    #expect(error?.kind == .closed)
  }

  @Test(.guarantee(.unhelpfulSettingsFailAtOnce))
  func `connecting fails at once if only other settings help`() async throws {
    let server = try RedisServer("--requirepass", "right")
    for password in [nil, "wrong"] {
      let engine = try await engine(server) { options in
        if let password { options.credentials = { RedisCredentials(password: password) } }
      }
      let error = await #expect(throws: RedisEngineError.self) {
        try await engine.connect(within: .seconds(60))
      }
      #expect(error?.kind == .authentication)
      #expect(error?.description.contains("Check the user and the password") == true)
      #expect(error?.description.contains("wrong") == false)
      try await engine.close()
    }
    let database = try await engine(server) { options in
      options.credentials = { RedisCredentials(password: "right") }
      options.database = 99
    }
    let error = await #expect(throws: RedisEngineError.self) {
      try await database.connect(within: .seconds(60))
    }
    #expect(error?.kind == .configuration)
    try await database.close()
    let ports = [try LoopbackSocket(), try LoopbackSocket()].map { "\($0.port)" }
    let cluster = try RedisServer(
      options: [
        "--cluster-enabled", "yes", "--bind", "127.0.0.1", "--port", ports[0], "--cluster-port",
        ports[1],
      ]
    )
    let node = try await engine(cluster)
    let mode = await #expect(throws: RedisEngineError.self) {
      try await node.connect(within: .seconds(60))
    }
    #expect(mode?.kind == .cluster)
    try await node.close()
    let nowhere = try RedisEngine(.unix(path: "/nowhere"))
    let absence = await #expect(throws: RedisEngineError.self) {
      try await nowhere.connect(within: .milliseconds(100))
    }
    #expect(absence?.kind == .unreachable)
    try await nowhere.close()
  }

  @Test func `the names of clients and databases are checked`() throws {
    for options in [RedisOptions(clientName: "a b"), RedisOptions(database: -1)] {
      let error = #expect(throws: RedisEngineError.self) {
        try RedisEngine(.unix(path: "/nowhere"), options: options)
      }
      #expect(error?.kind == .configuration)
    }
  }

  @Test func `the status counts what goes over the connections`() async throws {
    let server = try RedisServer()
    let engine = try await engine(server)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    _ = try await cacher.entry(forKey: "k")
    let status = engine.status
    #expect(status.bytesIn > 100 && status.bytesOut > 1_000)
    #expect(status.roundTrips.count >= 3)
    #expect(status.roundTrips.longest > .zero)
    #expect(status.roundTrips.total >= status.roundTrips.longest)
    #expect(status.lastAnsweredBeat != nil)
    #expect(status.trustAge.map { $0 < .seconds(60) } == true)
    #expect(status.reconnections == 0 && status.owedRemovals == 0)
    #expect(status.timedOutLooks == 0 && status.errors.isEmpty)
    await Failover.poll { engine.status.registeredNodes == 1 }
    try await engine.close()
  }

  @Test func `the status counts values that the server did not confirm in time`() async throws {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) {
      $0.commandTimeout = .milliseconds(400)
    } fetch: { _ in
      server.suspend()
      return "1"
    }
    #expect(try await node.map.request("k") == "1")
    await Failover.poll { node.engine.status.timedOutFills == 1 }
    #expect(node.engine.status.timedOutLooks == 0)
    server.resume()
  }

  @Test func `a value that does not fit and a connection that breaks have errors of their kinds`()
    async throws
  {
    let server = try RedisServer()
    let engine = try await engine(server) { $0.outboxBytes = 256 << 10 }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    let large = CacheEntry(value: String(repeating: "x", count: 1 << 20), storedAt: .zero)
    let error = try await #require(throws: CacherError.self) {
      try await cacher.store(["l": large])
    }
    #expect((error.failures["l"] as? RedisEngineError)?.kind == .tooLarge)
    server.suspend()
    let look = Task { try await cacher.entry(forKey: "k") }
    await Failover.poll { engine.status.caches.unansweredCommands > 0 }
    server.kill()
    let broken = try await #require(throws: RedisEngineError.self) { try await look.value }
    #expect(broken.kind == .broken)
  }

  @Test func `the status counts removals that are owed, and what was not answered in time`()
    async throws
  {
    let server = try RedisServer()
    let engine = try await engine(server) { $0.commandTimeout = .seconds(1) }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    _ = try await cacher.entry(forKey: "k")
    server.suspend()
    await #expect(throws: RedisEngineError.self) { try await cacher.entry(forKey: "k") }
    await #expect(throws: (any Error).self) {
      try await cacher.remove(.keys(["a", "b"]), reach: .shared)
    }
    #expect(engine.status.owedRemovals == 2)
    #expect(engine.status.timedOutLooks == 1)
    #expect(engine.status.errors[.timedOut, default: 0] >= 1)
    server.resume()
    while (try? await cacher.remove(.keys(["a", "b"]), reach: .shared)) == nil {
      await Task.detached {}.value
    }
    #expect(engine.status.owedRemovals == 0)
    try await engine.close()
  }

  @Test(.guarantee(.hopelessConnectionsFailAtOnce))
  func `connecting waits while a server has too many clients`() async throws {
    let server = try AnsweringServer { command in
      command.connection <= 2 ? "-ERR max number of clients reached\r\n" : command.usual
    }
    let engine = try RedisEngine(
      server.address,
      options: RedisOptions(commandTimeout: .seconds(60))
    )
    try await engine.connect(within: .seconds(60))
    #expect(server.connectionCount >= 3)
    try await engine.close()
  }

  @Test(.guarantee(.hopelessConnectionsFailAtOnce))
  func `a connection that exists needs no time to connect`() async throws {
    let server = try RedisServer()
    let engine = try await engine(server)
    try await engine.connect(within: .seconds(60))
    for limit in [Duration.zero, .seconds(-1), .seconds(Int64.max)] {
      for _ in 0..<200 { try await engine.connect(within: limit) }
    }
    let probe = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await engine.connect(within: .seconds(60))
    }
    await #expect(throws: CancellationError.self) { try await probe.value }
    try await engine.close()
  }
}
