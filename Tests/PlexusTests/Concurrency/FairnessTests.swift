import Foundation
import Plexus
import TestSupport
import Testing

/// The work that a call, a handler or a loop does for others before it yields.
@Suite(.fewAtOnce) struct `Work for others` {
  /// The calls that process what other threads have added meanwhile.
  enum Call: CaseIterable {
    case dispatch, consume, send

    /// Returns a closure that adds a number, whose processing calls the body.
    func make(_ body: @escaping @Sendable (Int) -> Void) -> @Sendable (Int) -> Void {
      switch self {
      case .dispatch:
        let store = Store<Int, Int>(0) { state, action in
          body(action)
          state = action
        }
        return { store.dispatch($0) }
      case .consume:
        let consumer = StateConsumer<Int>()
        consumer.add { (state: Int) in
          body(state)
          return state
        } _: { _, _ in
        }
        return { consumer.consume($0) }
      case .send:
        let messenger = Messenger<Int>()
        let derived = messenger.map { (number: Int) in
          body(number)
          return number
        }
        let subscription = derived.subscription(bufferingPolicy: .bufferingNewest(1))
        return { number in withExtendedLifetime(subscription) { messenger.send(number) } }
      }
    }
  }

  /// Makes a call, during which another thread adds further numbers.
  ///
  /// - Returns: The number of further numbers that the call has processed before it returned, and an object that is to
  ///   be kept until all of them have been processed.
  private func count(
    _ call: Call,
    _ others: Int,
    into log: Log<Int>,
    _ work: @escaping @Sendable () -> Void = {}
  ) -> (processed: Int, source: any Sendable) {
    let caller = ObjectIdentifier(Thread.current)
    let (processed, add) = (Guarded(0), Guarded<(@Sendable (Int) -> Void)?>(nil))
    let send = call.make { number in
      if number == 0 {
        let add = add.withLock { $0.take() }
        onOwnThread { for other in 1...others { add?(other) } }
      } else {
        if ObjectIdentifier(Thread.current) == caller { processed.withLock { $0 += 1 } }
        work()
      }
      log.append(number)
    }
    add.withLock { $0 = send }
    send(0)
    return (processed.withLock { $0 }, send)
  }

  @Test(.guarantee(.callsLeaveForeignActions), arguments: [Call.dispatch, .consume])
  func `work for others is limited in a call, and all of it is done in order`(call: Call) async {
    let log = Log<Int>()
    let (processed, source) = count(call, 5_000, into: log)
    #expect(processed >= 1)
    #expect(processed <= 1_024)
    #expect(await log.first(5_001) == Array(0...5_000))
    withExtendedLifetime(source) {}
  }

  @Test(.guarantee(.callsLeaveForeignActions), arguments: Call.allCases)
  func `work for others takes about a millisecond of a call`(call: Call) async {
    let log = Log<Int>()
    let (processed, source) = count(call, 30, into: log, busyForAMillisecond)
    #expect(processed <= 4)
    #expect(await log.first(31) == Array(0...30))
    withExtendedLifetime(source) {}
  }

  @Test(.guarantee(.loopsYieldTheirActor))
  func `work for others is not kept from an actor by handlers of a bus`()
    async
  {
    let (bus, host, log) = (EventBus(), SteppedHost(), Log<Int>())
    let token = await host.observe(bus) { notice in
      log.append(notice.number)
      busyForAMillisecond()
      return .handledSuccessfully
    }
    for number in 0..<40 { bus.post(Notice(number)) }
    let most = await host.executor.mostEntriesOfAJob(in: log, upTo: 40)
    #expect(most <= 5)
    #expect(log.entries == Array(0..<40))
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.loopsYieldTheirActor), arguments: ["messenger", "bus", "current value"])
  func `work for others is not kept from an actor by a loop`(source: String) async {
    let (messenger, bus, value) = (Messenger<Int>(), EventBus(), CurrentValue(0))
    let (loop, log) = (Loop(), Log<Void>())
    var task: Task<Void, Never>
    switch source {
    case "messenger":
      let subscription = messenger.subscription()
      task = Task { await loop.run(subscription, into: log) }
    case "bus":
      let subscription = bus.subscription(to: Ping.self)
      task = Task { await loop.run(subscription, into: log) }
    default:
      let subscription = value.subscription(bufferingPolicy: .unbounded)
      task = Task { await loop.run(subscription, into: log) }
    }
    for number in 1...60 {
      messenger.send(number)
      bus.post(Ping(number))
      value.value = number
    }
    let most = await loop.executor.mostEntriesOfAJob(in: log, upTo: 60)
    // The first 16 elements are not interrupted; afterwards the clock, which ticks every 10 ms at the latest, is read
    // for each of them.
    #expect(most <= 17)
    task.cancel()
    await loop.executor.step()
    await task.value
  }
}

/// An actor that runs a loop, job by job.
private actor Loop {
  nonisolated let executor = SteppedExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  func run<Element>(_ subscription: Subscription<Element>, into log: Log<Void>) async {
    for await _ in subscription {
      log.append(())
      busyForAMillisecond()
    }
  }
}

/// Takes at least a millisecond, however fast the machine is.
private func busyForAMillisecond() {
  let end = ContinuousClock.now + .milliseconds(1)
  while ContinuousClock.now < end {}
}
