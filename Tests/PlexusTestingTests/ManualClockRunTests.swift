import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A manual clock that runs` {
  let clock = ManualClock()

  @Test
  func `a running manual clock wakes all sleepers in order of deadline, and stops at the last`()
    async throws
  {
    let sleepers = [3, 1, 2].map { seconds in
      Task { [clock] in
        try await clock.sleep(for: .seconds(seconds))
        return clock.now.offset >= .seconds(seconds)
      }
    }
    await clock.sleepers(3)
    clock.run()
    #expect(clock.sleeperCount == 0)
    #expect(clock.now.offset == .seconds(3))
    for sleeper in sleepers { #expect(try await sleeper.value) }
  }

  @Test func `a manual clock that runs stands still if no task sleeps`() {
    clock.advance(by: .seconds(1))
    clock.run()
    #expect(clock.now.offset == .seconds(1))
  }

  @Test func `a running manual clock stops at each deadline, and wakes tasks that sleep meanwhile`()
    async
  {
    let times = Notes<Duration>()
    // A woken task runs immediately, and sleeps again before the clock continues.
    let executor = InlineExecutor()
    let tasks = [(1, 3), (2, 1)].map { seconds, count in
      Task(executorPreference: executor) { [clock] in
        for _ in 0..<count {
          try? await clock.sleep(for: .seconds(seconds))
          times.append(clock.now.offset)
        }
      }
    }
    await clock.sleepers(2)
    clock.run()
    #expect(times.entries == [.seconds(1), .seconds(2), .seconds(2), .seconds(3)])
    #expect(clock.sleeperCount == 0)
    for task in tasks { await task.value }
  }

  @Test func `a manual clock that runs wakes other tasks, too, while an operation runs`()
    async throws
  {
    let woken = Notes<Int>()
    let clock = clock
    let chain = Task {
      for number in 1...3 {
        try await clock.sleep(for: .seconds(1))
        woken.append(number)
      }
    }
    await clock.run { _ = await chain.result }
    #expect(woken.entries == [1, 2, 3])
    #expect(clock.now.offset == .seconds(3))
  }

  @Test func `a manual clock that runs runs an operation that sleeps any number of times`()
    async throws
  {
    let total = try await clock.run {
      for seconds in 1...100 { try await clock.sleep(for: .seconds(seconds)) }
      return clock.now.offset
    }
    #expect(total == .seconds(5050))
    #expect(clock.now.offset == .seconds(5050))
  }

  @Test func `a manual clock that runs stands still when the operation has ended`() async throws {
    try await clock.run { try await clock.sleep(for: .seconds(1)) }
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
    await clock.sleepers(1)
    #expect(clock.now.offset == .seconds(1))
    #expect(clock.sleeperCount == 1)
    clock.run()
    try await sleeper.value
  }

  @Test
  func `a manual clock that runs ends with the operation, though others sleep again and again`()
    async throws
  {
    // The task sleeps again before the call that woke it can observe the clock.
    let heart = Task(executorPreference: InlineExecutor()) { [clock] in
      while !Task.isCancelled { try? await clock.sleep(for: .milliseconds(1)) }
    }
    await clock.sleepers(1)
    try await clock.run { try await clock.sleep(for: .seconds(1)) }
    #expect(clock.now.offset >= .seconds(1))
    heart.cancel()
    await heart.value
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a manual clock that runs passes on what the operation throws`() async {
    await #expect(throws: Broken.self) {
      try await clock.run {
        try await clock.sleep(for: .seconds(1))
        throw Broken()
      }
    }
  }

  @Test func `a manual clock that runs ends when the task is cancelled, as the operation does`()
    async
  {
    let never = Gate()
    let running = Task { [clock] in
      await clock.run { try? await never.wait() }
    }
    await never.arrivals(1)
    running.cancel()
    await running.value
    #expect(clock.now.offset == .zero)
  }

  @MainActor @Test func `a manual clock that runs calls its operation where the caller runs`() async
  {
    await clock.run { MainActor.assertIsolated() }
  }

  @Test
  func `thousands of sleepers of many deadlines are gone when the run of a manual clock ends`()
    async
  {
    await withTaskGroup { group in
      for number in 0..<5_000 {
        group.addTask { [clock] in try? await clock.sleep(for: .milliseconds(1 + number % 700)) }
      }
      await clock.sleepers(5_000)
      clock.run()
      #expect(clock.sleeperCount == 0)
      #expect(clock.now.offset == .milliseconds(700))
    }
  }
}

/// An executor that runs every job immediately, on the thread that enqueues it.
private final class InlineExecutor: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
  }
}
