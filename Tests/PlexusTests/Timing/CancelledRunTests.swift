import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A value that `cancel()` drops counts as not fired.
@Suite(.fewAtOnce) struct `A run that is cancelled before it begins` {
  let clock = ManualClock()
  let gate = Gate()

  /// A variable whose first run continues until the gate is opened.
  private func variable(
    delay: Duration = .seconds(1),
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    _ runs: Log<Int>
  ) -> DebouncerVar<Int> {
    DebouncerVar(
      0,
      delay: delay,
      leading: leading,
      maximumDelay: maximumDelay,
      clock: clock
    ) { [gate] value in
      runs.append(value)
      try? await gate.wait()
    }
  }

  @Test(.guarantee(.cancelledValuesAreNotFired), arguments: [false, true])
  func `a run that is cancelled before it begins lets its value fire when it is set again`(
    leading: Bool
  ) async {
    let runs = Log<Int>()
    let variable = variable(leading: leading, maximumDelay: .seconds(3), runs)
    let values = Recorder(variable.subscription())
    variable.value = 1
    if !leading { await clock.passSecond() }
    #expect(await runs.first(1) == [1])
    variable.value = 2
    await clock.passSecond()
    #expect(await values.first(2) == [1, 2])
    // The run with 2 waits for that with 1, and is dropped.
    variable.cancel()
    variable.value = 3
    variable.value = 2
    let flushed = begin { await variable.flush() }
    if !leading { #expect(await values.first(3) == [1, 2, 2]) }
    gate.open()
    try? await flushed.value
    #expect(runs.entries.last == 2)
    #expect(runs.entries.first == 1)
  }

  @Test func `cancelling a queued run leaves the value whose run has begun as the one fired last`()
    async
  {
    let runs = Log<Int>()
    let variable = variable(runs)
    let values = Recorder(variable.subscription())
    variable.value = 1
    await clock.passSecond()
    await runs.first(1)
    for value in 2...4 {
      variable.value = value
      await clock.passSecond()
    }
    #expect(await values.first(4) == [1, 2, 3, 4])
    variable.cancel()
    variable.value = 1
    #expect(clock.sleeperCount == 0, "1 is running, and counts as fired")
    gate.open()
    await variable.flush()
    #expect(runs.entries == [1])
    variable.value = 4
    await clock.passSecond()
    #expect(await runs.first(2) == [1, 4])
  }

  @Test(.guarantee(.cancelledValuesAreNotFired), arguments: 0..<100)
  func `a run that is cancelled before it begins counts as not fired, in any history`(
    seed: Int
  ) async {
    var random = SeededRandom(seed: UInt64(seed))
    let runs = Log<Int>()
    let variable = variable(delay: .zero, runs)
    variable.value = 1
    await runs.first(1)
    // While the first run continues, no other begins: what is fired is dropped by the next call of `cancel()`.
    var (value, lastFired, fired) = (1, 1, [1])
    var queued: [Int] = []
    let values = Recorder(variable.subscription())
    for _ in 0..<20 {
      guard Int.random(in: 0..<3, using: &random) > 0 else {
        variable.cancel()
        (lastFired, queued) = (1, [])
        continue
      }
      let new = Int.random(in: 1...3, using: &random)
      variable.value = new
      // Every change is fired, unless it goes back to the value that was fired last.
      if new != value, new != lastFired {
        fired.append(new)
        (lastFired, queued) = (new, [new])
      }
      value = new
    }
    #expect(await values.first(fired.count - 1) == Array(fired.dropFirst()))
    gate.open()
    await variable.flush()
    #expect(runs.entries == [1] + queued)
  }

  @Test func `a cancelled run of a throttler does not delay the next one`() async {
    let runs = Log<Int>()
    let number = Guarded(0)
    let throttler = Throttler(interval: .seconds(10), trailing: false, clock: clock) { [gate] in
      runs.append(number.withLock { $0 })
      try? await gate.wait()
    }
    throttler.touch()
    await runs.first(1)
    clock.advance(by: .seconds(10))
    throttler.touch()
    // It waits for the first run, and is dropped: a touch right after it fires at once.
    throttler.cancel()
    number.withLock { $0 = 1 }
    throttler.touch()
    gate.open()
    await throttler.flush()
    #expect(runs.entries == [0, 1])
  }

  @Test func `a cancelled run of a throttler that has subscribers counts for the interval`() async {
    let throttler = Throttler(interval: .seconds(10), clock: clock) { [gate] in
      try? await gate.wait()
    }
    let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
    throttler.touch()
    throttler.cancel()
    throttler.touch()
    #expect(firings.droppedCount == 1, "a subscriber gets at most one in an interval")
    gate.open()
    throttler.cancel()
  }
}
