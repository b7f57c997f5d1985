import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Behavior that users of other libraries rely on, in the terms of this one.
@Suite(.fewAtOnce) struct `Scenarios of other libraries` {
  let clock = ManualClock()

  // MARK: - dataloader

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in dataloader, keys reach the batch in the order of the calls, each once`() async throws
  {
    let calls = Guarded<[[String]]>([])
    let map = MultiplexerMap<String, String>.bulk(
      clock: clock,
      window: .milliseconds(1)
    ) { keys in
      calls.withLock { $0.append(keys) }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0.uppercased()) })
    }
    let callers = ["b", "a", "b", "c"].map { key in begin { try await map.request(key) } }
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(1))
    var values: [String] = []
    for caller in callers { values.append(try await caller.value) }
    #expect(values == ["B", "A", "B", "C"])
    #expect(calls.withLock { $0 } == [["b", "a", "c"]])
  }

  @Test func `as in dataloader, a primed key is not loaded, and a cleared one is loaded again`()
    async throws
  {
    let origin = BulkOrigin(isOpen: true)
    let map = origin.makeMap(clock: clock)
    map.store(1, for: 1)
    #expect(try await map.request(1) == 1)
    try await map.clear(1)
    #expect(try await map.request(1) == 101)
  }

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in dataloader, an error of one key leaves the others their values`() async {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) {
      keys -> [Int: Result<FetchResult<Int>, any Error>] in
      Dictionary(
        uniqueKeysWithValues: keys.map { key in
          (key, key % 2 == 0 ? .success(.value(key)) : .failure(Broken()))
        }
      )
    }
    #expect(
      outcomes(await map.request([1, 2, 3, 4])) == [1: "Broken", 2: "2", 3: "Broken", 4: "4"]
    )
  }

  // MARK: - TanStack Query

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in TanStack Query, a mutation is shown, rolled back, and the query is invalidated`()
    async throws
  {
    let server = Guarded(["milk"])
    let todos = Multiplexer(clock: clock) { server.withLock { $0 } }
    #expect(try await todos.request() == ["milk"])
    let gate = Gate()
    let mutation = begin {
      try await todos.update(optimistically: { $0.append("bread") }) {
        try await gate.wait()
        throw Offline()
      }
    }
    #expect(todos.cachedValue == ["milk", "bread"])
    gate.open()
    await #expect(throws: Offline.self) { try await mutation.value }
    #expect(todos.cachedValue == ["milk"])
    server.withLock { $0 = ["milk", "eggs"] }
    #expect(try await todos.refresh().request() == ["milk", "eggs"])
  }

  @Test func `as in TanStack Query, queries are invalidated by what their keys have in common`()
    async throws
  {
    let calls = Tally()
    let map = MultiplexerMap<String, Int>(clock: clock) { _ in calls.increment() }
    map.store(["todos/1": -1, "todos/2": -2, "users/1": -3])
    map.refresh(where: { $0.hasPrefix("todos/") })
    #expect(try await map.request("users/1") == -3)
    #expect(try await map.request("todos/1") == 1)
  }

  // MARK: - Caffeine

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in Caffeine, values expire after access and after write, whichever comes first`()
    async throws
  {
    let calls = Tally()
    let policy = CachePolicy(timeToLive: .seconds(100), timeToIdle: .seconds(30))
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { _ in calls.increment() }
    for _ in 0..<4 {
      #expect(try await map.request(1) == 1)
      clock.advance(by: .seconds(25))
    }
    #expect(try await map.request(1) == 2)
    clock.advance(by: .seconds(30))
    #expect(try await map.request(1) == 3)
  }

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in Caffeine, a refresh after write returns the old value until the new one is there`()
    async throws
  {
    let gate = Gate()
    let calls = Tally()
    let policy = CachePolicy(timeToLive: .seconds(300), refreshAhead: .seconds(240))
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { _ in
      let number = calls.increment()
      if number > 1 { try await gate.wait() }
      return number
    }
    let states = Recorder(map.subscribe(to: 1, bufferingPolicy: .unbounded))
    #expect(try await map.request(1) == 1)
    clock.advance(by: .seconds(60))
    #expect(try await map.request(1) == 1)
    #expect(try await map.request(1) == 1)
    gate.open()
    _ = await states.first(5)
    #expect(try await map.request(1) == 2)
  }

  // MARK: - FusionCache

  @Test(.guarantee(.scenariosOfOtherCachesHold))
  func `as in FusionCache, there are fail-safe, a soft timeout, and a hard timeout`()
    async throws
  {
    let gate = Gate()
    let calls = Tally()
    let policy = CachePolicy(
      timeToLive: .seconds(60),
      usesCachedValue: { _ in true },
      fetchTimeout: .seconds(2),
      softTimeout: .milliseconds(100)
    )
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      if key == 1, calls.increment() == 1 { return 1 }
      try await gate.wait()
      return 2
    }
    #expect(try await map.request(1) == 1)
    clock.advance(by: .seconds(60))
    let soft = begin { try await map.response(1) }
    await clock.sleepers(2)
    clock.advance(by: .milliseconds(100))
    #expect(try await soft.value.value == 1)
    let hard = begin { try await map.request(2) }
    // The time limits of the fetch of the first key, and of both fetches for the second one.
    await clock.sleepers(3)
    clock.advance(by: .seconds(2))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(2))) {
      try await hard.value
    }
    #expect(map.cachedValue(1) == 1)
  }
}
