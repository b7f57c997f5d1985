import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport

/// One of several processes with a map over the same engine, and the fetches that it has made.
struct SharedNode: Sendable {
  let cacher: SharedMemoryNode<String>
  let map: MultiplexerMap<String, String>
  let fetches: Log<String>
  /// Fetches wait until it is open.
  let gate = Gate()

  /// - Parameters:
  ///   - engine: The engine.
  ///   - clock: The clock of the map.
  ///   - policy: The policy of the map.
  ///   - tagging: Returns the tags of a key.
  ///   - fetch: Returns the value of a key.
  init(
    _ engine: SharedMemory<String>,
    clock: any Clock<Duration>,
    policy: CachePolicy = CachePolicy(),
    tagging: (@Sendable (String) -> [CacheTag])? = nil,
    fetch: @escaping @Sendable (String) throws -> String
  ) {
    let (fetches, gate) = (Log<String>(), gate)
    gate.open()
    self.fetches = fetches
    cacher = engine.node()
    map = MultiplexerMap(
      id: "values",
      policy: policy,
      cacher: cacher,
      tagging: tagging,
      clock: clock
    ) { key in
      fetches.append(key)
      try await gate.wait()
      return try fetch(key)
    }
  }

  var fetchCount: Int { fetches.entries.count }
}

/// An origin whose value can be changed.
final class Origin: Sendable {
  private let state = Guarded<Result<String, any Error>>(.success("1"))

  /// Changes the value.
  func set(_ value: String) {
    state.withLock { $0 = .success(value) }
  }

  /// Lets fetches fail.
  func fail(_ error: any Error = Down()) {
    state.withLock { $0 = .failure(error) }
  }

  func value(_ key: String) throws -> String {
    try state.withLock { $0 }.get()
  }

  struct Down: Error, Hashable, ConnectivityFailure {
    var isConnectivityFailure: Bool { true }
  }
}
