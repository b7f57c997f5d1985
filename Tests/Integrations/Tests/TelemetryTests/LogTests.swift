import AsyncAlgorithms
import InMemoryLogging
import Logging
import Plexus
import PlexusRedis
import PlexusTesting
import ServiceLifecycle
import Testing

@Suite struct `Logs` {
  struct Away: ConnectivityFailure {
    let isConnectivityFailure = true
  }

  struct NotFound: OriginFailure {
    let isOriginFailure = false
  }

  private let handler = InMemoryLogHandler()

  private var logger: Logger { Logger(label: "test", factory: { [handler] _ in handler }) }

  private var lines: [String] { handler.entries.map { "\($0.level) \($0.message)" } }

  @Test func `an outage is two lines, however many requests fail`() async throws {
    let time = Guarded(Duration.zero)
    let isAway = Guarded(true)
    let users = MultiplexerMap<Int, String>(id: "users") { id in
      if isAway.withLock({ $0 }) { throw Away() }
      return "\(id)"
    }
    let log = CacheLog(
      name: "users",
      events: users.events(),
      logger: logger,
      now: { time.withLock { $0 } }
    )
    for id in 0..<1_000 { _ = try? await users.request(id) }
    isAway.withLock { $0 = false }
    // The time of an event is that of its logging: the failures are logged first.
    let failures = log.events
    try await within(.seconds(60)) {
      let (events, continuation) = AsyncStream.makeStream(of: CacheEvent.self)
      var log = log
      var count = 0
      for await event in failures {
        if case .fetchFailed = event { count += 1 }
        continuation.yield(event)
        if count == 1_000 { break }
      }
      continuation.yield(.fetched(key: "users/1", outcome: .value, duration: .zero))
      continuation.finish()
      log = CacheLog(
        name: "users",
        events: events,
        logger: log.logger,
        now: {
          time.withLock { time in
            time += .seconds(20)
            return time
          }
        }
      )
      try await log.run()
    }
    #expect(lines == ["error fetches fail", "notice fetches work again"])
    #expect(handler.entries.last?.metadata["failures"] == "1000")
  }

  @Test func `definitive answers are no outage`() async throws {
    let (events, continuation) = AsyncStream.makeStream(of: CacheEvent.self)
    continuation.yield(.fetchFailed(key: "users/1", error: NotFound(), duration: .zero))
    continuation.finish()
    try await CacheLog(name: "users", events: events, logger: logger).run()
    #expect(lines.isEmpty)
  }

  @Test func `one log takes the events of several caches, or a part of them`() async throws {
    let users = MultiplexerMap<Int, String>(id: "users") { _ in throw Away() }
    let orders = MultiplexerMap<Int, String>(id: "orders") { _ in throw Away() }
    let isFailure: @Sendable (CacheEvent) -> Bool = {
      if case .fetchFailed = $0 { true } else { false }
    }
    let log = CacheLog(
      name: "all",
      events: merge(
        users.events().filter(isFailure).prefix(1),
        orders.events().filter(isFailure).prefix(1)
      ),
      logger: logger
    )
    for cache in [users, orders] { _ = try? await cache.request(1) }
    try await within(.seconds(60)) { try await log.run() }
    #expect(lines == ["error fetches fail"])
  }

  @Test func `an outage ends when no failure has come for a while`() {
    var outage = Outage(quiet: .seconds(10))
    #expect(outage.succeeded(at: .seconds(0)) == nil)
    #expect(outage.failed(at: .seconds(1)) == .began)
    #expect(outage.failed(at: .seconds(5)) == nil)
    #expect(outage.succeeded(at: .seconds(14)) == nil)
    #expect(
      outage.succeeded(at: .seconds(15)) == .ended(failures: 2, duration: .seconds(4))
    )
    #expect(outage.succeeded(at: .seconds(16)) == nil)
    #expect(outage.failed(at: .seconds(17)) == .began)
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `an engine logs each change once`() async throws {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    try await engine.connect(within: .seconds(30))
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: engine.cacher(space: "users", schema: "1"),
      onKeyFetch: { "\($0)" }
    )
    let health = engine.health()
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [EngineLog(engine: engine, logger: logger)],
        logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
      )
    )
    try await within(.seconds(60)) {
      async let end: Void = group.run()
      server.kill()
      for await health in health {
        if case .isolated = health { break }
      }
      for id in 0..<200 { _ = try? await users.request(id) }
      try server.start()
      try await engine.connect(within: .seconds(30))
      await group.triggerGracefulShutdown()
      try await end
    }
    #expect(lines.count { $0.hasPrefix("error") } <= 1)
    #expect(lines.count { $0.hasPrefix("notice") } <= 2)
  }
}
