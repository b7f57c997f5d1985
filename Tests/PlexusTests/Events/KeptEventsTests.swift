import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The retention and replay of events.
@Suite(.fewAtOnce) struct `Kept events` {
  @Test(.guarantee(.retentionHasLimits), arguments: PersistenceRule.allCases)
  func `kept events are bounded by a limit, which drops the oldest`(rule: PersistenceRule) async {
    let bus = EventBus()
    for number in 1...5 { bus.post(Notice(number, rule, limit: 3)) }
    #expect(bus.pendingNumbers() == [3, 4, 5])
    bus.post(Notice(6, rule, limit: 1))
    #expect(bus.pendingNumbers() == [6])
    bus.post(Notice(7, rule))
    #expect(bus.pendingNumbers() == [6, 7])
  }

  @Test(arguments: [0, -1, .min])
  func `kept events with a limit of zero or less are delivered, but not retained`(limit: Int) async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    bus.post(Notice(0, .neverClear))
    let token = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .failed
    }
    let outcome = await bus.postAndWait(Notice(1, .neverClear, limit: limit))
    #expect(outcome == PostOutcome.of(notified: 1, handled: 0, isPersisted: false))
    #expect(log.entries == [0, 1])
    #expect(bus.pendingNumbers() == [])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.retentionHasLimits)) func `kept events live for exactly their time to live`()
    async
  {
    let clock = ManualClock()
    let bus = EventBus(clock: clock)
    bus.post(Notice(1, .neverClear, timeToLive: .seconds(60)))
    bus.post(Notice(2, .neverClear, timeToLive: .seconds(30)))
    bus.post(Notice(3, .neverClear))
    clock.advance(by: .seconds(30) - .nanoseconds(1))
    #expect(bus.pendingNumbers() == [1, 2, 3])
    clock.advance(by: .nanoseconds(1))
    #expect(bus.pendingNumbers() == [1, 3])
    clock.advance(by: .seconds(30))
    let stream = bus.subscription(to: Notice.self)
    bus.post(Notice(4))
    #expect(await stream.first(2).map(\.number) == [3, 4])
    #expect(bus.pendingNumbers() == [3])
  }

  @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min)])
  func `kept events with a time to live of zero or less are delivered, but not retained`(
    time: Duration
  ) async {
    let bus = EventBus(clock: ManualClock())
    let stream = bus.subscription(to: Notice.self)
    let outcome = await bus.postAndWait(Notice(1, .neverClear, timeToLive: time))
    #expect(outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: false))
    #expect(await stream.first(1).map(\.number) == [1])
    #expect(bus.pendingNumbers() == [])
  }

  @Test func `kept events with the longest time to live stay`() {
    let clock = ManualClock()
    let bus = EventBus(clock: clock)
    clock.advance(by: .seconds(1_000_000))
    bus.post(Notice(1, .neverClear, timeToLive: .seconds(Int64.max)))
    clock.advance(by: .seconds(4_000_000_000))
    #expect(bus.pendingNumbers() == [1])
  }

  @Test func `kept events do not count towards a limit once they have expired`() {
    let clock = ManualClock()
    let bus = EventBus(clock: clock)
    bus.post(Notice(1, .neverClear))
    bus.post(Notice(2, .neverClear, timeToLive: .seconds(1)))
    clock.advance(by: .seconds(1))
    bus.post(Notice(3, .neverClear, limit: 2))
    #expect(bus.pendingNumbers() == [1, 3])
  }

  @Test(.guarantee(.postAndWaitReturnsTheOutcome))
  func `kept events that have expired when a post ends are not persisted`() async {
    let clock = ManualClock()
    let bus = EventBus(clock: clock)
    let token = bus.observe(Notice.self) { _ in
      clock.advance(by: .seconds(1))
      return .failed
    }
    let outcome = await bus.postAndWait(Notice(1, .clearImmediately, timeToLive: .seconds(1)))
    #expect(outcome == PostOutcome.of(notified: 1, handled: 0, isPersisted: false))
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.retentionHasLimits))
  func `kept events are retained separately for each type and scope`() {
    struct Other: PersistentEvent {
      var persistenceRule: PersistenceRule { .neverClear }
    }
    let bus = EventBus()
    bus.post(Notice(1, .neverClear))
    bus.post(Notice(2, .neverClear, limit: 1), scope: "left")
    bus.post(Notice(3, .neverClear), scope: "right")
    bus.post(Other())
    #expect(bus.pendingNumbers() == [1])
    #expect(bus.pendingNumbers(scope: "left") == [2])
    #expect(bus.pendingNumbers(scope: "right") == [3])
    bus.removePendingEvents(of: Notice.self, scope: "left")
    #expect(bus.pendingNumbers() == [1])
    #expect(bus.pendingNumbers(scope: "left") == [])
    bus.removePendingEvents(of: Notice.self)
    #expect(bus.pendingNumbers() == [])
    #expect(bus.pendingNumbers(scope: "right") == [3])
    #expect(bus.pendingEvents(of: Other.self).count == 1)
  }

  @Test(.guarantee(.eventsAreRetainedBeforeDelivery))
  func `kept events are retained before they are delivered`() async {
    let (bus, log) = (EventBus(), Log<[Int]>())
    let token = bus.observe(Notice.self) { _ in log.append(bus.pendingNumbers()) }
    await bus.postAndWait(Notice(1, .clearImmediately))
    #expect(log.entries == [[1]])
    #expect(bus.pendingNumbers() == [])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.pendingEventsCanBeRemoved))
  func `kept events that are removed explicitly still reach their current subscribers`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let first = bus.observe(Notice.self) { notice async in
      try? await gate.wait()
      return .failed
    }
    let second = bus.observe(Notice.self) { notice in
      log.append("second\(notice.number)")
      return .failed
    }
    let waiting = Task { await bus.postAndWait(Notice(1, .clearImmediately)) }
    await gate.arrivals(1)
    bus.post(Notice(2, .neverClear))
    #expect(bus.pendingNumbers() == [1, 2])
    bus.removePendingEvents(of: Notice.self)
    #expect(bus.pendingNumbers() == [])
    let late = bus.observe(Notice.self) { notice in
      log.append("late\(notice.number)")
      return .failed
    }
    gate.open()
    #expect(await waiting.value == PostOutcome.of(notified: 2, handled: 0, isPersisted: false))
    await bus.postAndWait(Notice(3))
    #expect(log.entries == ["second1", "second2", "second3", "late3"])
    withExtendedLifetime((first, second, late)) {}
  }

  @Test(.guarantee(.eventsAreRetainedBeforeDelivery), arguments: [true, false], [true, false])
  func `kept events reach a subscriber that is added during a post at most once`(
    succeeds: Bool,
    isStream: Bool
  ) async {
    for rule in PersistenceRule.allCases {
      let (bus, gate, log) = (EventBus(), Gate(), Log<Int>())
      let first = bus.observe(Notice.self) { _ async in
        try? await gate.wait()
        return succeeds ? .handledSuccessfully : .failed
      }
      let waiting = Task { await bus.postAndWait(Notice(1, rule)) }
      await gate.arrivals(1)
      let expected = succeeds && rule != .neverClear ? [2] : [1, 2]
      if isStream {
        let stream = bus.subscription(to: Notice.self)
        gate.open()
        _ = await waiting.value
        bus.post(Notice(2))
        #expect(await stream.first(expected.count).map(\.number) == expected)
      } else {
        let late = bus.observe(Notice.self) { notice in
          log.append(notice.number)
          return .failed
        }
        gate.open()
        _ = await waiting.value
        await bus.postAndWait(Notice(2))
        #expect(log.entries == expected)
        late.cancel()
      }
      first.cancel()
    }
  }

  @Test func `kept events delay later events for the subscribers at the time of the post`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    func observe(_ name: String) -> ObservationToken {
      bus.observe(Notice.self) { notice in
        log.append("\(name)\(notice.number)")
        return .failed
      }
    }
    let slow = bus.observe(Notice.self) { _ async in try? await gate.wait() }
    let early = observe("early")
    bus.post(Notice(1, .clearImmediately))
    bus.post(Notice(2))
    await gate.arrivals(1)
    let late = observe("late")
    let suspending = bus.observe(Notice.self) { notice async in
      log.append("suspending\(notice.number)")
    }
    let stream = bus.subscription(to: Notice.self)
    gate.open()
    await bus.postAndWait(Notice(3))
    #expect(log.entries.sorted() == ["early2", "early3", "late3", "suspending3"])
    #expect(await stream.first(1).map(\.number) == [3])
    withExtendedLifetime((slow, early, late, suspending)) {}
  }

  @Test(.guarantee(.unhandledEventsAreRetained))
  func `kept events go to one late subscriber after the other, until one succeeds`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    for number in 1...3 { bus.post(Notice(number, .clearImmediately)) }
    let first = bus.observe(Notice.self) { notice async in
      log.append("first\(notice.number)")
      try? await gate.wait()
      return notice.number == 2 ? .handledSuccessfully : .failed
    }
    await gate.arrivals(1)
    let second = bus.observe(Notice.self) { notice in
      log.append("second\(notice.number)")
      return notice.number == 1 ? .handledSuccessfully : .failed
    }
    let third = bus.subscription(to: Notice.self)
    #expect(log.entries == ["first1"])
    gate.open()
    await bus.settle()
    #expect(log.entries.prefix(5) == ["first1", "first2", "first3", "second1", "second3"])
    #expect(bus.pendingNumbers() == [])
    #expect(await third.first(1).map(\.number) == [3])
    withExtendedLifetime((first, second)) {}
  }

  @Test func `kept events are received before all events posted after the subscription`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<Int>())
    for number in 1...3 { bus.post(Notice(number, .neverClear)) }
    let late = bus.observe(Notice.self) { notice async in
      log.append(notice.number)
      try? await gate.wait()
    }
    await gate.arrivals(1)
    for number in 4...6 { bus.post(Notice(number, number == 5 ? nil : .neverClear)) }
    gate.open()
    await bus.settle()
    #expect(log.entries == [1, 2, 3, 4, 5, 6, -1])
    withExtendedLifetime(late) {}
  }

  @Test func `kept events whose replay is in progress are released with the handler`() async {
    let (bus, gate) = (EventBus(), Gate())
    bus.post(Notice(1, .clearImmediately))
    bus.post(Notice(2, .clearImmediately))
    let late = bus.observe(Notice.self) { _ async throws in try await gate.wait() }
    await gate.arrivals(1)
    late.cancel()
    await bus.settle()
    #expect(bus.pendingNumbers() == [1, 2])
    let stream = bus.subscription(to: Notice.self)
    #expect(await stream.first(2).map(\.number) == [1, 2])
  }

  @Test(.guarantee(.retentionHasLimits)) func `kept events grow without a limit`() {
    let bus = EventBus()
    for number in 0..<10_000 { bus.post(Notice(number, .neverClear)) }
    #expect(bus.pendingNumbers() == Array(0..<10_000))
  }
}
