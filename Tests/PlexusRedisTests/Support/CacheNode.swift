import Plexus
import PlexusRedis
import TestSupport

/// A process with a map, as far as a server can tell, and the fetches that it has made.
struct CacheNode: Sendable {
  let engine: RedisEngine
  let cacher: any SharedCacher<String>
  let map: MultiplexerMap<String, String>
  let repository = MuxRepository()
  let fetches = Log<String>()
  let errors = Log<String>()
  private let listening: Task<Void, Never>

  /// Commands have a minute unless the options are changed, and calls of the cacher have longer: tests do not depend on
  /// how busy the machine is.
  init(
    _ address: RedisAddress,
    policy: CachePolicy = CachePolicy(),
    _ change: (inout RedisOptions) -> Void = { _ in },
    fetch: @escaping @concurrent @Sendable (String) async throws -> String
  ) async throws {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.nearLease = .seconds(60)
    options.fetchLease = .seconds(60)
    change(&options)
    engine = try RedisEngine(address, options: options)
    cacher = engine.cacher(String.self, space: "values", schema: "1")
    var policy = policy
    policy.storageTimeout = options.commandTimeout + .seconds(60)
    let (fetches, errors) = (fetches, errors)
    map = MultiplexerMap(
      id: "values",
      policy: policy,
      cacher: cacher,
      tagging: { [CacheTag(String($0.prefix(1)))] },
      onKeyFetch: { key in
        fetches.append(key)
        return try await fetch(key)
      }
    )
    let events = map.events()
    listening = Task {
      for await event in events {
        if case .cacherFailed(_, let error) = event { errors.append("\(error)") }
      }
    }
    map.register(in: repository)
    await engine.becomesConnected()
  }

  var fetchCount: Int { fetches.count }

  func close() async throws {
    listening.cancel()
    try await engine.close()
  }
}
