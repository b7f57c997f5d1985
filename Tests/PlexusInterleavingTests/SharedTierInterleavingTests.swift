import Plexus
import PlexusSharedTesting
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `The shared tier, in every order` {
    /// Two nodes over one engine, and an origin whose value is a number.
    private struct Nodes: Sendable {
      let value = Guarded(1)
      let fetches = Log<Int>()
      let engine: SharedMemory<Int>
      let a: MultiplexerMap<Int, Int>
      let b: MultiplexerMap<Int, Int>

      init() {
        var policy = CachePolicy()
        policy.storageTimeout = .seconds(5_000_000_000)
        let clock = ManualClock()
        let engine = SharedMemory<Int>(clock: clock)
        self.engine = engine
        let fetch: @concurrent @Sendable (Int) async throws -> Int = { [value, fetches] _ in
          let found = value.withLock { $0 }
          fetches.append(found)
          await hop()
          return found
        }
        a = MultiplexerMap(
          policy: policy,
          cacher: engine.node(),
          clock: clock,
          onKeyFetch: fetch
        )
        b = MultiplexerMap(
          policy: policy,
          cacher: engine.node(),
          clock: clock,
          onKeyFetch: fetch
        )
      }

      /// Requires that every later request gets a value.
      func expect(_ expected: Int) async throws {
        for map in [a, b, a] {
          let found = try await map.request(7)
          guard found == expected else { throw Wrong(what: "\(found) in place of \(expected)") }
        }
      }
    }

    @Test(.guarantee(.nodesHoldInEveryOrder)) func `nodes that ask at once fetch once`() throws {
      try forEveryInterleaving(deviations: 3) {
        let nodes = Nodes()
        let first = Task { try await nodes.a.request(7) }
        let second = Task { try await nodes.b.request(7) }
        guard try await first.value == 1, try await second.value == 1 else {
          throw Wrong(what: "the value")
        }
        guard nodes.fetches.count == 1 else { throw Wrong(what: "two fetches") }
      }
    }

    @Test(.guarantee(.nodesHoldInEveryOrder))
    func `no request after a clear gets anything that was fetched before it`() throws {
      try forEveryInterleaving(deviations: 3) {
        let nodes = Nodes()
        let request = Task { try await nodes.a.request(7) }
        let clear = Task {
          nodes.value.withLock { $0 = 2 }
          try await nodes.b.clear(7)
        }
        _ = try await request.value
        try await clear.value
        try await nodes.expect(2)
      }
    }

    @Test(.guarantee(.nodesHoldInEveryOrder))
    func `no request after a clear everywhere gets anything that was fetched before it`()
      throws
    {
      try forEveryInterleaving(deviations: 2) {
        let nodes = Nodes()
        let repository = MuxRepository()
        nodes.b.register(in: repository)
        let request = Task { try await nodes.a.request(7) }
        let clear = Task {
          nodes.value.withLock { $0 = 2 }
          try await repository.clearAll(.everywhere)
        }
        try await clear.value
        try await nodes.expect(2)
        _ = try await request.value
        try await nodes.expect(2)
      }
    }

    @Test(.guarantee(.nodesHoldInEveryOrder))
    func `no request after a refresh gets anything that was fetched before it`() throws {
      try forEveryInterleaving(deviations: 3) {
        let nodes = Nodes()
        let request = Task { try await nodes.a.request(7) }
        let refresh = Task {
          nodes.value.withLock { $0 = 2 }
          return try await nodes.b.refresh(7).request(7)
        }
        _ = try await request.value
        guard try await refresh.value == 2 else { throw Wrong(what: "the refreshed value") }
        try await nodes.expect(2)
      }
    }

    @Test(.guarantee(.nodesHoldInEveryOrder))
    func `a value that was stored is not replaced by a fetch that began before it`() throws {
      try forEveryInterleaving(deviations: 3) {
        let nodes = Nodes()
        let request = Task { try await nodes.a.request(7) }
        let store = Task {
          nodes.b.store(2, for: 7)
          try await nodes.b.flush()
        }
        _ = try await request.value
        try await store.value
        try await nodes.expect(2)
      }
    }
  }
}
