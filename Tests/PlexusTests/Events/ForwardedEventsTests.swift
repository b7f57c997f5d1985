import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Handlers on a broadcaster of a user that forwards the subscriptions of an event bus.
@Suite(.fewAtOnce) struct `A forwarded subscription to events` {
  /// The notices of a bus.
  struct Notices: Broadcaster {
    let bus: EventBus
    var onSubscription: @Sendable () -> Void = {}

    var subscriberCount: Int { bus.subscriberCount(for: Notice.self) }

    func subscription(bufferingPolicy: BufferingPolicy<Notice>) -> Subscription<Notice> {
      let subscription = bus.subscription(to: Notice.self, bufferingPolicy: bufferingPolicy)
      onSubscription()
      return subscription
    }
  }

  @MainActor
  @Test(.guarantee(.forwardedEventsCallHandlersAlike), arguments: [nil] + PersistenceRule.allCases)
  func `a forwarded subscription calls its handlers in subscription order, event by event`(
    rule: PersistenceRule?
  ) async {
    let (bus, log) = (EventBus(), Log<String>())
    let (first, second) = (Notices(bus: bus), Notices(bus: bus))
    let tokens = [
      bus.observe(Notice.self) { (notice: Notice) in
        log.append("a\(notice.number)")
        return .failed
      },
      first.observe { log.append("b\($0.number)") },
      second.observe { log.append("c\($0.number)") },
      bus.observe(Notice.self) { (notice: Notice) in log.append("d\(notice.number)") },
      first.observe { log.append("e\($0.number)") },
    ]
    #expect(bus.subscriberCount(for: Notice.self) == 5)
    for number in 0..<20 { bus.post(Notice(number, rule)) }
    let names = rule == .clearImmediately ? "ab" : "abcde"
    let expected = (0..<20).flatMap { number in names.map { "\($0)\(number)" } }
    #expect(await log.first(expected.count) == expected)
    await bus.settle()
    #expect(bus.pendingNumbers() == (rule == .neverClear ? Array(0..<20) : []))
    for token in tokens { token.cancel() }
    #expect(bus.subscriberCount(for: Notice.self) == 0)
  }

  @MainActor
  @Test(.guarantee(.forwardedEventsCallHandlersAlike), arguments: [false, true])
  func `a forwarder does not count a released owner's handler, and keeps events posted for it`(
    isAsync: Bool
  ) async {
    let bus = EventBus()
    let notices = Notices(bus: bus)
    var owner: Parcel? = Parcel(0)
    if let owner {
      if isAsync {
        notices.observe(as: owner) { _, _ async in }
      } else {
        notices.observe(as: owner) { _, _ in }
      }
    }
    #expect(bus.subscriberCount(for: Notice.self) == 1)
    owner = nil
    let outcome = await bus.postAndWait(Notice(1, .clearImmediately))
    #expect(outcome.notified == 0)
    #expect(outcome.isPersisted)
    #expect(bus.subscriberCount(for: Notice.self) == 0)
    #expect(bus.pendingNumbers() == [1])
    withExtendedLifetime(owner) {}
  }

  @MainActor
  @Test(.guarantee(.forwardedEventsCallHandlersAlike), arguments: [nil] + PersistenceRule.allCases)
  func `a forwarded subscription to events counts a handler only once it has run`(
    rule: PersistenceRule?
  ) async {
    let (bus, log, gate) = (EventBus(), Log<String>(), Gate())
    let notices = Notices(bus: bus)
    let tokens = [
      notices.observe { (_: Notice) async in
        try? await gate.wait()
        log.append("async")
      },
      notices.observe { (_: Notice) in log.append("sync") },
    ]
    let post = Task {
      let outcome = await bus.postAndWait(Notice(1, rule))
      log.append("posted")
      return outcome
    }
    await everybodyHasBegun()
    gate.open()
    let outcome = await post.value
    let count = rule == .clearImmediately ? 1 : 2
    #expect(outcome.notified == count)
    #expect(outcome.handled == count)
    #expect(outcome.isPersisted == (rule == .neverClear))
    #expect(log.entries.last == "posted")
    #expect(log.count == count + 1)
    withExtendedLifetime(tokens) {}
  }

