import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The behavior of debouncers and throttlers with only the time specified.
@Suite(.fewAtOnce) struct `The defaults of debouncers and throttlers` {
  let clock = ManualClock()

  @Test(.guarantee(.debouncersFireOnce))
  func `a debouncer waits for a quiet time without a limit by default`()
    async
  {
    let debouncer = Debouncer(delay: .seconds(1), clock: clock)
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(0))
    let values = variable.subscription(bufferingPolicy: .bufferingNewest(0))
    for number in 1...1000 {
      debouncer.touch()
      variable.value = number
      await clock.sleepers(2)
      clock.advance(by: .milliseconds(900))
    }
    // It fires neither at the first touch nor after a maximum.
    #expect(firings.droppedCount == 0)
    #expect(values.droppedCount == 0)
    await debouncer.flush()
    await variable.flush()
    #expect(firings.droppedCount == 1)
    #expect(values.droppedCount == 1)
  }

  @Test(.guarantee(.timedSequencesFireAlike))
  func `a debounced and a throttled sequence have the same edges as their types by default`() async
  {
    let source = Messenger<Int>()
    let debounced = Recorder(source.subscription().debounced(for: .seconds(1), clock: clock))
    source.send(1)
    source.send(2)
    await clock.passSecond()
    #expect(await debounced.first(1) == [2])
    debounced.cancel()
    let other = Messenger<Int>()
    let throttled = Recorder(other.subscription().throttled(for: .seconds(1), clock: clock))
    other.send(1)
    #expect(await throttled.first(1) == [1])
    other.send(2)
    other.send(3)
    await clock.passSecond()
    #expect(await throttled.first(2) == [1, 3])
    throttled.cancel()
  }
}
