import Dispatch
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A manual clock` {
  let clock = ManualClock()

  @Test(.guarantee(.manualClocksStandStill))
  func `a manual clock stands still until it is advanced`() {
    let start = clock.now
    #expect(clock.now == start)
    clock.advance(by: .seconds(2))
    clock.advance(by: .milliseconds(500))
    #expect(start.duration(to: clock.now) == .milliseconds(2_500))
    clock.advance(to: start.advanced(by: .seconds(9)))
    #expect(clock.now == start.advanced(by: .seconds(9)))
  }

  @Test func `a manual clock starts at its first instant`() {
    #expect(clock.now == ManualClock.Instant())
    #expect(clock.now.offset == .zero)
  }

  @Test func `a manual clock does not move by zero, or to the time it has`() {
    clock.advance(by: .seconds(1))
    let now = clock.now
    clock.advance(by: .zero)
    clock.advance(to: now)
    #expect(clock.now == now)
  }

  @Test func `a manual clock is a clock like any other`() async throws {
    let any: any Clock<Duration> = clock
    let sleeper = Task { try await any.sleep(for: .seconds(1), tolerance: .seconds(5)) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    try await sleeper.value
    #expect(clock.minimumResolution > .zero)
  }

  @Test func `a manual clock measures the time by which the test advances it`() {
    let elapsed = clock.measure {
      clock.advance(by: .seconds(3))
    }
    #expect(elapsed == .seconds(3))
  }

  @Test(arguments: [(59, true), (60, false), (61, false)])
  func `a manual clock wakes at the deadline and not before`(
    seconds: Int,
    sleeps: Bool
  ) async throws {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(60)) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(seconds))
    #expect(clock.sleeperCount == (sleeps ? 1 : 0))
    clock.advance(by: .seconds(60))
    try await sleeper.value
  }

  @Test(.guarantee(.manualClocksStandStill)) func `the due sleepers are gone when advance returns`()
    async throws
  {
    let sleepers = (1...10).map { seconds in
      Task { [clock] in try await clock.sleep(for: .seconds(seconds)) }
    }
    await clock.sleepers(10)
    for remaining in (0...9).reversed() {
      clock.advance(by: .seconds(1))
      #expect(clock.sleeperCount == remaining)
    }
    for sleeper in sleepers { try await sleeper.value }
  }

  @Test func `a manual clock returns the next deadline`() async throws {
    #expect(clock.nextDeadline == nil)
    let late = Task { [clock] in try await clock.sleep(for: .seconds(9)) }
    let soon = Task { [clock] in try await clock.sleep(for: .seconds(5)) }
    await clock.sleepers(2)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(5)))
    soon.cancel()
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(9)))
    clock.advance(by: .seconds(9))
    #expect(clock.nextDeadline == nil)
    try await late.value
  }

  @Test func `a deadline that is not after now returns at once`() async throws {
    clock.advance(by: .seconds(10))
    try await clock.sleep(until: clock.now)
    try await clock.sleep(until: ManualClock.Instant())
    try await clock.sleep(for: .zero)
    try await clock.sleep(for: .seconds(-1))
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.manualClocksStandStill))
  func `a manual clock wakes in order of deadline, and in order of arrival at the same one`()
    async throws
  {
    // The executor runs jobs in the order in which they are resumed.
    let executor = InOrder()
    let names = Notes<String>()
    var tasks: [Task<Void, any Error>] = []
    for (name, seconds) in [("b1", 2), ("c1", 3), ("a1", 1), ("b2", 2), ("a2", 1), ("c2", 3)] {
      tasks.append(
        Task(executorPreference: executor) { [clock] in
          try await clock.sleep(for: .seconds(seconds))
          names.append(name)
        }
      )
      await clock.sleepers(tasks.count)
    }
    // A task that is resumed before it is suspended continues immediately, ahead of the others.
    await executor.atRest()
    clock.advance(by: .seconds(3))
    for task in tasks { try await task.value }
    #expect(names.entries == ["a1", "a2", "b1", "b2", "c1", "c2"])
  }

  @Test func `a task that wakes sees the time to which the clock was moved`() async throws {
    let seen = (1...3).map { seconds in
      Task { [clock] in
        try await clock.sleep(for: .seconds(seconds))
        return clock.now
      }
    }
    await clock.sleepers(3)
    clock.advance(by: .seconds(5))
    for task in seen {
      #expect(try await task.value == ManualClock.Instant(offset: .seconds(5)))
    }
  }

  @Test func `a loop of sleeps ticks once an advance`() async throws {
    let ticks = Notes<ManualClock.Instant>()
    let loop = Task { [clock] in
      for _ in 0..<5 {
        try await clock.sleep(for: .seconds(1))
        ticks.append(clock.now)
      }
    }
    for _ in 0..<5 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
    }
    try await loop.value
    #expect(ticks.entries == (1...5).map { ManualClock.Instant(offset: .seconds($0)) })
  }

  @Test func `a cancelled sleeper throws at once and sleeps no longer`() async {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(60)) }
    await clock.sleepers(1)
    sleeper.cancel()
    #expect(clock.sleeperCount == 0)
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    clock.advance(by: .seconds(60))
  }

  @Test(arguments: [-1, 0, 1])
  func `a task that is cancelled already throws, whatever its deadline`(seconds: Int) async {
    let (clock, gate) = (clock, Gate())
    let sleeper = Task {
      try? await gate.wait()
      try await clock.sleep(for: .seconds(seconds))
    }
    await gate.arrivals(1)
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    #expect(clock.sleeperCount == 0)
  }

  @Test func `cancelling one sleeper leaves the others asleep`() async throws {
    let sleepers = (1...100).map { seconds in
      Task { [clock] in try await clock.sleep(for: .seconds(seconds)) }
    }
    await clock.sleepers(100)
    for index in stride(from: 0, to: 100, by: 2) { sleepers[index].cancel() }
    #expect(clock.sleeperCount == 50)
    clock.advance(by: .seconds(100))
    for (index, sleeper) in sleepers.enumerated() {
      let result = await sleeper.result
      let slept = (try? result.get()) != nil
      #expect(slept == (index % 2 == 1))
    }
  }

  @Test(.guarantee(.sleepersWaitsForSleepers))
  func `sleepers returns once so many sleep, and not before`() async throws {
    let (clock, gate) = (clock, Gate())
    let watcher = Task {
      gate.open()
      await clock.sleepers(3)
      return clock.sleeperCount
    }
    try await gate.wait()
    let sleepers = (0..<3).map { _ in Task { try await clock.sleep(for: .seconds(1)) } }
    #expect(await watcher.value == 3)
    clock.advance(by: .seconds(1))
    for sleeper in sleepers { try await sleeper.value }
  }

  @Test(.guarantee(.sleepersWaitsForSleepers))
  func `sleepers returns at once if as many or more sleep`() async throws {
    await clock.sleepers(0)
    let sleepers = (0..<3).map { _ in Task { [clock] in try await clock.sleep(for: .seconds(1)) } }
    await clock.sleepers(3)
    for count in 0...3 { await clock.sleepers(count) }
    #expect(clock.nextDeadline?.offset == .seconds(1))
    clock.advance(by: .seconds(1))
    for sleeper in sleepers { try await sleeper.value }
  }

  @Test func `sleepers counts current sleepers, not former ones`() async throws {
    let (clock, done) = (clock, Notes<String>())
    let first = Task { try await clock.sleep(for: .seconds(1)) }
    await clock.sleepers(1)
    first.cancel()
    let watcher = Task {
      await clock.sleepers(1)
      done.append("one sleeps")
    }
    _ = await first.result
    #expect(done.entries == [])
    let second = Task { try await clock.sleep(for: .seconds(1)) }
    await watcher.value
    clock.advance(by: .seconds(1))
    try await second.value
  }

  @Test func `waiting for sleepers ends when the waiting task is cancelled`() async {
    let watcher = Task { [clock] in await clock.sleepers(1) }
    watcher.cancel()
    await watcher.value
    let cancelled = Task { [clock] in
      withUnsafeCurrentTask { $0?.cancel() }
      await clock.sleepers(1)
    }
    await cancelled.value
    #expect(clock.nextDeadline == nil, "There was no sleeper")
  }

  @Test func `thousands of tasks sleep on a manual clock, are cancelled and wake`() async {
    let (clock, count) = (clock, 10_000)
    let slept = await withTaskGroup(of: Bool.self) { group in
      for index in 0..<count {
        group.addTask {
          do {
            try await clock.sleep(for: .seconds((index * 7_919) % count + 1))
            return true
          } catch {
            return false
          }
        }
      }
      await clock.sleepers(count)
      clock.advance(by: .seconds(count / 2))
      #expect(clock.sleeperCount == count / 2)
      group.cancelAll()
      #expect(clock.sleeperCount == 0)
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(slept == count / 2)
  }

  @Test func `a manual clock can be advanced, slept on and read from many threads at once`() async {
    let clock = clock
    let ended = Notes<Bool>()
    await withTaskGroup { group in
      for index in 0..<400 {
        group.addTask {
          let deadline = clock.now.advanced(by: .milliseconds(index))
          do {
            try await clock.sleep(until: deadline)
            ended.append(clock.now >= deadline)
          } catch {
            ended.append(true)
          }
        }
      }
      for _ in 0..<20 { group.addTask { await clock.sleepers(1) } }
      await onThreads(4) { _ in
        for _ in 0..<500 {
          clock.advance(by: .milliseconds(1))
          _ = clock.nextDeadline
        }
      }
      // Cancels the tasks that began to sleep after the last advance.
      group.cancelAll()
    }
    #expect(ended.entries == Array(repeating: true, count: 400))
    #expect(clock.now.offset == .milliseconds(2_000))
  }

  @Test(.startsProcess) func `a manual clock cannot move backwards`() async {
    await #expect(processExitsWith: .failure) { ManualClock().advance(by: .seconds(-1)) }
    await #expect(processExitsWith: .failure) {
      let clock = ManualClock()
      clock.advance(by: .seconds(1))
      clock.advance(to: ManualClock.Instant())
    }
  }

  @Test(.startsProcess) func `a manual clock cannot wait for less than no sleepers`() async {
    await #expect(processExitsWith: .failure) { await ManualClock().sleepers(-1) }
  }
}

@Suite(.fewAtOnce) struct `An instant of a manual clock` {
  @Test func `an instant of a manual clock is a number of seconds since the start`() {
    let instant = ManualClock.Instant(offset: .seconds(2))
    #expect(instant.advanced(by: .seconds(3)).offset == .seconds(5))
    #expect(instant.duration(to: ManualClock.Instant()) == .seconds(-2))
    #expect(ManualClock.Instant() < instant)
    #expect(instant == ManualClock.Instant().advanced(by: .seconds(2)))
    #expect(Set([instant, instant]).count == 1)
  }

  @Test func `an instant of a manual clock describes itself as a duration`() {
    #expect("\(ManualClock.Instant(offset: .milliseconds(1_500)))" == "1.5 seconds")
  }
}

/// An executor without priorities, which runs jobs in order of arrival.
private final class InOrder: TaskExecutor {
  private let queue = DispatchQueue(label: "in order")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Waits for the running job and all jobs enqueued before this call.
  func atRest() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }
}
