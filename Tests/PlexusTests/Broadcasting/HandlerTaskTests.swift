import Plexus
import TestSupport
import Testing

/// How often the actor of a handler is asked to do something.
@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `What waits for a handler` {
  @Test func `rule 0.10: is one job for its actor, however many messages there are`() async {
    let host = SteppedHost()
    let messenger = Messenger<Int>()
    let (first, second) = (Log<Int>(), Log<Int>())
    let tokens = [
      await host.observe(messenger, .unbounded, first),
      await host.observe(messenger, .unbounded, second),
    ]
    for number in 0..<1000 { messenger.send(number) }
    // The one that woke up, and one more if it had not gone to sleep before.
    await host.executor.step(atMost: 2)
    #expect(first.entries == Array(0..<1000))
    #expect(second.entries == Array(0..<1000))
    withExtendedLifetime(tokens) {}
  }
}
