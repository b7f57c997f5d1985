import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A request inside a fetch` {
  @Test(.guarantee(.cyclesFailInsteadOfDeadlocking), arguments: CacheKind.allCases)
  func `a request of the same key inside a fetch is an error, whatever the fetch does first`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let cache = kind.make(id: "own") {
      guard let cache = await own.first() else { return 0 }
      return try await cache.request()
    }
    own.send(cache)
    let name = kind == .map ? "own[key]" : "own"
    await #expect(throws: MultiplexerError.recursiveRequest(chain: [name, name])) {
      try await cache.request()
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a request of the same key is found in child tasks and tasks that inherit, too`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let cache = kind.make(id: "own") {
      guard let cache = await own.first() else { return 0 }
      async let child = cache.request()
      let inherited = Task { try await cache.request() }
      do { _ = try await child } catch MultiplexerError.recursiveRequest {
        do { _ = try await inherited.value } catch MultiplexerError.recursiveRequest { return 1 }
      }
      return 2
    }
    own.send(cache)
    #expect(try await cache.request() == 1)
  }

  @Test
  func `a request of the same key inside a fetch is an error also through a publisher's load`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let own = OwnCache<Multiplexer<Int>>()
    let cache = Multiplexer<Int>(id: "own") {
      guard let cache = await own.first() else { return 0 }
      return try await publisher.load { try await cache.request() }
    }
    own.send(cache)
    await #expect(throws: MultiplexerError.recursiveRequest(chain: ["own", "own"])) {
      try await cache.request()
    }
  }

  @Test(.guarantee(.cyclesAreFoundThroughOtherTypes))
  func `a request of the same key inside a fetch is an error also through a zipper`() async throws {
    let own = OwnCache<Multiplexer<Int>>()
    let other = Multiplexer<Int> { 2 }
    let cache = Multiplexer<Int>(id: "own") {
      guard let cache = await own.first() else { return 0 }
      let (first, second) = try await Zipper(other, cache).values()
      return first + second
    }
    own.send(cache)
    await #expect(throws: MultiplexerError.recursiveRequest(chain: ["own", "own"])) {
      try await cache.request()
    }
  }

  @Test(.guarantee(.cyclesAreFoundThroughOtherTypes))
  func `a request of the same key is an error also in a debounced action that the fetch flushes`()
    async throws
  {
    let own = OwnCache<Multiplexer<Int>>()
    let failures = RecordedChannel<MultiplexerError>()
    let debouncer = Debouncer(delay: .seconds(1), clock: ManualClock()) {
      do {
        _ = try await own.first()?.request()
      } catch {
        if let error = error as? MultiplexerError { failures.send(error) }
      }
    }
    let cache = Multiplexer<Int>(id: "own") {
      debouncer.touch()
      await debouncer.flush()
      return 1
    }
    own.send(cache)
    #expect(try await cache.request() == 1)
    #expect(await failures.recorder.first(1) == [.recursiveRequest(chain: ["own", "own"])])
  }

  @Test(.guarantee(.cyclesAreFoundThroughOtherTypes))
  func `a fetch that flushes the debouncer whose action requests it does not wait for itself`()
    async throws
  {
    let own = OwnCache<Multiplexer<Int>>()
    let values = RecordedChannel<Int>()
    let debouncer = Debouncer(delay: .seconds(1), clock: ManualClock()) {
      values.send((try? await own.first()?.request()) ?? 0)
    }
    let gate = Gate()
    let cache = Multiplexer<Int>(id: "own") {
      try await gate.wait()
      debouncer.touch()
      await debouncer.flush()
      return 1
    }
    own.send(cache)
    debouncer.touch()
    let flushing = begin { await debouncer.flush() }
    await gate.arrivals(1)
    gate.open()
    #expect(await values.recorder.first(1) == [1])
    #expect(try await cache.request() == 1)
    try await flushing.value
  }

  @Test(.guarantee(.cyclesFailInsteadOfDeadlocking))
  func `a request inside a fetch is an error also around a circle, which the error names`()
    async throws
  {
    let third = OwnCache<Multiplexer<Int>>()
    let first = Multiplexer<Int>(id: "a") {
      guard let cache = await third.first() else { return 0 }
      return try await cache.request()
    }
    let map = MultiplexerMap<Int, Int>(id: "b") { _ in try await first.request() }
    let last = Multiplexer<Int>(id: "c") { try await map.request(7) }
    third.send(last)
    await #expect(throws: MultiplexerError.recursiveRequest(chain: ["b[7]", "a", "c", "b[7]"])) {
      try await first.request()
    }
  }

  @Test func `a request of another key inside a fetch is no error`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int> { number in
      guard number > 1, let map = await own.first() else { return number }
      return try await map.request(number - 1) + map.request(number - 2)
    }
    own.send(map)
    #expect(try await map.request(30) == 832_040)
    #expect(map.statistics.fetches == 31)
  }

  @Test func `a request of several keys inside a fetch finds each circle`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int>(id: "m") { number in
      guard number < 3, let map = await own.first() else { return number }
      let results = await Zipper(map[3], map[4], map[number == 0 ? 1 : 0]).results()
      _ = try results.0.get()
      _ = try results.1.get()
      return try results.2.get()
    }
    own.send(map)
    let error = await #expect(throws: MultiplexerError.self) { try await map.request(0) }
    // Either of the two can be the last to wait.
    let chains = [["m[1]", "m[0]", "m[1]"], ["m[0]", "m[1]", "m[0]"]]
    #expect(chains.contains { error == .recursiveRequest(chain: $0) })
    #expect(try await map.request(3) == 3)
  }

  @Test(.guarantee(.cyclesFailInsteadOfDeadlocking))
  func `one of two fetches that would wait for each other fails`()
    async throws
  {
    let both = Gate()
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int>(id: "m") { number in
      guard let map = await own.first() else { return 0 }
      try await both.wait()
      do {
        return try await map.request(1 - number)
      } catch MultiplexerError.recursiveRequest(let chain) {
        #expect(chain == ["m[\(number)]", "m[\(1 - number)]", "m[\(number)]"])
        return 42
      }
    }
    own.send(map)
    let first = begin { try await map.request(0) }
    let second = begin { try await map.request(1) }
    await both.arrivals(2)
    both.open()
    #expect(try await first.value == 42)
    #expect(try await second.value == 42)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch may request a fresh value of its own key while it is refreshed`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      guard number > 1, let cache = await own.first() else { return number }
      return try await cache.request() * 10
    }
    own.send(cache)
    _ = try await cache.request()
    #expect(try await cache.refresh().request() == 10)
  }

  @Test(arguments: CacheKind.allCases)
  func `a request inside a fetch that insists on a later refresh is an error`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let tally = Tally()
    let cache = kind.make(id: "own") {
      // Only once: the refresh makes it start again.
      guard tally.increment() == 1, let cache = await own.first() else { return 0 }
      return try await cache.refresh().request()
    }
    own.send(cache)
    let name = kind == .map ? "own[key]" : "own"
    await #expect(throws: MultiplexerError.recursiveRequest(chain: [name, name])) {
      try await cache.request()
    }
  }

  @Test func `a request inside a fetch that waits for one queued behind its own is an error`()
    async throws
  {
    let outer = OwnCache<Multiplexer<Int>>()
    let tally = Tally()
    let helper = MultiplexerMap<Int, Int>(id: "helper") { _ in
      // Only once: the refresh makes the other fetch start again, and request again.
      let isFirst = tally.increment() == 1
      guard isFirst, let cache = await outer.first() else { return 0 }
      return try await cache.refresh().request()
    }
    let cache = Multiplexer<Int>(id: "outer") { try await helper.request(1) }
    outer.send(cache)
    await #expect(
      throws: MultiplexerError.recursiveRequest(chain: ["helper[1]", "outer", "helper[1]"])
    ) {
      try await cache.request()
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a request of the same key after its fetch was detached is an error as before`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      guard number == 1, let cache = await own.first() else { return number }
      try await cache.clear()
      return try await cache.request()
    }
    own.send(cache)
    await #expect(throws: MultiplexerError.self) { try await cache.request() }
    #expect(tally.value == 1)
  }

  @Test(.guarantee(.ownKeyRequestsThrow), arguments: CacheKind.allCases)
  func `a request by a task that outlives its fetch is like any other`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let ended = Gate()
    let late = RecordedChannel<Task<Int, any Error>>()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      guard number == 1, let cache = await own.first() else { return number }
      late.send(
        Task {
          try await ended.wait()
          return try await cache.refresh().request()
        }
      )
      return number
    }
    own.send(cache)
    #expect(try await cache.request() == 1)
    ended.open()
    #expect(try await late.recorder.first(1).first?.value == 2)
  }

  @Test(.guarantee(.ownKeyRequestsThrow), arguments: CacheKind.allCases)
  func `a request by a task that the fetch does not wait for leaves the fetch its result`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let requested = Gate()
    let errors = RecordedChannel<MultiplexerError?>()
    let cache = kind.make(id: "own") {
      guard let cache = await own.first() else { return 0 }
      Task {
        do { _ = try await cache.request() } catch { errors.send(error as? MultiplexerError) }
        requested.open()
      }
      // The fetch could as well wait for the task itself, which nothing shows.
      try await requested.wait()
      return 7
    }
    own.send(cache)
    #expect(try await cache.request() == 7)
    let name = kind == .map ? "own[key]" : "own"
    #expect(await errors.recorder.first(1) == [.recursiveRequest(chain: [name, name])])
    #expect(cache.statistics.failures == 0)
  }

  @Test(.guarantee(.ownKeyRequestsThrow), arguments: CacheKind.allCases)
  func `a request by a detached task that is not waited for gets the result of the fetch`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let results = RecordedChannel<Int>()
    let cache = kind.make {
      guard let cache = await own.first() else { return 0 }
      Task.detached { results.send(try await cache.request()) }
      return 7
    }
    own.send(cache)
    #expect(try await cache.request() == 7)
    #expect(await results.recorder.first(1) == [7])
  }

  @Test(.guarantee(.ownKeyRequestsThrow), arguments: CacheKind.allCases)
  func `a request by a detached task that the fetch waits for is ended by the fetch timeout`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let clock = ManualClock()
    let cache = kind.make(policy: CachePolicy(fetchTimeout: .seconds(5)), clock: clock) {
      guard let cache = await own.first() else { return 0 }
      return try await Task.detached { try await cache.request() }.value
    }
    own.send(cache)
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(5))) {
      try await caller.value
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch may store, refresh and clear its own key`(kind: CacheKind) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      guard let cache = await own.first() else { return number }
      switch number {
      case 1: cache.store(100)
      case 2: cache.refresh()
      case 4: try await cache.clear()
      default: break
      }
      return number
    }
    own.send(cache)
    #expect(try await cache.request() == 100)
    #expect(cache.cachedValue == 100)

    let states = Recorder(cache.subscribe())
    #expect(try await cache.refresh().request() == 2)
    #expect(await states.first(5).last?.name == "loaded 3")
    #expect(try await cache.refresh().request() == 4)
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == 5)
  }
}
