import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The task of a fetch` {
  @TaskLocal private static var note = "none"

  @Test(.guarantee(.callersRaiseThePriority), arguments: CacheKind.allCases)
  func `the task of a fetch has none of the task-locals of the caller that began it`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make { Self.note }
    let value = try await Self.$note.withValue("leaked") { try await cache.request() }
    #expect(value == "none")
  }

  @Test(arguments: CacheKind.allCases, [TaskPriority.low, .high])
  func `the task of a fetch begins with the priority of the caller that began it`(
    kind: CacheKind,
    priority: TaskPriority
  ) async throws {
    let cache = kind.make { Task.currentPriority }
    let caller = Task.detached(priority: priority) { try await cache.request() }
    let seen = await begin { await caller.result }.result
    #expect(try seen.get().get() >= priority)
    #expect(try seen.get().get() == priority || priority == .low)
  }

  @Test(.guarantee(.callersRaiseThePriority), arguments: [TaskPriority.low, .high])
  func `the task of a fetch of several keys has the priority of the caller that began it`(
    priority: TaskPriority
  ) async throws {
    let priorities = RecordedChannel<TaskPriority>()
    let map = MultiplexerMap<Int, Int>.bulk { keys in
      priorities.send(Task.currentPriority)
      return [:]
    }
    let caller = Task.detached(priority: priority) { await map.request([1, 2]) }
    let seen = await priorities.recorder.first(1)[0]
    #expect(seen == priority || priority == .low && seen > .low)
    _ = await caller.value
  }

  @Test(
    .guarantee(.callersRaiseThePriority),
    arguments: CacheKind.allCases,
    [Duration.seconds(5), nil]
  )
  func `the task of a fetch is raised to the priority of a caller that joins`(
    kind: CacheKind,
    timeout: Duration?
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.fetchTimeout = timeout
    let cache = kind.make(policy: policy) {
      try await gate.wait()
      var priority = Task.currentPriority
      // Separate tasks raise priorities, which can take a moment.
      while priority < .high {
        await Task.detached {}.value
        priority = Task.currentPriority
      }
      return priority
    }
    let starter = begin(priority: .background) { try await cache.request() }
    await gate.arrivals(1)
    let joiner = begin(priority: .high) { try await cache.request() }
    gate.open()
    #expect(try await joiner.value >= .high)
    #expect(try await starter.value >= .high)
  }

  @Test(arguments: CacheKind.allCases)
  func `the task of a fetch is raised by a caller that joins the renewal of a value, too`(
    kind: CacheKind
  ) async throws {
    let (gate, clock, tally) = (Gate(), ManualClock(), Tally())
    let policy = CachePolicy()
    let cache = kind.make(policy: policy, clock: clock) {
      guard tally.increment() > 1 else { return TaskPriority.background }
      try await gate.wait()
      while Task.currentPriority < .high { await Task.detached {}.value }
      return Task.currentPriority
    }
    _ = try await cache.request()
    clock.advance(by: policy.timeToLive)
    let starter = begin(priority: .background) { try await cache.request() }
    await gate.arrivals(1)
    let joiner = begin(priority: .high) { try await cache.request() }
    gate.open()
    #expect(try await joiner.value >= .high)
    #expect(try await starter.value >= .high)
  }

  @Test(.guarantee(.callersRaiseThePriority), arguments: CacheKind.allCases)
  func `the task of a fetch is raised with a caller that becomes more urgent while it waits`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let cache = kind.make {
      try await gate.wait()
      // There is no notification of a raised priority: without one, the test ends by its time limit.
      while Task.currentPriority < .high { await Task.detached {}.value }
      return Task.currentPriority
    }
    let caller = Task.detached(priority: .background) { try await cache.request() }
    await gate.arrivals(1)
    let urgent = Task.detached(priority: .high) { try await caller.value }
    gate.open()
    #expect(try await urgent.value >= .high)
  }

  @Test(arguments: CacheKind.allCases)
  func `the task of a fetch runs apart from the actor of its caller`(kind: CacheKind) async throws {
    let cache = kind.make { @concurrent () async throws -> Bool in
      #isolation == nil
    }
    #expect(try await Task { @MainActor in try await cache.request() }.value)
  }
}
