import Plexus
import PlexusRedis
import TestSupport
import Testing

/// A process with a cache in each of several spaces, as far as the servers can tell.
struct ClusterNode: Sendable {
  let engine: RedisEngine
  let repository = MuxRepository()
  let maps: [String: MultiplexerMap<String, String>]
  let fetches = Log<String>()

  /// Commands have a minute unless the options are changed: tests do not depend on how busy the machine is.
  init(
    _ address: RedisAddress,
    _ origin: Guarded<String>,
    spaces: [String] = ["values"],
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) async throws {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.nearLease = .seconds(60)
    options.fetchLease = .seconds(60)
    change(&options)
    engine = try RedisEngine(address, options: options)
    var policy = CachePolicy()
    policy.storageTimeout = options.commandTimeout + .seconds(60)
    let fetches = fetches
    var maps: [String: MultiplexerMap<String, String>] = [:]
    for space in spaces {
      let cacher = engine.cacher(String.self, space: space, schema: "1")
      let map = MultiplexerMap<String, String>(id: space, policy: policy, cacher: cacher) { key in
        fetches.append("\(space)/\(key)")
        return origin.withLock { $0 }
      }
      map.register(in: repository)
      maps[space] = map
    }
    self.maps = maps
    await engine.becomesConnected()
  }

  func request(_ key: String, in space: String = "values") async throws -> String {
    let map = try #require(maps[space])
    return try await map.request(key)
  }

  /// Clears everything in all processes, as often as it takes.
  func clear() async {
    while (try? await repository.clearAll(.everywhere)) == nil { await Task.detached {}.value }
  }
}

extension ClusterNode {
  static let keys = (0..<12).map { "k\($0)" }

  /// The option of servers that serve their slots although those of another one are not served.
  static let partial = ["--cluster-require-full-coverage", "no"]

  /// Short times, after which a process notices that a server has changed.
  static func soon(_ options: inout RedisOptions) {
    // While a slot is open, servers refuse scripts of several keys: each request can take this long.
    options.commandTimeout = .milliseconds(250)
    options.nearLease = .seconds(1)
    options.fetchLease = .seconds(1)
  }

  /// As ``soon(_:)``, with clears that a replica has.
  static func replicated(_ options: inout RedisOptions) {
    soon(&options)
    options.commandTimeout = .seconds(2)
    options.clearReplicas = 1
  }

  /// Starts two processes with the same options.
  static func pair(
    _ cluster: RedisCluster,
    _ origin: Guarded<String>,
    _ change: (inout RedisOptions) -> Void
  ) async throws -> [ClusterNode] {
    [
      try await ClusterNode(cluster.address, origin, change),
      try await ClusterNode(cluster.address, origin, change),
    ]
  }
}

extension [ClusterNode] {
  func close() async throws {
    for node in self { try await node.engine.close() }
  }

  /// Expects that the processes serve a value for each key.
  func expectServing(
    _ value: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for node in self {
      for key in ClusterNode.keys {
        #expect(try await node.request(key) == value, sourceLocation: sourceLocation)
      }
    }
  }

  /// Expects that another process serves what these have stored since the last clear, and fetches nothing.
  func expectSharing(
    _ value: String,
    at cluster: RedisCluster,
    _ change: (inout RedisOptions) -> Void
  ) async throws {
    try await expectServing(value)
    while true {
      let other = try await ClusterNode(cluster.address, Guarded("of the other process"), change)
      var values: Set<String> = []
      for key in ClusterNode.keys { values.insert(try await other.request(key)) }
      #expect(values.isSubset(of: [value, "of the other process"]))
      let isShared = other.fetches.count == 0
      try await other.engine.close()
      guard !isShared else { return }
      // A process that was cut off can have fetched for its own callers only.
      await self[0].clear()
      try await [self[0]].expectServing(value)
    }
  }
}
