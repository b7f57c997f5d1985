import Foundation
import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Storage, in every order` {
    /// A fetch of several jobs that returns the number of its call.
    private final class Origin: Sendable {
      private let calls = Atomic(0)

      /// The number of fetches so far.
      var count: Int { calls.load(ordering: .relaxed) }

      func fetch() async throws -> Int {
        let number = calls.add(1, ordering: .relaxed).newValue
        await hop()
        return number
      }
    }

    /// A cacher in memory that takes a job to start and another one to end.
    private actor SlowCacher: Cacher {
      private(set) var entries: [String: CacheEntry<Int>] = [:]

      func entry(forKey key: String) async -> CacheEntry<Int>? {
        let entry = entries[key]
        await hop()
        return entry
      }

      func store(_ new: [String: CacheEntry<Int>]) async {
        await hop()
        entries.merge(new) { _, newer in newer }
      }

      func removeEntries(forKeys keys: Set<String>) async {
        await hop()
        for key in keys { entries[key] = nil }
      }

      func removeAllEntries() async {
        await hop()
        entries = [:]
      }

      func value(_ key: String) -> Int? { entries[key]?.value }
    }

    private static var readingFirst: CachePolicy {
      var policy = CachePolicy()
      policy.cacherRead = .beforeFetch
      return policy
    }

    /// A cacher without entries that records whether the caller had left before the read ended.
    private final class EmptyCacher: Cacher {
      let hasLeft = Atomic(false)
      let wasReadInVain = Atomic(false)

      func entry(forKey key: String) async -> CacheEntry<Int>? {
        await hop()
        if hasLeft.load(ordering: .relaxed) { wasReadInVain.store(true, ordering: .relaxed) }
        return nil
      }

      func store(_ new: [String: CacheEntry<Int>]) async {}
      func removeEntries(forKeys keys: Set<String>) async {}
      func removeAllEntries() async {}
    }

    @Test func `no fetch begins for a caller that left while the stored copy was read`()
      throws
    {
      let readsInVain = Guarded(0)
      let fetchesInVain = Guarded(0)
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let cacher = EmptyCacher()
        var policy = Self.readingFirst
        policy.whenUnobserved = .cancel
        let cache = Multiplexer<Int>(id: "key", policy: policy, cacher: cacher) {
          if cacher.wasReadInVain.load(ordering: .relaxed) { fetchesInVain.withLock { $0 += 1 } }
          return 1
        }
        let request = Task { try await cache.request() }
        await hop()
        request.cancel()
        _ = try? await request.value
        cacher.hasLeft.store(true, ordering: .relaxed)
        await hop()
        await hop()
        if cacher.wasReadInVain.load(ordering: .relaxed) { readsInVain.withLock { $0 += 1 } }
      }
      #expect(readsInVain.withLock { $0 } > 0, "No order leaves during the read")
      #expect(fetchesInVain.withLock { $0 } == 0)
    }

    @Test(.guarantee(.clearIsDurable)) func `clearing outlives every flush and fetch`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let origin = Origin()
        let cacher = SlowCacher()
        let cache = Multiplexer(id: "key", policy: Self.readingFirst, cacher: cacher) {
          try await origin.fetch()
        }
        cache.store(0)
        let flushing = Task { try await cache.flush() }
        let refreshing = Task { try await cache.refresh().request() }
        let clearing = Task {
          try await cache.clear()
          let began = origin.count
          let stored = await cacher.value("key")
          guard stored != 0 else { throw Wrong(what: "the copy is still there") }
          let value = try await cache.request()
          guard value > 0 else { throw Wrong(what: "\(value) of \(began) is from before") }
        }
        try await flushing.value
        _ = try await refreshing.value
        try await clearing.value
        try await cache.flush()
        let stored = await cacher.value("key")
        guard let value = cache.cachedValue, value > 0, stored == value else {
          throw Wrong(what: "\(cache.cachedValue ?? -1) in memory, \(stored ?? -1) stored")
        }
      }
    }

    @Test func `what is stored after clearing is stored after the next flush`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let cacher = SlowCacher()
        let map = MultiplexerMap<Int, Int>(capacity: .count(9), cacher: cacher) { $0 }
        map.store(0, for: 1)
        map.store(0, for: 2)
        let flushing = Task { try await map.flush() }
        let clearing = Task {
          await hop()
          try await map.clear(2)
        }
        let storing = Task {
          try await map.clear(1)
          map.store(8, for: 1)
          try await map.flush()
          guard await cacher.value("1") == 8 else { throw Wrong(what: "it is not there") }
        }
        try await flushing.value
        try await clearing.value
        try await storing.value
        guard await cacher.value("1") == 8, await cacher.value("2") == nil else {
          throw Wrong(what: "\(await cacher.entries)")
        }
      }
    }

    @Test func `an evicted value that is cleared does not come back`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let origin = Origin()
        let cacher = SlowCacher()
        let map = MultiplexerMap<Int, Int>(
          policy: Self.readingFirst,
          capacity: .count(1),
          cacher: cacher
        ) { _ in try await origin.fetch() }
        map.store(0, for: 1)
        let evicting = Task { map.store(100, for: 2) }
        let requesting = Task { _ = try await map.request(1) }
        let clearing = Task {
          try await map.clear(1)
          guard await cacher.value("1") != 0 else { throw Wrong(what: "the copy is still there") }
          guard try await map.request(1) != 0 else { throw Wrong(what: "it came back") }
        }
        await evicting.value
        try await requesting.value
        try await clearing.value
        try await map.flush()
        guard await cacher.value("1") != 0, await cacher.value("2") == 100 else {
          throw Wrong(what: "\(await cacher.entries)")
        }
      }
    }

    @Test(.guarantee(.repositoryClearCoversReleasedMembers))
    func `clearing a repository keeps what was stored before from being read again`()
      throws
    {
      try forEveryInterleaving(deviations: 2) {
        let origin = Origin()
        let cacher = SlowCacher()
        let now = Duration.seconds(Date().timeIntervalSince1970 - 1)
        await cacher.store(["key": CacheEntry(value: 0, storedAt: now)])
        let repository = MuxRepository()
        // A single member: the order of several would differ between runs.
        let cache = Multiplexer(id: "key", policy: Self.readingFirst, cacher: cacher) {
          try await origin.fetch()
        }
        .register(in: repository)
        let requesting = Task { _ = try await cache.request() }
        let clearing = Task {
          try await repository.clearAll()
          guard try await cache.request() > 0 else { throw Wrong(what: "it came back") }
        }
        let flushing = Task { try await repository.flushAll() }
        try await requesting.value
        try await clearing.value
        try await flushing.value
        guard let value = cache.cachedValue, value > 0, await cacher.value("key") != 0 else {
          throw Wrong(what: "\(cache.cachedValue ?? -1) in memory")
        }
      }
    }
  }
}
