import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

/// Fallbacks of processes that share a server, and requests of several keys without it.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Fallbacks and batches over a Redis server` {
  private let server: RedisServer
  private let origin = Guarded<Result<String, any Error>>(.success("1"))

  init() throws {
    server = try RedisServer()
  }

  private func fail() { origin.withLock { $0 = .failure(Offline()) } }

  // MARK: - Processes that wait for another one

  /// Returns a node whose values are stale soon after their fetch.
  private func makeNode(
    _ gate: Gate? = nil,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) async throws -> CacheNode {
    var policy = CachePolicy(timeToLive: .milliseconds(1))
    change(&policy)
    return try await CacheNode(server.address, policy: policy) { [origin] _ in
      try await gate?.wait()
      return try origin.withLock { $0 }.get()
    }
  }

  /// Returns a node that has fetched a key, and fetches it again until its gate opens, and one that can wait for it.
  private func makePair(
    _ change: (inout CachePolicy) -> Void = { _ in },
    hasValue: Bool = true
  ) async throws -> (holder: CacheNode, node: CacheNode, gate: Gate) {
    let gate = Gate()
    gate.open()
    let holder = try await makeNode(gate)
    let node = try await makeNode(nil, change)
    #expect(try await holder.map.request("k") == "1")
    // The request waits for the fetch, whatever the policy.
    if hasValue { #expect(try await node.map.refresh("k").request("k") == "1") }
    #expect(node.fetchCount == (hasValue ? 1 : 0))
    // All values are stale from now on.
    _ = try RedisShell.run("BLPOP nothing 0.02", on: server)
    gate.close()
    return (holder, node, gate)
  }

  @Test(arguments: [false, true])
  func `a process that waits for a failing fetch answers with its stale value`(
    hasValue: Bool
  ) async throws {
    let (holder, node, gate) = try await makePair(hasValue: hasValue)
    let count = node.fetchCount
    let monitor = try await RedisMonitor(server)
    fail()
    let fetch = Task { try await holder.map.request("k") }
    await gate.arrivals(2)
    let waiting = Task { try await node.map.response("k") }
    await monitor.looks(for: "k", by: 2)
    gate.open()
    #expect(try await fetch.value == "1")
    let response = try await waiting.value
    #expect(response.value == "1")
    #expect(response.isStale)
    #expect(response.error is SharedCache.Failure)
    #expect(node.fetchCount == count)
    for node in [holder, node] { try await node.close() }
  }

  @Test func `a process whose look another one has overtaken answers with its stale value`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (holder, _, gate) = try await makePair(hasValue: false)
    let policy = CachePolicy(timeToLive: .milliseconds(1))
    let node = try await CacheNode(proxy.address, policy: policy) { [origin] _ in
      try origin.withLock { $0 }.get()
    }
    #expect(try await node.map.refresh("k").request("k") == "1")
    _ = try RedisShell.run("BLPOP nothing 0.02", on: server)
    let count = holder.fetchCount
    fail()
    proxy.hold(before: "EVALSHA")
    let waiting = Task { try await node.map.response("k") }
    await Failover.poll { proxy.isHeld }
    let fetch = Task { try await holder.map.request("k") }
    await gate.arrivals(count + 1)
    proxy.resume()
    gate.open()
    #expect(try await fetch.value == "1")
    let response = try await waiting.value
    #expect(response.value == "1" && response.isStale)
    for node in [holder, node] { try await node.close() }
  }

  @Test func `the policy judges the failure of another process`() async throws {
    let (holder, node, gate) = try await makePair({ $0.usesCachedValue = { _ in false } })
    let count = node.fetchCount
    let monitor = try await RedisMonitor(server)
    fail()
    let fetch = Task { try await holder.map.request("k") }
    await gate.arrivals(2)
    let waiting = Task { try await node.map.request("k") }
    await monitor.looks(for: "k", by: 2)
    gate.open()
    _ = await fetch.result
    await #expect(throws: SharedCache.Failure.self) { try await waiting.value }
    #expect(node.fetchCount == count)
    for node in [holder, node] { try await node.close() }
  }

  @Test(.guarantee(.staleValuesAnswerDuringRenewalsElsewhere))
  func `a stale value answers at once while another process fetches, and after its failure`()
    async throws
  {
    let (holder, node, gate) = try await makePair({ $0.staleWhileRevalidate = .seconds(3_600) })
    let monitor = try await RedisMonitor(server)
    fail()
    let fetch = Task { try await holder.map.response("k") }
    await gate.arrivals(2)
    // Its renewal waits for the other process, and it does not.
    for _ in 0..<10 { #expect(try await node.map.request("k") == "1") }
    await monitor.looks(for: "k", by: 2)
    for _ in 0..<10 { #expect(try await node.map.request("k") == "1") }
    #expect(node.fetchCount == 1)
    gate.open()
    #expect(try await fetch.value.isStale)
    for _ in 0..<100 { #expect(try await node.map.request("k") == "1") }
    for node in [holder, node] { try await node.close() }
  }

  @Test func `the soft timeout answers a process that waits for another one`() async throws {
    let (holder, node, gate) = try await makePair({ $0.softTimeout = .milliseconds(50) })
    let count = node.fetchCount
    let fetch = Task { try await holder.map.request("k") }
    await gate.arrivals(2)
    let response = try await node.map.response("k")
    #expect(response.value == "1")
    #expect(response.isStale)
    #expect(node.fetchCount == count)
    gate.open()
    #expect(try await fetch.value == "1")
    for node in [holder, node] { try await node.close() }
  }

  // MARK: - Several keys

  /// A map that fetches several keys at once, over a proxy in front of the server.
  private struct Bulk: Sendable {
    let proxy: RedisProxy
    let engine: RedisEngine
    let map: MultiplexerMap<String, String>
    let fetches = Log<Set<String>>()
    let gate = Gate()
    static let nearLease = Duration.milliseconds(200)

    init(
      _ server: RedisServer,
      _ origin: Guarded<Result<String, any Error>>,
      _ rule: RedisOptions.WhileIsolated = .fetch,
      window: Duration = .zero,
      maximumBatchSize: Int? = nil
    ) async throws {
      proxy = try RedisProxy(server)
      gate.open()
      let monitor = try await RedisMonitor(server)
      let options = RedisOptions(
        commandTimeout: .seconds(60),
        nearLease: Self.nearLease,
        whileIsolated: rule,
        fetchLease: .seconds(60)
      )
      engine = try RedisEngine(proxy.address, options: options)
      map = .bulk(
        id: "values",
        policy: CachePolicy(storageTimeout: .seconds(120)),
        cacher: engine.cacher(space: "values", schema: "1"),
        window: window,
        maximumBatchSize: maximumBatchSize
      ) { [fetches, gate] keys in
        fetches.append(Set(keys))
        try await gate.wait()
        let value = try origin.withLock { $0 }.get()
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, value) })
      }
      // It has acknowledged the epoch, and trusts its copies.
      await monitor.acknowledgements(1)
    }

    /// Lets the server be away until copies are no longer trusted.
    func cutOff() async {
      proxy.refuse()
      await engine.becomesIsolated()
      await Failover.poll { [engine] in (engine.status.trustAge ?? .zero) > Self.nearLease }
    }

    func values(_ keys: Set<String>) async throws -> Set<String> {
      let results = await map.request(Array(keys))
      #expect(Set(results.keys) == keys)
      return Set(try results.values.map { try $0.get() })
    }
  }

  private let keys = Set((0..<50).map { "key \($0)" })
  private let others = Set((50..<100).map { "key \($0)" })

  @Test func `several keys are one fetch while the server is away`() async throws {
    let bulk = try await Bulk(server, origin)
    await bulk.cutOff()
    for round in 1...2 {
      #expect(try await bulk.values(keys) == ["1"])
      #expect(bulk.fetches.entries == Array(repeating: keys, count: round))
    }
    try await bulk.engine.close()
  }

  @Test func `a batch keeps its largest size while the server is away`() async throws {
    let bulk = try await Bulk(server, origin, maximumBatchSize: 20)
    await bulk.cutOff()
    #expect(try await bulk.values(keys) == ["1"])
    #expect(bulk.fetches.entries.map(\.count).sorted() == [10, 20, 20])
    try await bulk.engine.close()
  }

  @Test func `requests of single keys share a window while the server is away`() async throws {
    let bulk = try await Bulk(server, origin, window: .seconds(3_600), maximumBatchSize: 50)
    await bulk.cutOff()
    let requests = keys.map { key in Task { try await bulk.map.request(key) } }
    for request in requests { #expect(try await request.value == "1") }
    #expect(bulk.fetches.entries == [keys])
    try await bulk.engine.close()
  }

  @Test func `keys that wait for another process are one fetch when the server is gone`()
    async throws
  {
    let gate = Gate()
    let holder = try await makeNode(gate)
    let bulk = try await Bulk(server, origin)
    let held = keys.map { key in Task { try await holder.map.request(key) } }
    await gate.arrivals(50)
    let monitor = try await RedisMonitor(server)
    let request = Task { try await bulk.values(keys) }
    for key in keys { await monitor.looks(for: key, by: 1) }
    bulk.proxy.refuse()
    #expect(try await request.value == ["1"])
    #expect(bulk.fetches.entries == [keys])
    gate.open()
    for task in held { #expect(try await task.value == "1") }
    try await holder.close()
    try await bulk.engine.close()
  }

  @Test func `several keys are kept while the server is away, each after one fetch`() async throws {
    let bulk = try await Bulk(server, origin, .keep(.seconds(3_600)))
    let all = keys.union(others)
    #expect(try await bulk.values(keys) == ["1"])
    await bulk.cutOff()
    origin.withLock { $0 = .success("2") }
    // The keys with a copy are not fetched, and requests of the others share one fetch.
    bulk.gate.close()
    let request = Task { try await bulk.values(all) }
    await bulk.gate.arrivals(2)
    let requests = [request] + (0..<2).map { _ in Task { try await bulk.values(all) } }
    while bulk.map.statistics.joins < 2 * others.count { await Task.detached {}.value }
    bulk.gate.open()
    for request in requests { #expect(try await request.value == ["1", "2"]) }
    #expect(try await bulk.values(keys) == ["1"])
    #expect(try await bulk.values(others) == ["2"])
    #expect(bulk.fetches.entries == [keys, others])
    // All of them are fallbacks of one failing fetch.
    fail()
    bulk.map.refresh(Array(all))
    #expect(try await bulk.values(all) == ["1", "2"])
    #expect(bulk.fetches.entries == [keys, others, all])
    // None is used without a look after the reconnection: the values of the others were stored nowhere.
    origin.withLock { $0 = .success("3") }
    bulk.proxy.endRefusal()
    await bulk.engine.becomesConnected()
    while try await bulk.values(others) != ["3"] { await Task.detached {}.value }
    try await bulk.engine.close()
  }
}
