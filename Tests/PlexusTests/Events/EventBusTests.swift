import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Posting and observing without retention.
@Suite(.fewAtOnce) struct `An event bus` {
  @Test(.guarantee(.eventsReachTheirTypeAndScope))
  func `an event bus delivers events to streams and handlers that subscribed before the post`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    bus.post(Ping(0))
    let stream = bus.subscribe(to: Ping.self)
    let subscription = bus.subscription(to: Ping.self)
    let token = bus.observe(Ping.self) { log.append($0.number) }
    let other = bus.observe(Ping.self) { ping async in log.append(ping.number + 100) }
    for number in 1...3 { bus.post(Ping(number)) }
    #expect(await stream.first(3) == [Ping(1), Ping(2), Ping(3)])
    #expect(await subscription.first(3) == [Ping(1), Ping(2), Ping(3)])
    let all = await log.first(6)
    #expect(all.filter { $0 < 100 } == [1, 2, 3])
    #expect(all.filter { $0 > 100 } == [101, 102, 103])
    withExtendedLifetime((token, other)) {}
  }

  @Test func `an event bus has a shared instance`() async {
    struct OwnEvent: Event {}
    let stream = EventBus.shared.subscribe(to: OwnEvent.self)
    EventBus.shared.post(OwnEvent())
    #expect(await stream.first(1).count == 1)
    #expect(EventBus.shared === EventBus.shared)
  }

  @Test func `an event bus shares nothing with another bus`() async {
    let (bus, other) = (EventBus(), EventBus())
    let stream = bus.subscription(to: Ping.self)
    other.post(Ping(1))
    bus.post(Ping(2))
    #expect(await stream.first(1) == [Ping(2)])
    #expect(other.subscriberCount(for: Ping.self) == 0)
  }

  @Test(.guarantee(.eventsReachTheirTypeAndScope))
  func `an event bus delivers by exact type and exact scope`()
    async
  {
    let bus = EventBus()
    let scopes: [EventScope?] = [nil, "left", "right", EventScope(1), EventScope("1")]
    let streams = scopes.map { bus.subscription(to: Ping.self, scope: $0) }
    let notices = bus.subscription(to: Notice.self)
    for (number, scope) in scopes.enumerated() { bus.post(Ping(number), scope: scope) }
    bus.post(Notice(9))
    for scope in scopes { bus.post(Ping(10), scope: scope) }
    for (number, stream) in streams.enumerated() {
      #expect(await stream.first(2) == [Ping(number), Ping(10)])
    }
    #expect(await notices.first(1) == [Notice(9)])
  }

  @Test(.guarantee(.eventsReachTheirTypeAndScope))
  func `an event bus distinguishes scopes by value and type`() {
    enum Side: Hashable, Sendable { case left, right }
    struct Window: Hashable, Sendable { let number: Int }
    #expect(EventScope("a") == "a")
    #expect(EventScope("a") != "b")
    #expect(EventScope(1) == EventScope(1))
    #expect(EventScope(1) != EventScope(UInt8(1)))
    #expect(EventScope(Side.left) == EventScope(Side.left))
    #expect(EventScope(Side.left) != EventScope(Side.right))
    #expect(EventScope(Window(number: 1)) == EventScope(Window(number: 1)))
    #expect(EventScope(Window(number: 1)) != EventScope(Window(number: 2)))
    #expect(EventScope(EventScope(1)) != EventScope(1))
    #expect(Set([EventScope(1), EventScope(1), "a", EventScope("a")]).count == 2)
  }

  @Test func `an event bus distinguishes scopes with equal hash values`() async {
    struct Clashing: Hashable, Sendable {
      let number: Int
      func hash(into hasher: inout Hasher) {}
    }
    let bus = EventBus()
    let streams = (0..<20).map { number in
      bus.subscription(to: Ping.self, scope: EventScope(Clashing(number: number)))
    }
    for number in 0..<20 { bus.post(Ping(number), scope: EventScope(Clashing(number: number))) }
    for (number, stream) in streams.enumerated() {
      #expect(await stream.first(1) == [Ping(number)])
    }
  }

  @Test(.guarantee(.eventsAreRetainedByTheirRule))
  func `an event bus posts an existential event by its dynamic type`() async {
    let bus = EventBus()
    let stream = bus.subscription(to: Ping.self)
    let event: any Event = Ping(1)
    bus.post(event)
    #expect(await stream.first(1) == [Ping(1)])
    let kept: any Event = Notice(1, .neverClear)
    bus.post(kept)
    #expect(bus.pendingNumbers() == [1])
  }

  @MainActor @Test(.guarantee(.eventsHaveOneOrderPerScope))
  func `an event bus calls the handlers of one actor in subscription order, event by event`()
    async
  {
    let (bus, log) = (EventBus(), Log<String>())
    let tokens = ["a", "b", "c"].map { name in
      bus.observe(Ping.self) { log.append("\(name)\($0.number)") }
    }
    bus.post(Ping(1))
    bus.post(Ping(2))
    #expect(log.count == 0)
    #expect(await log.first(6) == ["a1", "b1", "c1", "a2", "b2", "c2"])
    tokens[1].cancel()
    let last = bus.observe(Ping.self) { log.append("d\($0.number)") }
    await bus.postAndWait(Ping(3))
    #expect(log.entries.suffix(3) == ["a3", "c3", "d3"])
    withExtendedLifetime((tokens, last)) {}
  }

  @Test(.guarantee(.slowHandlersDelayNoOtherScope))
  func `a slow handler delays no other type, no other scope and no other subscriber`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let slow = bus.observe(Ping.self) { _ async in try? await gate.wait() }
    let quick = bus.observe(Ping.self) { ping in log.append("quick\(ping.number)") }
    let suspending = bus.observe(Ping.self) { ping async in log.append("other\(ping.number)") }
    let stream = bus.subscription(to: Ping.self)
    let scoped = bus.observe(Ping.self, scope: "left") { ping in log.append("left\(ping.number)") }
    let notices = bus.observe(Notice.self) { notice in log.append("notice\(notice.number)") }
    bus.post(Ping(1))
    await gate.arrivals(1)
    bus.post(Ping(2))
    #expect(await stream.first(2) == [Ping(1), Ping(2)])
    await bus.postAndWait(Ping(3), scope: "left")
    await bus.postAndWait(Notice(4, .clearImmediately))
    await log.wait { $0.count == 6 }
    #expect(log.entries.filter { $0.hasPrefix("quick") } == ["quick1", "quick2"])
    #expect(log.entries.filter { $0.hasPrefix("other") } == ["other1", "other2"])
    #expect(log.entries.contains("left3"))
    #expect(log.entries.contains("notice4"))
    gate.open()
    withExtendedLifetime((slow, quick, suspending, scoped, notices)) {}
  }

  @Test
  func `a slow handler of a persistent event delays only events of its type and scope`()
    async
  {
    let (bus, gate, log) = (EventBus(), Gate(), Log<Int>())
    let slow = bus.observe(Notice.self) { _ async in
      try? await gate.wait()
      return .failed
    }
    let stream = bus.subscription(to: Notice.self)
    bus.post(Notice(1, .clearImmediately))
    bus.post(Notice(2))
    let scoped = bus.observe(Notice.self, scope: "left") { notice in log.append(notice.number) }
    await bus.postAndWait(Notice(3, .clearImmediately), scope: "left")
    #expect(log.entries == [3])
    await gate.arrivals(1)
    gate.open()
    #expect(await stream.first(2).map(\.number) == [1, 2])
    withExtendedLifetime((slow, scoped)) {}
  }

  @Test(.guarantee(.nestedPostsAreQueued))
  func `a post from inside a handler is queued behind the current event`() async {
    for rule in [nil, PersistenceRule.neverClear] {
      let (bus, log) = (EventBus(), Log<String>())
      let first = bus.observe(Notice.self) { notice in
        if notice.number == 1 { bus.post(Notice(2, rule)) }
        log.append("first\(notice.number)")
      }
      let second = bus.observe(Notice.self) { notice in log.append("second\(notice.number)") }
      let stream = bus.subscription(to: Notice.self)
      bus.post(Notice(1, rule))
      #expect(await log.first(4) == ["first1", "second1", "first2", "second2"])
      #expect(await stream.first(2).map(\.number) == [1, 2])
      withExtendedLifetime((first, second)) {}
    }
  }

  @Test func `an event bus counts streams and handlers of exactly one type and scope`() {
    let bus = EventBus()
    let stream = bus.subscription(to: Ping.self)
    var tokens = (0..<3).map { _ in bus.observe(Ping.self) { _ in } }
    bus.observe(id: 1, Ping.self, scope: "left") { _ in }
    #expect(bus.subscriberCount(for: Ping.self) == 4)
    #expect(bus.subscriberCount(for: Ping.self, scope: "left") == 1)
    #expect(bus.subscriberCount(for: Ping.self, scope: "right") == 0)
    #expect(bus.subscriberCount(for: Notice.self) == 0)
    tokens.removeLast()
    #expect(bus.subscriberCount(for: Ping.self) == 3)
    tokens = []
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    withExtendedLifetime(stream) {}
  }

  @Test(.guarantee(.postAndWaitReturnsTheOutcome))
  func `an event without subscribers is discarded unless it is persistent`() async {
    let bus = EventBus()
    #expect(
      await bus.postAndWait(Ping(1)) == PostOutcome.of(notified: 0, handled: 0, isPersisted: false)
    )
    for scope in [nil, EventScope("left")] {
      let outcome = await bus.postAndWait(Notice(1, .clearImmediately), scope: scope)
      #expect(outcome == PostOutcome.of(notified: 0, handled: 0, isPersisted: true))
    }
  }

  @Test(arguments: 1...3)
  func `streams apply their buffering policy`(limit: Int) async {
    let bus = EventBus()
    let newest = bus.subscription(to: Ping.self, bufferingPolicy: .bufferingNewest(limit))
    let oldest = bus.subscribe(to: Ping.self, bufferingPolicy: .bufferingOldest(limit))
    for number in 1...9 { bus.post(Ping(number)) }
    #expect(await newest.first(limit).map(\.number) == Array(10 - limit...9))
    #expect(await oldest.first(limit).map(\.number) == Array(1...limit))
    #expect(newest.droppedCount == 9 - limit)
  }

  @Test func `an event bus registers a subscriber while another with the same hash value leaves`()
    async
  {
    struct Clashing: Hashable, Sendable {
      let number: Int
      var onCompare: @Sendable () -> Void = {}
      static func == (left: Self, right: Self) -> Bool {
        left.onCompare()
        right.onCompare()
        return left.number == right.number
      }
      func hash(into hasher: inout Hasher) {}
    }
    let bus = EventBus()
    let first = Guarded<Subscription<Ping>?>(
      bus.subscription(to: Ping.self, scope: EventScope(Clashing(number: 1)))
    )
    let looks = Guarded(0)
    let scope = EventScope(
      Clashing(number: 2) {
        // The first look-up finds no channel; the second precedes the creation of one.
        let isSecond = looks.withLock { looks in
          looks += 1
          return looks == 2
        }
        guard isSecond else { return }
        let leaving = first.withLock { $0.take() }
        withExtendedLifetime(leaving) {}
      }
    )
    let second = bus.subscription(to: Ping.self, scope: scope)
    #expect(looks.withLock { $0 } >= 2)
    let plain = EventScope(Clashing(number: 2))
    #expect(bus.subscriberCount(for: Ping.self, scope: plain) == 1)
    bus.post(Ping(1), scope: plain)
    #expect(await second.first(1) == [Ping(1)])
  }
}
