import Logging
import Metrics
import MetricsTestKit
import Plexus
import PlexusRedis
import PlexusTesting
import ServiceLifecycle
import Testing

@Suite struct `Metrics` {
  struct Failure: Error {}

  @Test func `counters count what has happened since the last time`() async throws {
    let repository = MuxRepository()
    let users = MultiplexerMap<Int, String>(id: "users", capacity: .count(100)) { id in
      if id < 0 { throw Failure() }
      return "\(id)"
    }.register(in: repository)
    let test = TestMetrics()
    var counted: [String: CacheStatistics] = [:]
    let metrics = CacheMetrics(repository: repository)
    for _ in 0..<2 {
      _ = try await users.request(1)
      _ = try? await users.request(-1)
      withMetricsFactory(test) { metrics.record(since: &counted) }
    }
    let cache = [("cache.name", "users")]
    #expect(test.counterTotal(label: "cache.fetches", dimensions: cache) == 3)
    #expect(test.counterTotal(label: "cache.fetch.failures", dimensions: cache) == 2)
    let hits = cache + [("cache.result", "hit")]
    #expect(test.counterTotal(label: "cache.requests", dimensions: hits) == 1)
    for state in ["running", "waiting", "abandoned"] {
      #expect(try test.expectMeter("cache.fetches.\(state)", cache).lastValue == 0)
    }
  }

  @Test func `a cache that is created again is counted from zero`() async throws {
    let repository = MuxRepository()
    let test = TestMetrics()
    var counted: [String: CacheStatistics] = [:]
    let metrics = CacheMetrics(repository: repository)
    for hits in [100, 50] {
      let users = MultiplexerMap<Int, String>(id: "users") { "\($0)" }.register(in: repository)
      for _ in 0...hits { _ = try await users.request(1) }
      withMetricsFactory(test) { metrics.record(since: &counted) }
    }
    let hits = [("cache.name", "users"), ("cache.result", "hit")]
    #expect(test.counterTotal(label: "cache.requests", dimensions: hits) == 150)
    #expect(test.counterTotal(label: "cache.fetches") == 2)
  }

  @Test func `the service exports each interval and once more at the end`() async throws {
    let repository = MuxRepository()
    let users = MultiplexerMap<Int, String>(id: "users") { "\($0)" }.register(in: repository)
    let clock = ManualClock()
    let test = TestMetrics()
    let metrics = CacheMetrics(repository: repository, interval: .seconds(10), clock: clock)
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [metrics],
        logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
      )
    )
    try await within(.seconds(60)) {
      try await withMetricsFactory(test) {
        async let end: Void = group.run()
        await clock.sleepers(1)
        _ = try await users.request(1)
        clock.advance(by: .seconds(10))
        await clock.sleepers(1)
        #expect(test.counterTotal(label: "cache.fetches") == 1)
        _ = try await users.request(2)
        await group.triggerGracefulShutdown()
        try await end
      }
    }
    #expect(test.counterTotal(label: "cache.fetches") == 2)
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `an engine counts commands, bytes and errors`() async throws {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    try await engine.connect(within: .seconds(30))
    let users = MultiplexerMap<Int, String>(
      id: "users",
      cacher: engine.cacher(space: "users", schema: "1"),
      onKeyFetch: { "\($0)" }
    )
    _ = try await users.request(1)
    let test = TestMetrics()
    var last: EngineStatus?
    withMetricsFactory(test) { EngineMetrics(engine: engine).record(since: &last) }
    #expect(test.counterTotal(label: "cache.engine.commands") > 0)
    #expect(test.counterTotal(label: "cache.engine.io") > 0)
    server.kill()
    await #expect(throws: (any Error).self) { try await users.clear(1) }
    withMetricsFactory(test) { EngineMetrics(engine: engine).record(since: &last) }
    #expect(test.counterTotal(label: "cache.engine.errors") > 0)
    #expect(test.meters(label: "cache.engine.removals.owed").last?.lastValue == 1)
  }
}
