import Foundation
import InMemoryLogging
import Logging
import Plexus
import PlexusRedis
import PlexusTesting
import ServiceLifecycle
import Testing
import UnixSignals

@Suite struct `Services that end` {
  private let handler = InMemoryLogHandler()

  private var logger: Logger { Logger(label: "test", factory: { [handler] _ in handler }) }

  private func group(_ services: [any Service]) -> ServiceGroup {
    ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services,
        gracefulShutdownSignals: [.sigusr1],
        logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
      )
    )
  }

  @Test func `a signal flushes the caches after the requests have ended`() async throws {
    let repository = MuxRepository()
    let cacher = StoredEntries()
    let users = MultiplexerMap<Int, String>(id: "users", cacher: cacher, onKeyFetch: { "\($0)" })
      .register(in: repository)
    let requests = Requests(users: users)
    let group = group([CacheService(repository: repository, logger: logger), requests])
    try await within(.seconds(60)) {
      async let end: Void = group.run()
      await requests.begun.arrivals(1)
      kill(getpid(), SIGUSR1)
      try await end
    }
    // The last request is made while the process ends.
    #expect(cacher.keys == ["users/1", "users/2"])
    #expect(handler.entries.isEmpty)
  }

  @Test func `a cacher that hangs delays the end by the limit only`() async throws {
    let clock = ManualClock()
    let repository = MuxRepository()
    let cacher = StoredEntries()
    cacher.gate.close()
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: cacher,
      clock: ManualClock(),
      onKeyFetch: { "\($0)" }
    ).register(in: repository)
    _ = try await users.request(1)
    let group = group([
      CacheService(repository: repository, limit: .seconds(10), clock: clock, logger: logger)
    ])
    try await within(.seconds(60)) {
      async let end: Void = group.run()
      await group.triggerGracefulShutdown()
      await clock.sleepers(1)
      await cacher.gate.arrivals(1)
      clock.advance(by: .seconds(10))
      try await end
    }
    #expect(handler.entries.map(\.message) == ["caches not flushed"])
    cacher.gate.open()
  }

  @Test func `caches are flushed when another service fails`() async throws {
    let repository = MuxRepository()
    let cacher = StoredEntries()
    let users = MultiplexerMap<Int, String>(id: "users", cacher: cacher, onKeyFetch: { "\($0)" })
      .register(in: repository)
    _ = try await users.request(1)
    let group = group([CacheService(repository: repository, logger: logger), Failing()])
    try await within(.seconds(60)) {
      await #expect(throws: Failing.Failure.self) { try await group.run() }
    }
    #expect(cacher.keys == ["users/1"])
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `the engine is closed after the caches`() async throws {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    try await engine.connect(within: .seconds(30))
    let connections = ObservationBag()
    EventBus().connect(Renamed.self, as: "renamed", over: engine.events, .everyNode())
      .store(in: connections)
    let repository = MuxRepository()
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: engine.cacher(space: "users", schema: "1"),
      onKeyFetch: { "\($0)" }
    ).register(in: repository)
    let requests = Requests(users: users)
    let group = group([
      EngineService(engine: engine, connections: connections, logger: logger),
      CacheService(repository: repository, logger: logger),
      requests,
    ])
    try await within(.seconds(60)) {
      async let end: Void = group.run()
      await requests.begun.arrivals(1)
      await group.triggerGracefulShutdown()
      try await end
    }
    #expect(engine.status.caches.health == .closed)
    #expect(connections.count == 0)
    #expect(handler.entries.isEmpty)
    let statistics = users.statistics
    #expect(statistics.cacherErrors == 0)
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `a node without events is ready once its caches are connected`() async throws {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: engine.cacher(space: "users", schema: "1"),
      onKeyFetch: { "\($0)" }
    )
    let readiness = Readiness(engine: engine, notice: .zero)
    let running = Task { try await readiness.run() }
    try await within(.seconds(60)) {
      for await isReady in readiness.isReady.subscribe() where isReady { break }
      running.cancel()
      try await running.value
    }
    #expect(!readiness.isReady.value)
    withExtendedLifetime(users) {}
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `an engine whose server is away closes within its limit`() async throws {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    try await engine.connect(within: .seconds(30))
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: engine.cacher(space: "users", schema: "1"),
      onKeyFetch: { "\($0)" }
    )
    _ = try await users.request(1)
    server.kill()
    await #expect(throws: (any Error).self) { try await users.clear(1) }
    let group = group([EngineService(engine: engine, logger: logger)])
    try await within(.seconds(60)) {
      async let end: Void = group.run()
      await group.triggerGracefulShutdown()
      try await end
    }
    // The removal is owed, and is lost.
    #expect(handler.entries.map(\.message) == ["engine not closed"])
  }
}

/// A service that uses a cache until it ends.
private struct Requests: Service {
  let users: MultiplexerMap<Int, String>
  let begun = Gate()

  func run() async throws {
    _ = try await users.request(1)
    begun.open()
    try await begun.wait()
    try await gracefulShutdown()
    _ = try await users.request(2)
  }
}

private struct Failing: Service {
  struct Failure: Error {}

  func run() async throws { throw Failure() }
}

private struct Renamed: Event, Codable {}

/// A cacher that shows what was stored.
private final class StoredEntries: Cacher {
  let gate = Gate()
  private let entries = Guarded<[String: CacheEntry<String>]>([:])

  init() { gate.open() }

  var keys: Set<String> { entries.withLock { Set($0.keys) } }

  func entry(forKey key: String) async throws -> CacheEntry<String>? {
    entries.withLock { $0[key] }
  }

  func store(_ new: [String: CacheEntry<String>]) async throws {
    try await gate.wait()
    entries.withLock { $0.merge(new) { $1 } }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    entries.withLock { entries in for key in keys { entries[key] = nil } }
  }

  func removeAllEntries() async throws {
    entries.withLock { $0 = [:] }
  }
}
