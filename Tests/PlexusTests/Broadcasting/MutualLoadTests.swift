import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Loads that would wait for themselves through others, whichever call started those.
@Suite(.fewAtOnce) struct `Loads that wait for each other` {
  @Test
  func `loads that wait for each other are found out though different callers have begun them`()
    async throws
  {
    let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
    let both = Gate()
    func load(_ publisher: DataPublisher<Int>, by way: DataPublisher<Int>) -> Task<Int, any Error> {
      Task {
        try await publisher.load {
          try await both.wait()
          do {
            return try await way.load { 0 }
          } catch LoadError.recursiveLoad {
            return 42
          }
        }
      }
    }
    let tasks = [load(first, by: second), load(second, by: first)]
    await both.arrivals(2)
    both.open()
    // One of them fails, and the other one gets its value.
    for task in tasks { #expect(try await task.value == 42) }
    #expect(words(first.state) == "loaded(42)")
    #expect(words(second.state) == "loaded(42)")
  }

  @Test func `loads that wait for each other are found out where pages are loaded, too`()
    async throws
  {
    let profile = DataPublisher<Int>()
    let both = Gate()
    let list = PagedPublisher<Int, Int> { _ in
      try await both.wait()
      return Page(items: [try await profile.load { 1 }], next: nil)
    }
    let loading = Task {
      try await profile.load {
        try await both.wait()
        try await list.loadFirstPage()
        return 2
      }
    }
    let paging = Task { try await list.loadFirstPage() }
    await both.arrivals(2)
    both.open()
    await #expect(throws: LoadError.recursiveLoad) { try await loading.value }
    await #expect(throws: LoadError.recursiveLoad) { try await paging.value }
    #expect(!profile.state.isLoading)
    #expect(!list.state.isLoading)
  }

  @Test
  func `loads that wait for each other through a request fail, however the fetch was started`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let cache = Multiplexer<Int>(id: "own") { try await publisher.load { 1 } }
    await #expect(throws: LoadError.recursiveLoad) {
      try await publisher.load { try await cache.request() }
    }
    #expect(try await cache.request() == 1)
  }

  @Test func `a request that closes a circle of loads fails with an error that names the fetches`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let both = Gate()
    let cache = Multiplexer<Int>(id: "own") {
      try await both.wait()
      return try await publisher.load { 1 }
    }
    let chains = Log<[String]>()
    let loading = Task {
      try await publisher.load {
        try await both.wait()
        // The fetch waits for this load by now, or joins it later and fails itself.
        do {
          return try await cache.request()
        } catch MultiplexerError.recursiveRequest(let chain) {
          chains.append(chain)
          return 42
        } catch LoadError.recursiveLoad {
          return 43
        }
      }
    }
    let request = Task { try await cache.request() }
    await both.arrivals(2)
    both.admit(1)
    both.admit(1)
    let value = try await loading.value
    switch await request.result {
    case .success(let result):
      #expect(result == 42)
      #expect(value == 42)
      #expect(chains.entries == [["own", "own"]])
    case .failure(let error):
      #expect(error as? LoadError == .recursiveLoad)
      #expect(value == 43)
    }
  }

  @Test func `loads no longer wait for each other once one of them has been left`() async throws {
    let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
    let isLeft = Gate()
    let other = Task {
      try await second.load {
        try await isLeft.wait()
        return try await first.load { 2 }
      }
    }
    await isLeft.arrivals(1)
    let outer = Task {
      try await first.load {
        let inner = Task { @MainActor in try await second.load { 0 } }
        await everybodyHasBegun()
        inner.cancel()
        await #expect(throws: CancellationError.self) { try await inner.value }
        isLeft.admit(1)
        // The other one joins this load, which no longer waits for it.
        try await isLeft.wait()
        return 1
      }
    }
    await isLeft.arrivals(2)
    await everybodyHasBegun()
    isLeft.open()
    #expect(try await outer.value == 1)
    let value = try await other.value
    // Unless it was too late to join.
    #expect(value == 1 || value == 2)
  }

  @Test func `a caller that has received the error of a circular load is not counted by the load`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let gate = Gate()
    let cancelled = Log<Bool>()
    let loading = Task {
      try await publisher.load {
        await #expect(throws: LoadError.recursiveLoad) { try await publisher.load { 1 } }
        try? await gate.wait()
        cancelled.append(Task.isCancelled)
        return 2
      }
    }
    await gate.arrivals(1)
    loading.cancel()
    await #expect(throws: CancellationError.self) { try await loading.value }
    #expect(await cancelled.first(1) == [true])
    #expect(words(publisher.state) == "unknown")
  }

  @Test func `loads that wait for each other in a line get their values`() async throws {
    let publishers = (0..<20).map { _ in DataPublisher<Int>() }
    let tasks = (0..<20).map { last in
      Task {
        @Sendable func load(_ index: Int) async throws -> Int {
          try await publishers[index].load { index == 0 ? 0 : try await load(index - 1) + 1 }
        }
        return try await load(last)
      }
    }
    for (number, task) in tasks.enumerated() { #expect(try await task.value == number) }
  }

  /// A key that records its release.
  private struct Key: Hashable, Sendable {
    let parcel: Parcel

    static func == (left: Key, right: Key) -> Bool { left.parcel === right.parcel }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(parcel)) }
  }

  @Test
  func `loads that wait for each other leave nothing behind when they have ended or were left`()
    async throws
  {
    let census = Census()
    let gate = Gate()
    let publisher = DataPublisher<Int>()
    do {
      let map = MultiplexerMap<Key, Int> { key in
        try await publisher.load {
          try await gate.wait()
          return 1
        }
      }
      let doomed = Task { try await map.request(Key(parcel: census.parcel())) }
      await gate.arrivals(1)
      doomed.cancel()
      await #expect(throws: CancellationError.self) { try await doomed.value }
      gate.open()
      #expect(try await map.request(Key(parcel: census.parcel())) == 1)
    }
    await census.falls(to: 0)
    #expect(census.living == 0)
  }
}
