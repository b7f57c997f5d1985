import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The action of a debouncer or throttler` {
  let clock = ManualClock()

  @Test(.guarantee(.actionsNeverOverlap), arguments: TimedKind.allCases)
  func `a timed action never overlaps itself, and touches while it runs cause one more run`(
    kind: TimedKind
  ) async {
    let gate = Gate()
    let running = Guarded(0)
    let runs = Log<Int>()
    let subject = kind.make(clock: clock) {
      runs.append(running.countUp())
      try? await gate.wait()
      running.countDown()
    }
    let firings = subject.recorder()
    for count in 1...5 {
      subject.touch()
      await clock.passSecond()
      _ = await firings.first(count)
    }
    // The first run is in progress; four firings wait for its end, and the streams have received all of them.
    await gate.arrivals(1)
    #expect(runs.entries == [1])
    gate.open()
    await subject.flush()
    #expect(runs.entries == [1, 1])
    subject.touch()
    await subject.flush()
    #expect(runs.entries == [1, 1, 1])
  }

  @Test(.guarantee(.flushWaitsForTheRun), arguments: TimedKind.allCases)
  func `flush fires the pending touch immediately and waits for the end of the run`(
    kind: TimedKind
  ) async {
    let gate = Gate()
    let log = Log<String>()
    let subject = kind.make(clock: clock) {
      try? await gate.wait()
      log.append("action")
    }
    subject.touch()
    await clock.sleepers(1)
    let flush = Task {
      await subject.flush()
      log.append("flushed")
    }
    await gate.arrivals(1)
    #expect(clock.sleeperCount == 0)
    gate.open()
    await flush.value
    #expect(log.entries == ["action", "flushed"])
  }

  @Test(arguments: TimedKind.allCases)
  func `flush waits for a queued run, not only for the current one`(kind: TimedKind) async {
    let gate = Gate()
    let log = Log<String>()
    let subject = kind.make(clock: clock) {
      try? await gate.wait()
      log.append("action")
    }
    subject.touch()
    let first = Task { await subject.flush() }
    await gate.arrivals(1)
    subject.touch()
    let second = Task {
      await subject.flush()
      log.append("flushed")
    }
    await first.value(after: gate, admitting: 1)
    await gate.arrivals(2)
    gate.open()
    await second.value
    #expect(log.entries == ["action", "action", "flushed"])
  }

  @Test(arguments: TimedKind.allCases)
  func `flush waits for a running action even if nothing is pending`(kind: TimedKind) async {
    let gate = Gate()
    let log = Log<String>()
    let subject = kind.make(clock: clock) {
      try? await gate.wait()
      log.append("action")
    }
    subject.touch()
    await clock.passSecond()
    await gate.arrivals(1)
    let flush = Task {
      await subject.flush()
      log.append("flushed")
    }
    gate.open()
    await flush.value
    #expect(log.entries == ["action", "flushed"])
  }

  @Test(.guarantee(.flushWaitsForTheRun), arguments: TimedKind.allCases)
  func `a cancelled caller of flush returns immediately, and the pending touch has fired`(
    kind: TimedKind
  ) async {
    let never = Gate()
    let subject = kind.make(clock: clock) { try? await never.wait() }
    subject.touch()
    let flush = Task { await subject.flush() }
    await never.arrivals(1)
    flush.cancel()
    await flush.value
    // A caller that is cancelled before the call.
    subject.touch()
    let firings = subject.recorder()
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await subject.flush()
    }
    await late.value
    _ = await firings.first(1)
    #expect(clock.sleeperCount == 0)
    never.open()
  }

  @Test(arguments: TimedKind.allCases)
  func `flush inside the action fires and does not wait for itself`(kind: TimedKind) async {
    let reference = Guarded<TimedSubject?>(nil)
    let runs = Log<Int>()
    let subject = kind.make(clock: clock) {
      let subject = reference.withLock { $0 }
      if runs.count == 0 { subject?.touch() }
      await subject?.flush()
      // A child task of the action does not wait either.
      async let child: Void? = subject?.flush()
      _ = await child
      runs.append(1)
    }
    reference.withLock { $0 = subject }
    subject.touch()
    await subject.flush()
    await runs.first(2)
    await subject.flush()
    #expect(runs.count == 2)
    reference.withLock { $0 = nil }
  }

  @Test(arguments: TimedKind.allCases)
  func `a task that outlives its action waits in flush like any other`(
    kind: TimedKind
  ) async {
    let reference = Guarded<TimedSubject?>(nil)
    let gate = Gate()
    let runs = Log<Int>()
    let leftBehind = Log<Int>()
    let subject = kind.make(clock: clock) {
      if runs.count == 0 {
        Task {
          try? await gate.wait()
          let subject = reference.withLock { $0 }
          subject?.touch()
          await subject?.flush()
          leftBehind.append(runs.count)
        }
      }
      runs.append(1)
    }
    reference.withLock { $0 = subject }
    subject.touch()
    await subject.flush()
    gate.open()
    #expect(await leftBehind.first(1) == [2])
    reference.withLock { $0 = nil }
  }

  @Test(arguments: TimedKind.allCases)
  func `cancelling keeps a running action, and drops the queued run`(
    kind: TimedKind
  ) async {
    let gate = Gate()
    let ends = Log<Bool>()
    let subject = kind.make(clock: clock) {
      try? await gate.wait()
      ends.append(Task.isCancelled)
    }
    subject.touch()
    await clock.passSecond()
    await gate.arrivals(1)
    let firings = subject.recorder()
    subject.touch()
    await clock.passSecond()
    _ = await firings.first(1)
    subject.cancel()
    gate.open()
    await subject.flush()
    #expect(ends.entries == [false])
  }

  @Test(arguments: TimedKind.allCases)
  func `flush returns when the run that it waits for is cancelled`(kind: TimedKind) async {
    let gate = Gate()
    let subject = kind.make(clock: clock) { try? await gate.wait() }
    let firings = subject.recorder()
    subject.touch()
    await clock.passSecond()
    await gate.arrivals(1)
    subject.touch()
    let flush = Task { await subject.flush() }
    // The flush has fired, and its run is queued behind one that does not end.
    _ = await firings.first(2)
    subject.cancel()
    await flush.value
    #expect(gate.waiterCount == 1)
    gate.open()
  }

  @Test(arguments: TimedKind.allCases)
  func `an action that never ends is called once, and firings continue`(kind: TimedKind) async {
    let never = Gate()
    let subject = kind.make(clock: clock) { try? await never.wait() }
    let firings = subject.recorder()
    for count in 1...5 {
      subject.touch()
      await clock.passSecond()
      #expect(await firings.first(count).count == count)
      await never.arrivals(1)
    }
    #expect(never.arrivalCount == 1)
    subject.cancel()
    never.open()
    await subject.flush()
    #expect(never.arrivalCount == 1)
  }

  @Test(arguments: TimedKind.allCases)
  func `a touch inside the action causes another run`(kind: TimedKind) async {
    let reference = Guarded<TimedSubject?>(nil)
    let runs = Log<Int>()
    let subject = kind.make(clock: clock) {
      runs.append(1)
      if runs.count < 3 { reference.withLock { $0 }?.touch() }
    }
    reference.withLock { $0 = subject }
    subject.touch()
    for count in 1...3 {
      await clock.passSecond()
      await runs.first(count)
    }
    await subject.flush()
    #expect(runs.count == 3)
    reference.withLock { $0 = nil }
  }
}

extension Task where Success == Void, Failure == Never {
  /// Waits for the end of the task, which needs a number of admissions.
  func value(after gate: Gate, admitting count: Int) async {
    gate.admit(count)
    await value
  }
}
