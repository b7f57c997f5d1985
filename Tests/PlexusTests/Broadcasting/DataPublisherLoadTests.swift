import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The guarantees for callers of `load`.
@Suite(.fewAtOnce) struct `Loading a data publisher` {
  let gate = Gate()

  /// Starts a load that waits for the gate.
  func load(_ publisher: DataPublisher<Int>, _ value: Int) -> Task<Int, any Error> {
    Task { [gate] in
      try await publisher.load {
        try await gate.wait()
        return value
      }
    }
  }

  /// Waits until a number of loads have joined or started.
  func began(_ states: Subscription<LoadState<Int>>) async {
    for await state in states where state.isLoading { break }
  }

  @Test(.guarantee(.loadPublishesBeforeItReturns))
  func `loading a data publisher publishes loading, then loaded`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    #expect(try await publisher.load { 1 } == 1)
    #expect(try await publisher.load { 2 } == 2)
    let expected = ["unknown", "loading(-)", "loaded(1)", "loading(1)", "loaded(2)"]
    #expect(await states.first(5).map(words) == expected)
  }

  @Test(.guarantee(.loadPublishesBeforeItReturns))
  func `loading a data publisher publishes loading, then failed, and throws the error`() async {
    let publisher = DataPublisher<Int>()
    publisher.update(1)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    await #expect(throws: LoadingFailure.first) {
      try await publisher.load { throw LoadingFailure.first }
    }
    let expected = ["loaded(1)", "loading(1)", "failed(first, 1)"]
    #expect(await states.first(3).map(words) == expected)
  }

  @Test(.guarantee(.loadPublishesBeforeItReturns))
  func `loading a data publisher has published the outcome when it returns`() async throws {
    let publisher = DataPublisher<Int>()
    for value in 0..<100 {
      try await publisher.load { value }
      #expect(words(publisher.state) == "loaded(\(value))")
    }
  }

  @Test(.guarantee(.secondLoadJoins)) func `loading a data publisher joins the load in flight`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let runs = Log<Void>()
    let begun = Log<Void>()
    let first = Task { [gate] in
      try await publisher.load {
        runs.append(())
        try await gate.wait()
        return 1
      }
    }
    await gate.arrivals(1)
    let others = (0..<50).map { _ in
      Task {
        begun.append(())
        return try await publisher.load {
          runs.append(())
          return 2
        }
      }
    }
    await begun.first(50)
    gate.open()
    #expect(try await first.value == 1)
    var values: Set<Int> = []
    for other in others { values.insert(try await other.value) }
    // Callers that start after the end of the first load share a new one.
    #expect(values.isSubset(of: [1, 2]))
    #expect(await states.first(3).map(words) == ["unknown", "loading(-)", "loaded(1)"])
  }

  @Test(.guarantee(.operationsRunOffTheActor))
  func `a load runs its operation off the caller's actor and apart from the caller's task`()
    async throws
  {
    enum Local {
      @TaskLocal static var value = 0
    }
    let publisher = DataPublisher<Int>()
    let value = try await Local.$value.withValue(7) {
      try await MainActor.run { Task { try await publisher.load { Local.value } } }.value
    }
    #expect(value == 0)
  }

  @Test(.guarantee(.lateLoadsAreReturnedOnly))
  func `a load that ends after a reset is not published, though its callers get it`() async throws {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let late = load(publisher, 1)
    await gate.arrivals(1)
    #expect(await states.first(2).map(words) == ["unknown", "loading(-)"])
    publisher.reset()
    gate.open()
    #expect(try await late.value == 1)
    #expect(words(publisher.state) == "unknown")
    publisher.update(9)
    #expect(await states.first(2).map(words) == ["unknown", "loaded(9)"])
  }

  @Test(.guarantee(.lateLoadsAreReturnedOnly))
  func `a load that ends after a newer update or failure is not published`() async throws {
    let publisher = DataPublisher<Int>()
    let afterUpdate = load(publisher, 1)
    await gate.arrivals(1)
    publisher.update(2)
    let afterFailure = load(publisher, 3)
    await gate.arrivals(2)
    publisher.fail(LoadingFailure.first)
    gate.open()
    #expect(try await afterUpdate.value == 1)
    #expect(try await afterFailure.value == 3)
    #expect(words(publisher.state) == "failed(first, 2)")
  }

  @Test(.guarantee(.lateLoadsAreReturnedOnly))
  func `a load that fails after a newer state is not published`()
    async
  {
    let publisher = DataPublisher<Int>()
    let late = Task { [gate] in
      try await publisher.load {
        try await gate.wait()
        throw LoadingFailure.second
      }
    }
    await gate.arrivals(1)
    publisher.update(2)
    gate.open()
    await #expect(throws: LoadingFailure.second) { try await late.value }
    #expect(words(publisher.state) == "loaded(2)")
  }

  @Test(.guarantee(.lateLoadsAreReturnedOnly))
  func `loading a data publisher starts again after a reset`() async throws {
    let publisher = DataPublisher<Int>()
    let old = load(publisher, 1)
    await gate.arrivals(1)
    publisher.reset()
    #expect(try await publisher.load { 2 } == 2)
    #expect(words(publisher.state) == "loaded(2)")
    gate.open()
    #expect(try await old.value == 1)
    #expect(words(publisher.state) == "loaded(2)")
  }

  @Test
  func `loading a data publisher continues while another caller reports that loading has begun`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let loading = load(publisher, 1)
    await gate.arrivals(1)
    publisher.startLoading()
    gate.open()
    #expect(try await loading.value == 1)
    #expect(words(publisher.state) == "loaded(1)")
  }

  @Test(.guarantee(.lastCancelledCallerCancelsTheLoad))
  func `a load is left at once by a caller that is cancelled`() async throws {
    let publisher = DataPublisher<Int>()
    let first = load(publisher, 1)
    await gate.arrivals(1)
    let doomed = (0..<20).map { _ in load(publisher, 2) }
    for task in doomed { task.cancel() }
    for task in doomed { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(words(publisher.state) == "loading(-)")
    gate.open()
    #expect(try await first.value == 1)
    #expect(words(publisher.state) == "loaded(1)")
  }

  @Test(
    .guarantee(.lastCancelledCallerCancelsTheLoad),
    arguments: ["unknown", "loaded(1)", "failed(first, 1)", "loading(1)"]
  )
  func `a load is cancelled with its last caller, and leaves the data publisher as it was`(
    before: String
  ) async {
    let publisher = DataPublisher<Int>()
    if before != "unknown" { publisher.update(1) }
    if before.hasPrefix("failed") { publisher.fail(LoadingFailure.first) }
    if before.hasPrefix("loading") { publisher.startLoading() }
    #expect(words(publisher.state) == before)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let wasCancelled = Log<Bool>()
    let begun = Log<Void>()
    let tasks = (0..<3).map { _ in
      Task { [gate] in
        begun.append(())
        return try await publisher.load {
          do {
            try await gate.wait()
          } catch {
            wasCancelled.append(Task.isCancelled)
          }
          return 2
        }
      }
    }
    await gate.arrivals(1)
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(await wasCancelled.first(1) == [true])
    #expect(words(publisher.state) == before)
    #expect(await states.first(3).map(words).last == before)
  }

  @Test(.guarantee(.cancelledTasksLoadNothing))
  func `loading a data publisher does nothing for a caller that is cancelled already`() async {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await publisher.load { 1 }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    publisher.update(2)
    #expect(await states.first(2).map(words) == ["unknown", "loaded(2)"])
  }

  @Test func `a load can begin again after it was abandoned, however the old one ends`()
    async throws
  {
    let publisher = DataPublisher<Int>()
    let deaf = Log<Void>()
    let begun = Log<Void>()
    let abandoned = Task {
      try await publisher.load {
        begun.append(())
        _ = await Task.detached { _ = await deaf.first(1) }.value
        return 1
      }
    }
    await begun.first(1)
    abandoned.cancel()
    await #expect(throws: CancellationError.self) { try await abandoned.value }
    #expect(try await publisher.load { 2 } == 2)
    deaf.append(())
    #expect(try await publisher.load { 3 } == 3)
    #expect(words(publisher.state) == "loaded(3)")
  }

  @Test func `a load is raised to the priority of a caller that joins`() async throws {
    let publisher = DataPublisher<Bool>()
    let gate = Gate()
    let operation: @concurrent @Sendable () async throws -> Bool = {
      try await gate.wait()
      // Separate tasks raise priorities, which can take a moment.
      while Task.currentPriority < .high { await Task.detached {}.value }
      return true
    }
    let starter = begin(priority: .background) { try await publisher.load(operation) }
    await gate.arrivals(1)
    let joiner = begin(priority: .high) { try await publisher.load(operation) }
    gate.open()
    #expect(try await joiner.value)
    #expect(try await starter.value)
  }
}
