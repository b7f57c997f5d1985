import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Updates and tags, in every order` {
    @Test(.guarantee(.optimisticUpdatesRollBack))
    func `an update, a fetch and a clear leave the update or nothing of it`() throws {
      try forEveryInterleaving {
        let map = MultiplexerMap<Int, Int>(policy: CachePolicy(timeToLive: .zero)) { _ in
          await hop()
          return 1
        }
        map.store(10, for: 1)
        let fetching = Task { try await map.request(1) }
        let updating = Task { map.update(1) { $0 += 100 } }
        let clearing = Task { try await map.clear(1) }
        let fetched = try await fetching.value
        let updated = await updating.value
        try await clearing.value
        guard [1, 101, 110].contains(fetched) else { throw Wrong(what: "\(fetched) was fetched") }
        guard [nil, 101, 110].contains(updated) else {
          throw Wrong(what: "updated to \(updated ?? 0)")
        }
        // The remaining value was fetched after the clear, or derived from that.
        guard [nil, 1, 101].contains(map.cachedValue(1)) else {
          throw Wrong(what: "\(map.cachedValue(1) ?? 0) is left")
        }
      }
    }

    @Test(.guarantee(.optimisticUpdatesRollBack))
    func `an optimistic update that fails leaves no trace, whatever is fetched meanwhile`()
      throws
    {
      try forEveryInterleaving(deviations: 5) {
        let map = MultiplexerMap<Int, Int> { _ in
          await hop()
          return 1
        }
        map.store(10, for: 1)
        let updating = Task {
          try await map.update(1, optimistically: { $0 += 100 }) {
            await hop()
            throw Broken()
          }
        }
        let refreshing = Task { try await map.refresh(1).request(1) }
        let result = await updating.result
        guard case .failure(let error) = result, error is Broken else {
          throw Wrong(what: "the update did not fail")
        }
        _ = try await refreshing.value
        guard let left = map.cachedValue(1), [1, 10].contains(left) else {
          throw Wrong(what: "\(map.cachedValue(1) ?? 0) is left")
        }
      }
    }

    @Test(.guarantee(.optimisticUpdatesRollBack))
    func `an optimistic update that fails is taken back though a refresh fails, too`() throws {
      try forEveryInterleaving(deviations: 5) {
        let map = MultiplexerMap<Int, Int> { _ in
          await hop()
          throw Broken()
        }
        map.store(10, for: 1)
        let updating = Task {
          try await map.update(1, optimistically: { $0 += 100 }) {
            await hop()
            throw Broken()
          }
        }
        let refreshing = Task { try await map.refresh(1).request(1) }
        _ = await updating.result
        _ = await refreshing.result
        guard map.cachedValue(1) == 10 else {
          throw Wrong(what: "\(map.cachedValue(1) ?? 0) is left")
        }
      }
    }

    @Test(.guarantee(.optimisticUpdatesRollBack))
    func `of two optimistic updates the one that is committed stays`() throws {
      try forEveryInterleaving {
        let map = MultiplexerMap<Int, [Int]> { _ in [] }
        map.store([], for: 1)
        let failing = Task {
          try await map.update(1, optimistically: { $0.append(1) }) {
            await hop()
            throw Broken()
          }
        }
        let succeeding = Task {
          try await map.update(1, optimistically: { $0.append(2) }) { await hop() }
        }
        _ = await failing.result
        try await succeeding.value
        guard map.cachedValue(1) == [2] else { throw Wrong(what: "\(map.cachedValue(1) ?? [])") }
      }
    }

    @Test(.guarantee(.cacheEventsNameOutcomes))
    func `clearing tags keeps nothing of a fetch that began before`() throws {
      try forEveryInterleaving {
        let calls = Journal()
        let map = MultiplexerMap<Int, Int>(tagging: { _ in ["all"] }) { _ in
          let number = calls.append("fetch")
          await hop()
          return number
        }
        let early = Task { try await map.request(1) }
        let clearing = Task {
          try await map.clear(tags: ["all"])
          let began = calls.entries.count
          let value = try await map.request(1)
          guard value > began else { throw Wrong(what: "\(value) is from before") }
          return value
        }
        _ = try await early.value
        let late = try await clearing.value
        guard map.cachedValue(1) == late else { throw Wrong(what: "another value is kept") }
      }
    }
  }
}
