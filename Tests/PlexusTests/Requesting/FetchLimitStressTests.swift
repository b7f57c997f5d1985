import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Requests inside limited fetches, on many threads, some of which are cancelled.
@Suite(.fewAtOnce) struct `Limited fetches among threads` {
  @Test(arguments: [CachePolicy.UnobservedFetch.cancel, .finishAndStore])
  func `no place is lost among random nested requests`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    for seed in 0..<UInt64(Effort.count(60)) {
      let own = OwnCache<MultiplexerMap<Int, Int>>()
      var policy = LimitedOrigin.policy(2)
      policy.timeToLive = .zero
      policy.whenUnobserved = whenUnobserved
      let map = MultiplexerMap<Int, Int>(policy: policy) { key in
        guard key >= 100 else { return key }
        var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(key))
        let leaves = (0..<3).map { _ in Int.random(in: 0..<6, using: &random) }
        await withTaskGroup(of: Void.self) { group in
          for leaf in leaves {
            group.addTask { _ = try? await own.elements.first?.request(leaf) }
          }
        }
        return key
      }
      own.send(map)
      _ = await own.first()
      var random = SeededRandom(seed: seed)
      let tasks = (0..<24).map { number in
        Task.detached { _ = try? await map.request(100 + number / 2) }
      }
      for task in tasks where Int.random(in: 0..<4, using: &random) == 0 { task.cancel() }
      for task in tasks { await task.value }
      while map.statistics.running > 0 { await Task.detached {}.value }
      #expect(map.statistics.waiting == 0)
    }
  }

  @Test func `random requests through three limited caches end`() async throws {
    for seed in 0..<UInt64(Effort.count(40)) {
      let own = OwnCache<MultiplexerMap<Int, Int>>()
      @Sendable func nested(_ key: Int, _ spread: Int) async throws -> Int {
        let maps = own.elements
        guard key > 0, maps.count == 3 else { return key }
        var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(key * 3 + spread))
        if Bool.random(using: &random) {
          let below = (0..<3).map { _ in Int.random(in: 0..<key, using: &random) }
          _ = await maps[(key + spread) % 3].request(below)
        } else {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for map in maps {
              let below = Int.random(in: 0..<key, using: &random)
              group.addTask { _ = try await map.request(below) }
            }
            try await group.waitForAll()
          }
        }
        return key
      }
      var random = SeededRandom(seed: seed)
      let limits = (0..<3).map { _ in Int.random(in: 1...2, using: &random) }
      let first = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(limits[0])) {
        try await nested($0, 1)
      }
      let second = MultiplexerMap<Int, Int>.bulk(policy: LimitedOrigin.policy(limits[1])) { keys in
        var values: [Int: Int] = [:]
        for key in keys { values[key] = try await nested(key, 2) }
        return values
      }
      let third = MultiplexerMap<Int, Int>(
        policy: LimitedOrigin.policy(limits[2]) { $0.cacherRead = .beforeFetch },
        cacher: ControlledCacher<Int>()
      ) {
        try await nested($0, 0)
      }
      let maps = [first, second, third]
      for map in maps { own.send(map) }
      while own.elements.count < 3 { await Task.detached {}.value }
      let tasks = (0..<18).map { number in
        Task.detached { _ = try? await maps[number % 3].request(12 - number / 3) }
      }
      if seed.isMultiple(of: 2) {
        for task in tasks where Int.random(in: 0..<5, using: &random) == 0 { task.cancel() }
      }
      for task in tasks { await task.value }
      for map in maps {
        while map.statistics.running > 0 { await Task.detached {}.value }
        #expect(map.statistics.waiting == 0)
      }
    }
  }
}
