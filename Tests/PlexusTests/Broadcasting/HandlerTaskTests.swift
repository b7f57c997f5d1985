import Plexus
import TestSupport
import Testing

/// The number of jobs that the actor of a handler receives.
@Suite(.fewAtOnce) struct `What waits for a handler` {
  @Test(.guarantee(.sendingStartsNoTask))
  func `what waits for a handler is one job for its actor, however many messages there are`() async
  {
    let host = SteppedHost()
    let messenger = Messenger<Int>()
    let (first, second) = (Log<Int>(), Log<Int>())
    let tokens = [
      await host.observe(messenger, .unbounded, first),
      await host.observe(messenger, .unbounded, second),
    ]
    for number in 0..<1000 { messenger.send(number) }
    // They yield the actor after a millisecond, but not for each message.
    var jobs = 0
    while second.count < 1000 {
      await host.executor.step(atMost: 1)
      jobs += 1
    }
    #expect(jobs < 500)
    #expect(first.entries == Array(0..<1000))
    #expect(second.entries == Array(0..<1000))
    withExtendedLifetime(tokens) {}
  }

  @Test(.guarantee(.handlersYieldTheirActor), arguments: [true, false])
  func `what waits for a handler lets others have the actor after about a millisecond of calls`(
    isAsync: Bool
  ) async {
    let (messenger, host, log) = (Messenger<Int>(), SteppedHost(), Log<Int>())
    let body: @Sendable (Int) -> Void = { number in
      log.append(number)
      // It takes at least a millisecond, however fast the machine is.
      let end = ContinuousClock.now + .milliseconds(1)
      while ContinuousClock.now < end {}
    }
    let token = await host.observe(messenger, isAsync: isAsync, body)
    for number in 0..<40 { messenger.send(number) }
    let most = await host.executor.mostEntriesOfAJob(in: log, upTo: 40)
    #expect(most <= 5)
    #expect(log.entries == Array(0..<40))
    withExtendedLifetime(token) {}
  }

  @MainActor @Test(.guarantee(.handlersYieldTheirActor))
  func `what waits for a handler keeps the order of handlers and messages when it yields`() async {
    let (bus, log) = (EventBus(), Log<String>())
    let tokens = "abc".map { name in
      bus.observe(Ping.self) { @MainActor ping in
        log.append("\(name)\(ping.number)")
        let end = ContinuousClock.now + .milliseconds(1)
        while ContinuousClock.now < end {}
      }
    }
    for number in 0..<10 { bus.post(Ping(number)) }
    // A handler that is removed in between is not called again, and one that is added gets later messages.
    await log.first(10)
    tokens[1].cancel()
    let count = log.count
    let late = bus.observe(Ping.self) { @MainActor ping in log.append("d\(ping.number)") }
    let outcome = await bus.postAndWait(Ping(10))
    #expect(outcome.notified == 3)
    let expected = (0..<10).flatMap { number in "abc".map { "\($0)\(number)" } }
    #expect(Array(log.entries[..<count]) == Array(expected[..<count]))
    #expect(log.entries[count...].filter { $0.hasPrefix("b") }.isEmpty)
    #expect(
      log.entries.filter { !$0.hasPrefix("b") } == expected.filter { !$0.hasPrefix("b") } + [
        "a10", "c10", "d10",
      ]
    )
    withExtendedLifetime((tokens, late)) {}
  }
}
