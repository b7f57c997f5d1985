import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Debouncers, throttlers and clocks` {
  @Test(arguments: TimedKind.allCases)
  func `a debouncer or throttler fires when the clock jumps ahead`(kind: TimedKind) async {
    let clock = ManualClock()
    let subject = kind.make(clock: clock)
    let firings = subject.recorder()
    subject.touch()
    await clock.sleepers(1)
    clock.advance(by: .seconds(86_400 * 365))
    #expect(await firings.first(1).count == 1)
    subject.touch()
    await clock.passSecond()
    #expect(await firings.first(2).count == 2)
  }

  @Test(arguments: TimedKind.allCases)
  func `a touch after the clock jumped ahead without waking sleepers fires at once`(
    kind: TimedKind
  ) async {
    let clock = WallClock()
    let subject = kind.make(clock: clock)
    let firings = subject.recorder()
    subject.touch()
    await clock.manual.sleepers(1)
    clock.set(by: .seconds(3600))
    subject.touch()
    #expect(await firings.first(1).count == 1)
    subject.cancel()
  }

  @Test(arguments: TimedKind.allCases)
  func `a debouncer or throttler waits again from the next touch when the clock is set back`(
    kind: TimedKind
  ) async {
    let clock = WallClock()
    clock.set(by: .seconds(7200))
    let subject = kind.make(clock: clock)
    let firings = subject.recorder()
    subject.touch()
    await clock.manual.sleepers(1)
    clock.set(by: .seconds(-3600))
    subject.touch()
    // The task that would sleep for another hour has been replaced.
    await clock.manual.sleepers(1)
    clock.manual.advance(by: .seconds(1))
    #expect(await firings.first(1).count == 1)
    #expect(clock.manual.sleeperCount == 0)
    subject.touch()
    await clock.manual.passSecond()
    #expect(await firings.first(2).count == 2)
  }

  @Test(arguments: TimedKind.allCases)
  func `a debouncer or throttler fires immediately if the clock throws instead of sleeping`(
    kind: TimedKind
  ) async {
    let runs = Log<Int>()
    let subject = kind.make(clock: SleeplessClock()) { runs.append(1) }
    let firings = subject.recorder()
    for count in 1...3 {
      subject.touch()
      #expect(await firings.first(count).count == count)
    }
    await subject.flush()
    await runs.first(1)
  }

  @Test(arguments: [0, 1])
  func `a late reading is not mistaken for a clock that was set back`(reading: Int) async {
    let clock = InterruptedClock()
    let debouncer = Debouncer(delay: .seconds(1), clock: clock)
    let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(0))
    // A later touch overtakes this one.
    clock.interrupt(reading) {
      clock.manual.advance(by: .milliseconds(700))
      debouncer.touch()
    }
    debouncer.touch()
    clock.manual.advance(by: .milliseconds(999))
    debouncer.touch()
    #expect(firings.droppedCount == 0, "the last touch but one was 999 ms ago")
    clock.manual.advance(by: .seconds(1))
    debouncer.touch()
    #expect(firings.droppedCount == 1)
    debouncer.cancel()
  }

  @Test func `debouncers and throttlers support the longest durations`() async {
    let clock = ManualClock()
    clock.advance(by: .seconds(Int64.max / 2))
    let longest = Duration.seconds(Int64.max) * 18
    let debouncer = Debouncer(delay: longest, maximumDelay: longest, clock: clock)
    let throttler = Throttler(interval: longest, leading: false, clock: clock)
    debouncer.touch()
    throttler.touch()
    await clock.sleepers(2)
    await debouncer.flush()
    await throttler.flush()
    #expect(clock.sleeperCount == 0)
    let watched = WatchedClock()
    let patient = Debouncer(delay: longest, clock: watched)
    patient.touch()
    await watched.sleeps.first(1)
    await patient.flush()
  }

  @Test func `the clock of the system works like any other with debouncers and throttlers`() async {
    let runs = Log<ContinuousClock.Instant>()
    let start = ContinuousClock.now
    let debouncer = Debouncer(delay: .milliseconds(20)) { runs.append(.now) }
    debouncer.touch()
    let ends = await runs.first(1)
    #expect(ends[0] - start >= .milliseconds(20))
    withExtendedLifetime(debouncer) {}
  }
}