  @MainActor
  @Test(.guarantee(.forwardedEventsCallHandlersAlike))
  func `a forwarded subscription to events keeps a retained event until a handler has handled it`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    for number in 1...3 { bus.post(Notice(number, .clearImmediately)) }
    bus.post(Notice(4, .neverClear))
    var owner: Parcel? = Parcel(0)
    if let owner { Notices(bus: bus).observe(as: owner) { _, notice in log.append(notice.number) } }
    #expect(bus.pendingNumbers() == [1, 2, 3, 4])
    owner = nil
    await bus.settle()
    #expect(log.entries == [])
    #expect(bus.pendingNumbers() == [1, 2, 3, 4])
    let token = Notices(bus: bus).observe { (notice: Notice) in log.append(notice.number) }
    #expect(await log.first(4) == [1, 2, 3, 4])
    await bus.settle()
    #expect(bus.pendingNumbers() == [4])
    #expect(log.entries == [1, 2, 3, 4, -1])
    withExtendedLifetime((token, owner)) {}
  }

  @Test(.guarantee(.forwardedEventsCallHandlersAlike))
  func `a forwarded subscription gives its handlers all retained events, whatever its limit`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    for number in 1...3 { bus.post(Notice(number, .clearImmediately)) }
    let token = Notices(bus: bus).observe(bufferingPolicy: .bufferingOldest(1)) {
      (notice: Notice) in log.append(notice.number)
    }
    #expect(await log.first(3) == [1, 2, 3])
    await bus.settle()
    #expect(bus.pendingNumbers() == [])
    token.cancel()
  }

  /// A broadcaster that has one subscription to give.
  struct Held: Broadcaster {
    let subscription: Subscription<Notice>
    var subscriberCount: Int { 1 }

    func subscription(bufferingPolicy: BufferingPolicy<Notice>) -> Subscription<Notice> {
      subscription
    }
  }

  @MainActor
  @Test(.guarantee(.forwardedEventsCallHandlersAlike))
  func `a forwarded subscription retains nothing instead of an event that was read before`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    for number in 1...2 { bus.post(Notice(number, .clearImmediately)) }
    let subscription = bus.subscription(to: Notice.self)
    var iterator = subscription.makeAsyncIterator()
    #expect(await iterator.next()?.number == 1)
    bus.post(Notice(3))
    var owner: Parcel? = Parcel(0)
    if let owner {
      Held(subscription: subscription).observe(as: owner) { _, notice in log.append(notice.number) }
    }
    owner = nil
    await bus.settle()
    #expect(bus.pendingNumbers() == [])
    withExtendedLifetime(owner) {}
  }

  @Test(
    .guarantee(.forwardedEventsCallHandlersAlike),
    arguments: [Policy.unbounded, .newest(2), .newest(100), .oldest(2)]
  )
  func `a forwarded subscription gives its handlers what was posted while it subscribed`(
    policy: Policy
  ) async {
    for isAsync in [false, true] {
      let (bus, log) = (EventBus(), Log<Int>())
      let notices = Notices(bus: bus) { for number in 0..<5 { bus.post(Notice(number)) } }
      let token =
        isAsync
        ? notices.observe(bufferingPolicy: policy()) { (notice: Notice) async in
          log.append(notice.number)
        }
        : notices.observe(bufferingPolicy: policy()) { (notice: Notice) in
          log.append(notice.number)
        }
      #expect(notices.subscriberCount == 1)
      let expected =
        switch policy {
        case .unbounded, .newest(100): [0, 1, 2, 3, 4]
        case .newest: [3, 4]
        case .oldest: [0, 1]
        }
      await log.first(expected.count)
      await bus.postAndWait(Notice(5))
      #expect(log.entries == expected + [5])
      token.cancel()
      #expect(notices.subscriberCount == 0)
    }
  }

  @MainActor
  @Test(arguments: [nil] + PersistenceRule.allCases)
  func `handlers on one actor get once what was posted while their forwarder subscribed`(
    rule: PersistenceRule?
  ) async {
    let (bus, others, log) = (EventBus(), Log<Int>(), Log<Int>())
    let notices = Notices(bus: bus) { for number in 0..<4 { bus.post(Notice(number, rule)) } }
    let tokens = [
      bus.observe(Notice.self) { (notice: Notice) in
        others.append(notice.number)
        return .failed
      },
      notices.observe { log.append($0.number) },
    ]
    #expect(await bus.postAndWait(Notice(4, rule)).notified == 2)
    #expect(others.entries == [0, 1, 2, 3, 4])
    #expect(log.entries == [0, 1, 2, 3, 4])
    withExtendedLifetime(tokens) {}
  }

  @MainActor
  @Test
  func `a forwarded subscription has its place in subscription order from when it subscribed`()
    async
  {
    let (bus, log) = (EventBus(), Log<String>())
    let tokens = Log<ObservationToken>()
    let notices = Notices(bus: bus) {
      tokens.append(bus.observe(Notice.self) { @MainActor _ in log.append("inner") })
    }
    let token = notices.observe { (_: Notice) in log.append("outer") }
    for number in 0..<3 { bus.post(Notice(number)) }
    #expect(await log.first(6) == ["outer", "inner", "outer", "inner", "outer", "inner"])
    withExtendedLifetime((token, tokens)) {}
  }

  @Test func `a forwarded subscription to events detects a handler that waits for itself`() async {
    let (bus, log) = (EventBus(), Log<PostOutcome>())
    let token = Notices(bus: bus).observe { (notice: Notice) async in
      if notice.number == 0 { log.append(await bus.postAndWait(Notice(1))) }
    }
    await bus.postAndWait(Notice(0))
    #expect(log.entries.map(\.isDeferred) == [true])
    withExtendedLifetime(token) {}
  }

  @Test func `a view of a forwarded subscription does not count the handler of a released owner`()
    async
  {
    let bus = EventBus()
    var owner: Parcel? = Parcel(0)
    if let owner { Notices(bus: bus).map(\.number).observe(as: owner) { _, _ in } }
    #expect(bus.subscriberCount(for: Notice.self) == 1)
    owner = nil
    #expect(bus.subscriberCount(for: Notice.self) == 0)
    withExtendedLifetime(owner) {}
  }

  @Test(arguments: [false, true])
  func `a forwarded subscription frees its handlers at the end of the bus, after the last event`(
    isAsync: Bool
  ) async {
    let (census, log, bag) = (Census(), Log<Int>(), ObservationBag())
    var bus: EventBus? = EventBus()
    if let bus {
      let parcel = census.parcel()
      let body: @Sendable (Notice) -> Void = { notice in
        withExtendedLifetime(parcel) { log.append(notice.number) }
      }
      let notices = Notices(bus: bus)
      let token =
        isAsync
        ? notices.observe { (notice: Notice) async in body(notice) }
        : notices.observe { (notice: Notice) in body(notice) }
      bag.insert(token)
      for number in 0..<10 { bus.post(Notice(number)) }
      await log.first(1)
      for number in 10..<20 { bus.post(Notice(number)) }
    }
    bus = nil
    await census.falls(to: 0)
    #expect(log.entries == Array(0..<20))
    #expect(bag.count == 0)
    withExtendedLifetime(bus) {}
  }
}
