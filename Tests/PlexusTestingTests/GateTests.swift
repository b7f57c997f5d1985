import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A gate` {
  let gate = Gate()

  @Test(.guarantee(.gatesSuspendTasks)) func `a gate suspends tasks until it is opened`()
    async throws
  {
    let passed = Notes<Int>()
    let tasks = (0..<3).map { index in
      Task { [gate] in
        try await gate.wait()
        passed.append(index)
      }
    }
    await gate.arrivals(3)
    #expect(passed.entries == [])
    #expect(gate.waiterCount == 3)
    gate.open()
    #expect(gate.waiterCount == 0)
    for task in tasks { try await task.value }
    #expect(passed.entries.sorted() == [0, 1, 2])
  }

  @Test func `a gate stays open`() async throws {
    #expect(!gate.isOpen)
    gate.open()
    gate.open()
    #expect(gate.isOpen)
    for _ in 0..<3 { try await gate.wait() }
    #expect(gate.arrivalCount == 3)
  }

  @Test func `a gate suspends tasks that arrive after it was closed again`() async throws {
    gate.open()
    try await gate.wait()
    gate.close()
    #expect(!gate.isOpen)
    let task = Task { [gate] in try await gate.wait() }
    await gate.arrivals(2)
    #expect(gate.waiterCount == 1)
    gate.open()
    try await task.value
  }

  @Test func `a gate admits the waiting tasks in order of arrival`() async throws {
    let passed = Gate()
    passed.open()
    let order = Notes<Int>()
    for index in 0..<5 {
      Task { [gate] in
        try await gate.wait()
        order.append(index)
        try await passed.wait()
      }
      await gate.arrivals(index + 1)
    }
    #expect(order.entries == [])
    // The tasks of one admission run in any order, but before the tasks of the next admission.
    gate.admit(2)
    #expect(gate.waiterCount == 3)
    await passed.arrivals(2)
    #expect(order.entries.sorted() == [0, 1])
    gate.admit()
    #expect(gate.waiterCount == 2)
    await passed.arrivals(3)
    #expect(order.entries.last == 2)
    gate.open()
    await passed.arrivals(5)
    #expect(order.entries.suffix(2).sorted() == [3, 4])
  }

  @Test func `a gate admits later arrivals if too few tasks wait`() async throws {
    let first = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    gate.admit(3)
    try await first.value
    try await gate.wait()
    try await gate.wait()
    let fourth = Task { [gate] in try await gate.wait() }
    await gate.arrivals(4)
    #expect(gate.waiterCount == 1)
    gate.admit()
    try await fourth.value
  }

  @Test func `a gate discards unused admissions when it is closed`() async throws {
    gate.admit(2)
    gate.close()
    let task = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    #expect(gate.waiterCount == 1)
    gate.open()
    try await task.value
  }

  @Test func `an open gate remembers no admissions`() async throws {
    gate.open()
    gate.admit(2)
    gate.close()
    let task = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    #expect(gate.waiterCount == 1)
    gate.admit()
    try await task.value
  }

  @Test func `a gate admits no task if asked to admit zero`() async throws {
    let task = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    gate.admit(0)
    #expect(gate.waiterCount == 1)
    gate.open()
    try await task.value
  }

  @Test func `a gate does not overflow the number of admissions`() async throws {
    gate.admit(.max)
    gate.admit(.max)
    for _ in 1...3 { try await gate.wait() }
    #expect(gate.waiterCount == 0)
  }

  @Test(.guarantee(.gatesSuspendTasks))
  func `a cancelled waiter throws at once and uses up no admission`() async throws {
    let doomed = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    let other = Task { [gate] in try await gate.wait() }
    await gate.arrivals(2)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    #expect(gate.waiterCount == 1)
    gate.admit()
    try await other.value
  }

  @Test func `a task that is cancelled already throws, even at an open gate`() async throws {
    gate.open()
    let task = Task { [gate] in
      withUnsafeCurrentTask { $0?.cancel() }
      try await gate.wait()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(gate.arrivalCount == 1)

    gate.close()
    gate.admit()
    let second = Task { [gate] in
      withUnsafeCurrentTask { $0?.cancel() }
      try await gate.wait()
    }
    await #expect(throws: CancellationError.self) { try await second.value }
    try await gate.wait()
  }

  @Test(.guarantee(.gatesSuspendTasks))
  func `a gate counts all arrivals, whether the tasks still wait or not`() async throws {
    #expect(gate.arrivalCount == 0)
    await gate.arrivals(0)
    let task = Task { [gate] in try await gate.wait() }
    await gate.arrivals(1)
    gate.open()
    try await task.value
    try await gate.wait()
    await gate.arrivals(2)
    await gate.arrivals(1)
    #expect(gate.arrivalCount == 2)
  }

  @Test func `waiting for arrivals ends when the waiting task is cancelled`() async {
    let watcher = Task { [gate] in await gate.arrivals(1) }
    watcher.cancel()
    await watcher.value
    #expect(gate.arrivalCount == 0)
  }

  @Test func `a gate is released when no task waits`() async throws {
    weak let weakGate: Gate?
    do {
      let gate = Gate()
      weakGate = gate
      let task = Task { try await gate.wait() }
      await gate.arrivals(1)
      gate.open()
      try await task.value
    }
    #expect(weakGate == nil)
  }

  @Test func `a gate admits each task exactly once while threads open, admit and cancel`()
    async
  {
    let (gate, count) = (gate, 500)
    let ended = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<count {
        group.addTask {
          try? await gate.wait()
          return 1
        }
      }
      group.addTask {
        await onThreads(4) { thread in
          for _ in 0..<100 {
            gate.admit()
            if thread == 0 { gate.close() }
          }
        }
        return 0
      }
      await gate.arrivals(count / 2)
      group.cancelAll()
      return await group.reduce(0, +)
    }
    #expect(ended == count)
    #expect(gate.arrivalCount == count)
    #expect(gate.waiterCount == 0)
  }

  @Test(.startsProcess) func `a gate cannot admit or wait for a negative number of tasks`() async {
    await #expect(processExitsWith: .failure) { Gate().admit(-1) }
    await #expect(processExitsWith: .failure) { await Gate().arrivals(-1) }
  }
}
