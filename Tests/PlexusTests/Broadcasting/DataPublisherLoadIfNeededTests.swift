import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Loading a data publisher if needed` {
  @Test(.guarantee(.loadIfNeededLoadsOnlyIfNeeded))
  func `loadIfNeeded loads what is unknown, has failed or is stale, and nothing else`() async throws
  {
    let clock = ManualClock()
    let publisher = DataPublisher<Int>(staleAfter: .seconds(10), clock: clock)
    let fetcher = ScriptedFetcher<Int>([
      .success(1), .failure(LoadingFailure.first), .success(2), .success(3), .success(4),
    ])
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 1)
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 1)
    clock.advance(by: .seconds(9))
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 1)
    #expect(fetcher.count == 1)
    clock.advance(by: .seconds(1))
    await #expect(throws: LoadingFailure.first) {
      try await publisher.loadIfNeeded { try await fetcher.fetch() }
    }
    #expect(words(publisher.state) == "failed(first, 1)")
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 2)
    publisher.reset()
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 3)
    #expect(fetcher.count == 4)
    // A value that was loaded later is fresh again.
    clock.advance(by: .seconds(9))
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 3)
    publisher.update(7)
    clock.advance(by: .seconds(9))
    #expect(try await publisher.loadIfNeeded { try await fetcher.fetch() } == 7)
    #expect(fetcher.count == 4)
  }

  @Test(.guarantee(.loadIfNeededLoadsOnlyIfNeeded))
  func `loadIfNeeded publishes nothing if there is nothing to load`() async throws {
    let publisher = DataPublisher<Int>()
    publisher.update(1)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    #expect(try await publisher.loadIfNeeded { 2 } == 1)
    publisher.update(3)
    #expect(await states.first(2).map(words) == ["loaded(1)", "loaded(3)"])
  }

  @Test func `loadIfNeeded joins the load in flight`() async throws {
    let publisher = DataPublisher<Int>()
    let gate = Gate()
    let first = Task {
      try await publisher.load {
        try await gate.wait()
        return 1
      }
    }
    await gate.arrivals(1)
    let second = Task { try await publisher.loadIfNeeded { 2 } }
    gate.open()
    #expect(try await first.value == 1)
    #expect(try await second.value == 1)
  }

  @Test func `a data publisher keeps the age of a value whose reload was abandoned`() async throws {
    let clock = ManualClock()
    let publisher = DataPublisher<Int>(staleAfter: .seconds(10), clock: clock)
    let gate = Gate()
    publisher.update(1)
    clock.advance(by: .seconds(6))
    let reload = Task {
      try await publisher.load {
        try await gate.wait()
        return 2
      }
    }
    await gate.arrivals(1)
    clock.advance(by: .seconds(3))
    reload.cancel()
    await #expect(throws: CancellationError.self) { try await reload.value }
    #expect(!publisher.isStale)
    clock.advance(by: .seconds(1))
    #expect(publisher.isStale)
  }

  @Test func `a load fails if its operation loads the value of the same data publisher`() async {
    let publisher = DataPublisher<Int>()
    await #expect(throws: LoadError.recursiveLoad) {
      try await publisher.load { try await publisher.load { 1 } }
    }
    await #expect(throws: LoadError.recursiveLoad) {
      try await publisher.load {
        try await withThrowingTaskGroup(of: Int.self) { group in
          group.addTask { try await publisher.loadIfNeeded { 1 } }
          return try await group.next() ?? 0
        }
      }
    }
    #expect("\(LoadError.recursiveLoad)".contains("load()"))
  }

  @Test func `a load fails with an error that says so if two publishers load each other`() async {
    let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
    await #expect(throws: LoadError.recursiveLoad) {
      try await first.load { try await second.load { try await first.load { 1 } } }
    }
  }

  @Test func `a load may load another publisher in its operation`() async throws {
    let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
    #expect(try await first.load { try await second.load { 1 } + 1 } == 2)
    #expect(words(second.state) == "loaded(1)")
  }

  @Test func `a load in a task that an ended load has left behind is not recursive`() async throws {
    let publisher = DataPublisher<Int>()
    for _ in 0..<50 {
      let release = Gate()
      let hold = Gate()
      let leftBehind = Guarded<Task<Int, any Error>?>(nil)
      try await publisher.load {
        let task = Task {
          try await release.wait()
          return try await publisher.load { 3 }
        }
        leftBehind.withLock { $0 = task }
        return 1
      }
      let next = Task {
        try await publisher.load {
          try await hold.wait()
          return 2
        }
      }
      await hold.arrivals(1)
      release.open()
      let task = leftBehind.withLock { $0 }
      // It gets a value whether it joins the second load or starts the third.
      Task {
        await release.arrivals(1)
        hold.open()
      }
      #expect(try await next.value == 2)
      let value = try await task?.value
      #expect(value == 2 || value == 3)
    }
  }

  @Test func `a load releases the operation, the outcome and the publisher afterwards`()
    async throws
  {
    let census = Census()
    weak var weakPublisher: DataPublisher<Parcel>?
    do {
      let publisher = DataPublisher<Parcel>()
      weakPublisher = publisher
      try await publisher.load(operation(holding: census.parcel(), returning: census.parcel()))
      await census.falls(to: 1)
      publisher.reset()
    }
    await census.falls(to: 0)
    #expect(weakPublisher == nil)
  }

  private func operation(
    holding captured: Parcel,
    returning value: Parcel
  ) -> @concurrent @Sendable () async throws -> Parcel {
    { withExtendedLifetime(captured) { Parcel(value.number) { withExtendedLifetime(value) {} } } }
  }
}
