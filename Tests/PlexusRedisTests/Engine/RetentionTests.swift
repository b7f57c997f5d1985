import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Entries on a server` {
  private static let day = Duration.seconds(86_400)

  private let server: RedisServer

  init() throws {
    server = try RedisServer()
  }

  /// The time for which an entry stays on the server.
  private func lifetime(of key: String) throws -> Duration {
    let reply = try RedisShell.run("PTTL {s}:2:e:1:m/\(key)", on: server)
    return .milliseconds(try #require(Int(reply.dropFirst().dropLast())))
  }

  /// Expects that an entry stays for some time, part of which has passed.
  private func expect(_ time: Duration, for key: String) throws {
    let lifetime = try lifetime(of: key)
    #expect(lifetime <= time && lifetime > time - .seconds(60), "\(key): \(lifetime)")
  }

  /// Makes a cache that fetches and stores values.
  private func use(
    _ policy: CachePolicy,
    _ retention: Duration? = nil,
    _ directives: CacheDirectives = CacheDirectives(),
    _ body: (MultiplexerMap<String, Int>) async throws -> Void
  ) async throws {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.retention = Self.day
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    let cacher = engine.cacher(Int.self, space: "s", schema: "1", retention: retention)
    let map = MultiplexerMap<String, Int>(id: "m", policy: policy, cacher: cacher) {
      (_, _: FetchContext<Int>) in .value(1, directives: directives)
    }
    try await body(map)
    try await engine.close()
  }

  @Test(.guarantee(.entriesStayAsLongAsUsable))
  func `entries on a server stay as long as their policy can use them`()
    async throws
  {
    var policy = CachePolicy(timeToLive: .seconds(600))
    policy.staleTimeToLive = .seconds(300)
    try await use(policy) { map in
      _ = try await map.request("fetched")
      try expect(.seconds(900), for: "fetched")
      map.store(2, for: "stored")
      try await map.flush()
      try expect(.seconds(900), for: "stored")
    }
    policy.staleWhileRevalidate = .seconds(1_000)
    try await use(policy) { map in
      _ = try await map.request("renewed")
      try expect(.seconds(1_600), for: "renewed")
    }
    policy.expiryJitter = 0.5
    try await use(policy) { map in
      _ = try await map.request("jittered")
      try expect(.seconds(1_900), for: "jittered")
    }
  }

  @Test(.guarantee(.entriesStayAsLongAsUsable))
  func `entries on a server stay as long as their directives say`()
    async throws
  {
    var policy = CachePolicy(timeToLive: .seconds(600))
    policy.staleTimeToLive = .seconds(300)
    let directives = CacheDirectives(timeToLive: .seconds(100), staleIfError: .seconds(2_000))
    try await use(policy, nil, directives) { map in
      _ = try await map.request("k")
      try expect(.seconds(2_100), for: "k")
    }
  }

  @Test(.guarantee(.entriesStayAsLongAsUsable))
  func `entries stay for the retention of their space at most, or else that of the engine`()
    async throws
  {
    // A stale value can be used however old it is.
    try await use(CachePolicy(timeToLive: .seconds(600))) { map in
      _ = try await map.request("engine")
      try expect(Self.day, for: "engine")
    }
    try await use(CachePolicy(timeToLive: .seconds(600)), .seconds(7_200)) { map in
      _ = try await map.request("space")
      try expect(.seconds(7_200), for: "space")
    }
    var policy = CachePolicy(timeToLive: .seconds(600))
    policy.staleTimeToLive = .seconds(300)
    try await use(policy, .seconds(200)) { map in
      _ = try await map.request("short")
      try expect(.seconds(200), for: "short")
    }
  }

  @Test(.guarantee(.entriesStayAsLongAsUsable))
  func `entries on a server stay until the processes that have waited for them have read them`()
    async throws
  {
    var policy = CachePolicy(timeToLive: .zero)
    policy.staleTimeToLive = .zero
    try await use(policy) { map in
      _ = try await map.request("k")
      #expect(try lifetime(of: "k") > .seconds(1))
    }
  }
}
