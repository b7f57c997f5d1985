import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A throttler` {
  let clock = ManualClock()

  @Test
  func `a throttler fires at once, and once at the end of the interval for all other touches`()
    async
  {
    let runs = Log<Duration>()
    let throttler = Throttler(interval: .seconds(1), clock: clock) { [clock] in
      runs.append(clock.now.offset)
    }
    let firings = Recorder(throttler.subscription())
    throttler.touch()
    #expect(await runs.first(1) == [.zero])
    #expect(clock.sleeperCount == 0)
    clock.advance(by: .milliseconds(300))
    for _ in 0..<5 { throttler.touch() }
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(1)))
    clock.advance(by: .milliseconds(700))
    #expect(await runs.first(2) == [.zero, .seconds(1)])
    #expect(clock.sleeperCount == 0)
    await throttler.flush()
    #expect(firings.elements.count == 2)
  }

  @Test(.guarantee(.throttlersFireOncePerInterval))
  func `a throttler fires at most once an interval, however often it is touched`() async {
    let throttler = Throttler(interval: .seconds(1), clock: clock)
    let firings = Recorder(throttler.subscription())
    throttler.touch()
    for count in 2...6 {
      for _ in 0..<10 { throttler.touch() }
      await clock.passSecond()
      #expect(await firings.first(count).count == count)
    }
    #expect(firings.elements.count == 6)
  }

  @Test func `a touch of a throttler that comes late enough fires at once`() async {
    let throttler = Throttler(interval: .seconds(1), clock: clock)
    let firings = throttler.subscription()
    for _ in 0..<3 {
      throttler.touch()
      #expect(await firings.first(1).count == 1)
      clock.advance(by: .seconds(1))
    }
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.throttlersFireOncePerInterval))
  func `a throttler that is not leading fires at the end of an interval that a touch begins`() async
  {
    let throttler = Throttler(interval: .seconds(1), leading: false, clock: clock)
    let firings = Recorder(throttler.subscription())
    throttler.touch()
    await clock.sleepers(1)
    #expect(firings.elements.isEmpty)
    clock.advance(by: .milliseconds(500))
    throttler.touch()
    clock.advance(by: .milliseconds(500))
    #expect(await firings.first(1).count == 1)
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.throttlersFireOncePerInterval))
  func `a throttler that is not trailing ignores touches that come too early`() async {
    let throttler = Throttler(interval: .seconds(1), trailing: false, clock: clock)
    let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
    throttler.touch()
    throttler.touch()
    clock.advance(by: .milliseconds(999))
    throttler.touch()
    #expect(firings.droppedCount == 1)
    clock.advance(by: .milliseconds(1))
    throttler.touch()
    #expect(firings.droppedCount == 2)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a throttler with neither edge never fires`() async {
    let throttler = Throttler(interval: .seconds(1), leading: false, trailing: false, clock: clock)
    let firings = Recorder(throttler.subscription())
    throttler.touch()
    clock.advance(by: .seconds(2))
    throttler.touch()
    await throttler.flush()
    #expect(firings.elements.isEmpty)
    #expect(clock.sleeperCount == 0)
  }

  @Test(arguments: [Duration.zero, .seconds(-1)])
  func `a throttler with an interval of zero or less fires before touch returns`(interval: Duration)
  {
    let throttler = Throttler(interval: interval, clock: clock)
    let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
    for _ in 0..<7 { throttler.touch() }
    #expect(firings.droppedCount == 7)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a due firing of a throttler comes before a touch, and begins the interval`() async {
    let throttler = Throttler(interval: .seconds(1), clock: clock)
    let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
    throttler.touch()
    throttler.touch()
    clock.advance(by: .seconds(1))
    throttler.touch()
    #expect(firings.droppedCount == 2)
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(2)))
    throttler.cancel()
  }

  @Test func `cancelling a throttler drops the pending firing, and the interval continues`() async {
    let throttler = Throttler(interval: .seconds(1), clock: clock)
    let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
    throttler.touch()
    throttler.touch()
    await clock.sleepers(1)
    throttler.cancel()
    #expect(clock.sleeperCount == 0)
    clock.advance(by: .milliseconds(999))
    throttler.touch()
    #expect(firings.droppedCount == 1)
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(1))
    await throttler.flush()
    #expect(firings.droppedCount == 2)
  }

  @Test func `flushing a throttler fires before the interval has passed, and another one begins`()
    async
  {
    let runs = Log<Int>()
    let throttler = Throttler(interval: .seconds(1), clock: clock) { runs.append(1) }
    throttler.touch()
    await throttler.flush()
    #expect(runs.count == 1)
    throttler.touch()
    clock.advance(by: .milliseconds(500))
    await throttler.flush()
    #expect(runs.count == 2)
    throttler.touch()
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .milliseconds(1500)))
    throttler.cancel()
  }
}
