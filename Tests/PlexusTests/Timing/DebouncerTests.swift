import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A debouncer` {
  let clock = ManualClock()

  @Test(.guarantee(.debouncersFireOnce))
  func `a debouncer fires once after the last touch, and runs its action`() async {
    let runs = Log<Duration>()
    let debouncer = Debouncer(delay: .seconds(1), clock: clock) { [clock] in
      runs.append(clock.now.offset)
    }
    let firings = Recorder(debouncer.subscription())
    for _ in 0..<3 {
      debouncer.touch()
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(500))
    }
    // The task woke after one second, found another touch, and sleeps again.
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(2)))
    #expect(firings.elements.isEmpty)
    clock.advance(by: .milliseconds(500))
    _ = await firings.first(1)
    #expect(await runs.first(1) == [.seconds(2)])
    #expect(clock.sleeperCount == 0)
    await debouncer.flush()
    #expect(firings.elements.count == 1)
    #expect(runs.count == 1)
  }

  @Test func `a debouncer fires again after another touch`() async {
    let debouncer = Debouncer(delay: .seconds(1), clock: clock)
    let firings = Recorder(debouncer.subscription())
    for count in 1...5 {
      debouncer.touch()
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
      #expect(await firings.first(count).count == count)
    }
    #expect(firings.elements.count == 5)
  }

  @Test
  func `a debouncer does nothing until it is touched, and sleeps only while a firing is pending`()
    async
  {
    let debouncer = Debouncer(delay: .seconds(1), clock: clock)
    let firings = Recorder(debouncer.subscription())
    #expect(clock.sleeperCount == 0)
    await debouncer.flush()
    debouncer.cancel()
    #expect(firings.elements.isEmpty)
    debouncer.touch()
    await clock.sleepers(1)
    debouncer.cancel()
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.leadingFiresTheFirstTouch))
  func `a leading debouncer fires at once, and at the end only if touched again`() async {
    let debouncer = Debouncer(delay: .seconds(1), leading: true, clock: clock)
    let firings = debouncer.subscription()
    debouncer.touch()
    #expect(await firings.first(1).count == 1)
    #expect(clock.sleeperCount == 0)
    clock.advance(by: .milliseconds(500))
    debouncer.touch()
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(await firings.first(1).count == 1)
    debouncer.touch()
    #expect(await firings.first(1).count == 1, "quiet for the delay")
    await debouncer.flush()
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.debouncersFireOnce))
  func `the maximum delay of a debouncer fires while touches continue`()
    async
  {
    let debouncer = Debouncer(delay: .seconds(1), maximumDelay: .seconds(2), clock: clock)
    let firings = Recorder(debouncer.subscription())
    for _ in 0..<3 {
      debouncer.touch()
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(600))
    }
    debouncer.touch()
    await clock.sleepers(1)
    #expect(firings.elements.isEmpty)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(2)))
    clock.advance(by: .milliseconds(200))
    _ = await firings.first(1)
    #expect(clock.sleeperCount == 0)
  }

  @Test(arguments: [Duration.zero, .seconds(-1)])
  func `a debouncer with a delay of zero or less fires before touch returns`(delay: Duration) async
  {
    let runs = Log<Int>()
    let debouncer = Debouncer(delay: delay, clock: clock) { runs.append(1) }
    let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(10))
    for _ in 0..<12 { debouncer.touch() }
    #expect(firings.droppedCount == 2, "twelve were sent")
    #expect(clock.sleeperCount == 0)
    await debouncer.flush()
    #expect(runs.count >= 1)
  }

  @Test func `a touch of a debouncer never postpones a firing that was due before it`() async {
    let debouncer = Debouncer(delay: .seconds(1), clock: clock)
    let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(0))
    debouncer.touch()
    // The deadline has passed, whether the sleeping task has run or not.
    clock.advance(by: .seconds(1))
    debouncer.touch()
    #expect(firings.droppedCount == 1)
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .seconds(2)))
    debouncer.cancel()
  }

  @Test(.guarantee(.elementsPrecedeTheAction))
  func `elements of a debouncer are in every buffer when the action starts`() async {
    let counts = Log<Int>()
    let subscription = Guarded<Subscription<Void>?>(nil)
    let debouncer = Debouncer(delay: .seconds(1), clock: clock) {
      counts.append(subscription.withLock { $0 }?.droppedCount ?? -1)
    }
    subscription.withLock { $0 = debouncer.subscription(bufferingPolicy: .bufferingNewest(0)) }
    debouncer.touch()
    await debouncer.flush()
    #expect(counts.entries == [1])
  }

  @Test(.guarantee(.cancelStopsFiring))
  func `cancelling a debouncer drops the pending firing, and no action starts afterwards`() async {
    let runs = Log<Int>()
    let debouncer = Debouncer(delay: .seconds(1), clock: clock) { runs.append(1) }
    let firings = Recorder(debouncer.subscription())
    for _ in 0..<100 {
      debouncer.touch()
      debouncer.cancel()
    }
    clock.advance(by: .seconds(5))
    await debouncer.flush()
    #expect(runs.count == 0)
    #expect(firings.elements.isEmpty)
    debouncer.touch()
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(await firings.first(1).count == 1)
    #expect(await runs.first(1) == [1])
  }

  @Test func `cancelling a leading debouncer makes the next touch the first`() async {
    let debouncer = Debouncer(delay: .seconds(1), leading: true, clock: clock)
    let firings = debouncer.subscription()
    debouncer.touch()
    debouncer.touch()
    debouncer.cancel()
    debouncer.touch()
    #expect(await firings.first(2).count == 2)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `cancelling the task that creates and touches a debouncer has no effect`() async {
    let runs = Log<Bool>()
    let maker = Task { [clock] in
      withUnsafeCurrentTask { $0?.cancel() }
      let debouncer = Debouncer(delay: .seconds(1), clock: clock) { runs.append(Task.isCancelled) }
      debouncer.touch()
      return debouncer
    }
    let debouncer = await maker.value
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(await runs.first(1) == [false])
    withExtendedLifetime(debouncer) {}
  }

  @Test func `the action of a debouncer does not inherit task-local values from calls of touch`()
    async
  {
    enum Local { @TaskLocal static var value = 0 }
    let values = Log<Int>()
    let debouncer = Debouncer(delay: .zero, clock: clock) { values.append(Local.value) }
    Local.$value.withValue(7) { debouncer.touch() }
    #expect(await values.first(1) == [0])
    await debouncer.flush()
  }
}
