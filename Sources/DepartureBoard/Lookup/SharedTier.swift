import Plexus
import PlexusRedis

/// The Redis server over which several boards share what they fetch and what they announce.
struct SharedTier: Sendable {
  /// The engine of this board, over which its caches share values, and its bus shares flight changes.
  let engine: RedisEngine

  /// Begins to connect.
  ///
  /// A board works without the server, too.
  ///
  /// - Parameter address: The address of the server.
  /// - Throws: An error if the process has no thread or file descriptor left.
  init(_ address: ServerAddress) throws {
    var options = RedisOptions()
    // A board at its highest speed keeps its server busy, and waits for it rather than fetching twice.
    options.commandTimeout = .seconds(5)
    engine =
      switch address {
      case .port(let port, let host):
        try RedisEngine(.tcp(host: host, port: port), options: options)
      case .socket(let path): try RedisEngine(.unix(path: path), options: options)
      }
  }

  /// The link for flight changes.
  var events: any EventLink { engine.events }

  /// Whether flight changes reach the server, as far as the board can tell.
  var isReachable: Bool {
    if case .isolated = engine.status.events.health { false } else { true }
  }

  /// Ends the connection, so that other boards need not wait for this one.
  func close() async {
    // The board ends in any case. What it could not clear is older than its times to live allow.
    try? await engine.close()
  }

  /// Returns the cacher of a map.
  ///
  /// - Parameter name: The name of the map.
  /// - Returns: The cacher.
  func cacher<Value: Codable & Sendable>(_ name: String) -> any SharedCacher<Value> {
    engine.cacher(space: "departures-\(name)", schema: "1")
  }
}
