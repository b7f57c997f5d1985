import Foundation
import Plexus
import PlexusRedis
import TestSupport
import Testing

/// Requests of many keys, and large values.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Large requests over a Redis server` {
  /// The number of keys of a large request: without the optimizer, each of them takes a third of a millisecond of this
  /// process.
  #if DEBUG
  private static let keyCount = 20_000
  #else
  private static let keyCount = 100_000
  #endif

  /// Returns a map that fetches several keys at once, and its engine.
  private func makeMap(
    _ address: RedisAddress,
    commandTimeout: Duration = .seconds(60),
    onFetch: @escaping @Sendable (Int) -> Void
  ) async throws -> (RedisEngine, MultiplexerMap<Int, String>) {
    var options = RedisOptions()
    options.commandTimeout = commandTimeout
    options.nearLease = .seconds(60)
    options.fetchLease = .seconds(60)
    let engine = try RedisEngine(address, options: options)
    var policy = CachePolicy()
    policy.storageTimeout = .seconds(120)
    let map = MultiplexerMap<Int, String>.bulk(
      id: "values",
      policy: policy,
      cacher: engine.cacher(space: "values", schema: "1")
    ) { keys in
      onFetch(keys.count)
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "value \($0)") })
    }
    try await engine.connect(within: .seconds(60))
    return (engine, map)
  }

  @Test(.guarantee(.requestsOfManyKeysFetchInOneProcess))
  func `a request of many keys is fetched by one process only`() async throws {
    let server = try RedisServer()
    let count = Self.keyCount
    let (fetches, none) = (Log<Int>(), Log<Int>())
    let start = ContinuousClock.now
    let (a, first) = try await makeMap(server.address) { fetches.append($0) }
    let (b, second) = try await makeMap(server.address) { none.append($0) }
    for map in [first, second] {
      let values = await map.request(Array(0..<count))
      #expect(values.count == count)
      #expect(try values.allSatisfy { try $1.get() == "value \($0)" })
      #expect(map.statistics.cacherErrors == 0)
    }
    #expect(fetches.entries == [count])
    #expect(none.entries == [])
    // A read and a store of each key, and a look of eight keys. The second process only reads, with three commands more for
    // 64 keys. Some commands are those of heartbeats, a few a second.
    let heartbeats = 1_000 + 10 * Int((ContinuousClock.now - start).components.seconds)
    let limits = [count * 2 + count / 8, count].map { $0 + 3 * count / 64 + heartbeats }
    for (engine, limit) in zip([a, b], limits) {
      #expect(engine.status.roundTrips.count <= limit)
      try await engine.close()
    }
  }

  @Test func `a request of many keys can take longer than a command`() async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let end = Guarded<ContinuousClock.Instant?>(nil)
    let timeout = Duration.seconds(3)
    let (engine, map) = try await makeMap(proxy.address, commandTimeout: timeout) { _ in
      end.withLock { $0 = .now }
    }
    // A window of looks takes a third of the time, and all of them more than the time.
    proxy.slowReplies()
    let begin = ContinuousClock.now
    let values = await map.request(Array(0..<4_096))
    #expect(try values.allSatisfy { try $1.get() == "value \($0)" })
    #expect(map.statistics.cacherErrors == 0)
    let fetch = try #require(end.withLock { $0 })
    #expect(begin.duration(to: fetch) > timeout)
    #expect(engine.status.errors[.timedOut] == nil)
    proxy.resume()
    let fetches = Log<Int>()
    let (other, second) = try await makeMap(server.address) { fetches.append($0) }
    #expect(await second.request(Array(0..<4_096)).count == 4_096)
    #expect(fetches.entries == [])
    for engine in [engine, other] { try await engine.close() }
  }

  // MARK: - Values

  @Test(.guarantee(.rejectedValuesAreReportedOnce))
  func `a value that the outbox does not take is fetched by each process, and reported once`()
    async throws
  {
    let server = try RedisServer()
    let large = String(repeating: "x", count: 300_000)
    let fetch: @Sendable (String) -> String = { $0 == "large" ? large : "small" }
    let monitor = try await RedisMonitor(server)
    let a = try await CacheNode(server.address, { $0.outboxBytes = 200_000 }, fetch: fetch)
    let b = try await CacheNode(server.address, { $0.outboxBytes = 200_000 }, fetch: fetch)
    await monitor.acknowledgements(2)
    for node in [a, b] {
      for _ in 0..<5 {
        #expect(try await node.map.request("large") == large)
        #expect(try await node.map.request("small") == "small")
      }
      #expect(node.fetches.entries.count { $0 == "large" } == 1)
      let errors = await node.errors.first(1)
      #expect(errors[0].contains("300"), "\(errors)")
    }
    #expect(b.fetches.entries == ["large"])
    // Its copies follow the changes of other processes.
    try await b.map.clear("large")
    while a.fetches.entries.count(where: { $0 == "large" }) == 1 {
      _ = try await a.map.request("large")
    }
    _ = try await a.map.request("large")
    #expect(a.fetches.entries.count { $0 == "large" } == 2)
    #expect(a.errors.count == 1)
    for node in [a, b] { try await node.close() }
  }

  @Test(.guarantee(.slowValuesAreNotSentAgain))
  func `a value that is too slow delays no other one, and is not sent again`() async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let slow = "slow" + String(repeating: "x", count: 300_000)
    let fetch: @Sendable (String) -> String = { $0 == "large" ? slow : "small" }
    let monitor = try await RedisMonitor(server)
    let a = try await CacheNode(proxy.address, { $0.commandTimeout = .seconds(6) }, fetch: fetch)
    let b = try await CacheNode(server.address, fetch: fetch)
    await monitor.acknowledgements(2)
    proxy.hold(before: "slowx")
    let request = Task { try await a.map.request("large") }
    while !proxy.isHeld { try await a.cacher.outdate(["other"]) }
    for number in 0..<10 { #expect(try await a.map.request("\(number)") == "small") }
    #expect(a.errors.count == 0)
    #expect(try await request.value == slow)
    let errors = await a.errors.first(1)
    #expect(errors[0].contains("300"), "\(errors)")
    for number in 0..<10 { _ = try await b.map.request("\(number)") }
    #expect(b.fetchCount == 0)
    proxy.resume()
    proxy.hold(before: "slowx")
    #expect(try await a.map.refresh("large").request("large") == slow)
    #expect(!proxy.isHeld)
    #expect(a.errors.count == 1)
    proxy.resume()
    for node in [a, b] { try await node.close() }
  }

  @Test func `large values are stored and read, and their copies follow changes`() async throws {
    let server = try RedisServer()
    let origin = Guarded(String(repeating: "1", count: 300_000))
    let a = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    let b = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    for round in 2..<6 {
      let value = origin.withLock { $0 }
      #expect(try await a.map.request("k") == value)
      #expect(try await b.map.request("k") == value)
      #expect(try await a.map.request("k") == value)
      origin.withLock { $0 = String(repeating: "\(round)", count: 300_000) }
      try await b.map.clear("k")
      while try await a.map.request("k") == value { await Task.detached {}.value }
    }
    #expect(b.fetchCount + a.fetchCount == 5)
    let stored = String(repeating: "s", count: 400_000)
    a.map.store(stored, for: "k")
    try await a.map.flush()
    while try await b.map.request("k") != stored { await Task.detached {}.value }
    #expect(a.errors.count + b.errors.count == 0)
    for node in [a, b] { try await node.close() }
  }

  private static let large = CacheEntry(
    value: String(repeating: "x", count: 300_000),
    storedAt: .zero
  )

  @Test(.guarantee(.largeValuesNeedListedRights))
  func `a user with the rights of the article shares large values`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let rules = try AccessRules.rules(of: "cache").joined(separator: " ")
    try RedisShell.perform(
      ["ACL SETUSER cache \(rules.replacing("users", with: "values"))"],
      on: server
    )
    let node = try await CacheNode(server.address) {
      $0.credentials = { RedisCredentials(user: "cache", password: "secret") }
    } fetch: { _ in
      Self.large.value
    }
    _ = try await node.map.request("k")
    node.map.store(Self.large.value, for: "s")
    try await node.map.flush()
    #expect(node.errors.entries.map { $0.prefix(200) } == [])
    let other = try await CacheNode(server.address) { _ in "fetched" }
    for key in ["k", "s"] { #expect(try await other.map.request(key) == Self.large.value) }
    for node in [node, other] { try await node.close() }
  }

  @Test(.guarantee(.storedValuesFollowOtherProcesses))
  func `a large value that a process has stored follows the changes of others`() async throws {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    let a = try await CacheNode(server.address) { _ in "fetched" }
    let b = try await CacheNode(server.address) { _ in "fetched" }
    await monitor.acknowledgements(2)
    a.map.store(Self.large.value, for: "k")
    try await a.map.flush()
    #expect(try await a.map.request("k") == Self.large.value)
    try await b.map.clear("k")
    while try await a.map.request("k") == Self.large.value { await Task.detached {}.value }
    for node in [a, b] { try await node.close() }
  }

  @Test(.guarantee(.storedValuesFollowOtherProcesses))
  func `a change by another process is followed while a large value of its key is being sent`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let a = try await CacheNode(proxy.address) {
      $0.nearLease = .milliseconds(400)
      $0.commandTimeout = .seconds(60)
    } fetch: { _ in
      "fetched"
    }
    let b = try await CacheNode(server.address) { _ in "fetched" }
    #expect(try await a.map.request("k") == "fetched")
    // The connection of large values exists before one of them is held.
    a.map.store(Self.large.value, for: "other")
    try await a.map.flush()
    proxy.hold(before: "HOLD")
    let large = Self.large.value + "HOLD" + Self.large.value
    a.map.store(large, for: "k")
    let isFlushed = Guarded(false)
    let flush = Task {
      defer { isFlushed.withLock { $0 = true } }
      try await a.map.flush()
    }
    await Failover.poll { proxy.isHeld }
    let misses = a.map.statistics.misses
    try await b.map.clear("k")
    // The first request that follows the change waits until the value is written, or given up.
    let requests = Task {
      while try await a.map.request("k") == large { await Task.detached {}.value }
    }
    await Failover.poll { a.map.statistics.misses > misses || isFlushed.withLock { $0 } }
    #expect(!isFlushed.withLock { $0 })
    proxy.resume()
    _ = await flush.result
    try await requests.value
    for node in [a, b] { #expect(try await node.map.request("k") == "fetched") }
    for node in [a, b] { try await node.close() }
  }

  @Test(.guarantee(.statusCoversAllConnections))
  func `the status and the health are those of large values, too`() async throws {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in Self.large.value }
    _ = try await node.map.request("k")
    #expect(node.engine.status.bytesOut > 300_000)
    try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
    await #expect(throws: CacherError.self) { try await node.cacher.store(["s": Self.large]) }
    for await health in node.engine.health() {
      guard case .degraded(let reason) = health else { continue }
      #expect(reason.contains("stores") && reason.contains("OOM"))
      break
    }
    #expect(node.engine.status.errors[.outOfMemory] == 1)
    try await node.close()
    #expect(node.engine.status.bytesOut > 300_000)
  }
}
