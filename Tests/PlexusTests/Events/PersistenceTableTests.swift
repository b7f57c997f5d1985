import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The table of the effects of each rule on a persistent event, cell by cell.
@Suite(.fewAtOnce) struct `The table of persistence` {
  /// The way in which an event is posted and handled.
  struct Setting: Sendable, CustomTestStringConvertible {
    let way: Way
    let scope: EventScope?
    let isGeneric: Bool

    static let all = Way.allCases.flatMap { way in
      [nil, EventScope("left"), EventScope(7)].flatMap { scope in
        [false, true].map { Setting(way: way, scope: scope, isGeneric: $0) }
      }
    }

    var testDescription: String {
      "\(way), \(scope == nil ? "no scope" : "a scope"), \(isGeneric ? "generic" : "direct")"
    }

    func post(_ notice: Notice, on bus: EventBus) async -> PostOutcome {
      isGeneric
        ? await bus.postGenerically(notice, scope: scope)
        : await bus.postAndWait(notice, scope: scope)
    }
  }

  /// Posts to s0, which fails, and s1 and s2, which succeed; returns the subscribers that received the event.
  private func live(
    _ rule: PersistenceRule?,
    _ setting: Setting
  ) async -> (bus: EventBus, seen: [String], outcome: PostOutcome) {
    let (bus, log) = (EventBus(), Log<String>())
    let tokens = [false, true, true].enumerated().map { index, succeeds in
      setting.way.observe(bus, "s\(index):", into: log, scope: setting.scope, succeeds: succeeds)
    }
    let outcome = await setting.post(Notice(1, rule), on: bus)
    withExtendedLifetime(tokens) {}
    return (bus, log.entries, outcome)
  }

  /// Returns the events that a late handler and a late stream receive.
  private func late(_ bus: EventBus, _ setting: Setting) async -> [String] {
    let log = Log<String>()
    let token = setting.way.observe(bus, "late:", into: log, scope: setting.scope, succeeds: true)
    await bus.settle(scope: setting.scope)
    token.cancel()
    return log.entries
  }

  @Test(.guarantee(.plainEventsReachAllSubscribers), arguments: Setting.all)
  func `a plain event reaches every current subscriber and is not retained for late ones`(
    setting: Setting
  ) async {
    let (bus, seen, outcome) = await live(nil, setting)
    // Handlers that suspend delay no other handler, and have no order among each other.
    #expect(seen.sorted() == ["s0:1", "s1:1", "s2:1"])
    #expect(outcome == PostOutcome.of(notified: 3, handled: 2, isPersisted: false))
    #expect(bus.pendingNumbers(scope: setting.scope) == [])
    #expect(await late(bus, setting) == [])
  }

  @Test(.guarantee(.clearImmediatelyStopsAtTheFirstSuccess), arguments: Setting.all)
  func `an event with clearImmediately stops at the first success and is not retained`(
    setting: Setting
  ) async {
    let (bus, seen, outcome) = await live(.clearImmediately, setting)
    #expect(seen == ["s0:1", "s1:1"])
    #expect(outcome == PostOutcome.of(notified: 2, handled: 1, isPersisted: false))
    #expect(bus.pendingNumbers(scope: setting.scope) == [])
    #expect(await late(bus, setting) == [])
  }

  @Test(.guarantee(.clearAfterAllReachesEachSubscriber), arguments: Setting.all)
  func `an event with clearAfterAll reaches every current subscriber and is not retained`(
    setting: Setting
  ) async {
    let (bus, seen, outcome) = await live(.clearAfterAllCurrentSubscribersNotified, setting)
    #expect(seen == ["s0:1", "s1:1", "s2:1"])
    #expect(outcome == PostOutcome.of(notified: 3, handled: 2, isPersisted: false))
    #expect(bus.pendingNumbers(scope: setting.scope) == [])
    #expect(await late(bus, setting) == [])
  }

  @Test(.guarantee(.neverClearRetainsRegardless), arguments: Setting.all)
  func `an event with neverClear reaches every subscriber, is retained and reaches late ones`(
    setting: Setting
  ) async {
    let (bus, seen, outcome) = await live(.neverClear, setting)
    #expect(seen == ["s0:1", "s1:1", "s2:1"])
    #expect(outcome == PostOutcome.of(notified: 3, handled: 2, isPersisted: true))
    #expect(bus.pendingNumbers(scope: setting.scope) == [1])
    #expect(await late(bus, setting) == ["late:1"])
    #expect(await late(bus, setting) == ["late:1"])
    #expect(bus.pendingNumbers(scope: setting.scope) == [1])
  }

  @Test(.guarantee(.unhandledEventsAreRetained), arguments: Setting.all, PersistenceRule.allCases)
  func `an event without success reaches all subscribers and is retained until the first success`(
    setting: Setting,
    rule: PersistenceRule
  ) async {
    let (bus, log) = (EventBus(), Log<String>())
    var tokens = (0...2).map { index in
      setting.way.observe(bus, "s\(index):", into: log, scope: setting.scope, succeeds: false)
    }
    for number in 1...2 {
      let outcome = await setting.post(Notice(number, rule), on: bus)
      #expect(outcome == PostOutcome.of(notified: 3, handled: 0, isPersisted: true))
    }
    #expect(log.entries == ["s0:1", "s1:1", "s2:1", "s0:2", "s1:2", "s2:2"])
    #expect(bus.pendingNumbers(scope: setting.scope) == [1, 2])

    let other = Log<String>()
    tokens.append(
      setting.way.observe(bus, "fails:", into: other, scope: setting.scope, succeeds: false)
    )
    await bus.settle(scope: setting.scope)
    #expect(other.entries == ["fails:1", "fails:2"])
    #expect(bus.pendingNumbers(scope: setting.scope) == [1, 2])
    #expect(await late(bus, setting) == ["late:1", "late:2"])
    #expect(bus.pendingNumbers(scope: setting.scope) == (rule == .neverClear ? [1, 2] : []))
    #expect(await late(bus, setting) == (rule == .neverClear ? ["late:1", "late:2"] : []))
  }

  @Test(
    .guarantee(.unhandledEventsAreRetained),
    arguments: PersistenceRule.allCases,
    [nil, EventScope("left")]
  )
  func `an event without a subscriber is retained for the first one that succeeds`(
    rule: PersistenceRule,
    scope: EventScope?
  ) async {
    let bus = EventBus()
    for number in 1...3 { bus.post(Notice(number, rule), scope: scope) }
    #expect(bus.pendingNumbers(scope: scope) == [1, 2, 3])
    let stream = bus.subscription(to: Notice.self, scope: scope)
    #expect(await stream.first(3).map(\.number) == [1, 2, 3])
    #expect(bus.pendingNumbers(scope: scope) == (rule == .neverClear ? [1, 2, 3] : []))
    let second = bus.subscription(to: Notice.self, scope: scope)
    bus.post(Notice(4), scope: scope)
    let expected = rule == .neverClear ? [1, 2, 3, 4] : [4]
    #expect(await second.first(expected.count).map(\.number) == expected)
  }

  @Test(.guarantee(.bufferedEventsAreSuccesses), arguments: PersistenceRule.allCases)
  func `an event in a stream's buffer is a success, and clearImmediately stops at the first`(
    rule: PersistenceRule
  ) async {
    let (bus, log) = (EventBus(), Log<String>())
    let token = Way.result.observe(bus, "s0:", into: log, succeeds: false)
    let streams = (0...1).map { _ in bus.subscription(to: Notice.self) }
    let outcome = await bus.postAndWait(Notice(1, rule))
    bus.post(Notice(2))
    let isFirstOnly = rule == .clearImmediately
    #expect(
      outcome
        == PostOutcome.of(
          notified: isFirstOnly ? 2 : 3,
          handled: isFirstOnly ? 1 : 2,
          isPersisted: rule == .neverClear
        )
    )
    #expect(await streams[0].first(2).map(\.number) == [1, 2])
    #expect(
      await streams[1].first(isFirstOnly ? 1 : 2).map(\.number) == (isFirstOnly ? [2] : [1, 2])
    )
    #expect(bus.pendingNumbers() == (rule == .neverClear ? [1] : []))
    token.cancel()
  }

  @Test(.guarantee(.clearImmediatelyStopsAtTheFirstSuccess))
  func `with clearImmediately a handler runs only after the previous one has failed`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let first = bus.observe(Notice.self) { notice async in
      log.append("first begins")
      try? await gate.wait()
      log.append("first ends")
      return .failed
    }
    let second = bus.observe(Notice.self) { notice in
      log.append("second")
      return .handledSuccessfully
    }
    bus.post(Notice(1, .clearImmediately))
    await gate.arrivals(1)
    #expect(log.entries == ["first begins"])
    #expect(bus.pendingNumbers() == [1])
    gate.open()
    #expect(await log.first(3) == ["first begins", "first ends", "second"])
    withExtendedLifetime((first, second)) {}
  }

  @Test(.guarantee(.bufferedEventsAreSuccesses)) func `a full buffer is no success`() async {
    for policy in [BufferingPolicy<Notice>.bufferingOldest(1), .bufferingNewest(0)] {
      let bus = EventBus()
      let stream = bus.subscription(to: Notice.self, bufferingPolicy: policy)
      let room = policy.isNone ? 0 : 1
      let first = await bus.postAndWait(Notice(1, .clearImmediately))
      #expect(first == PostOutcome.of(notified: 1, handled: room, isPersisted: room == 0))
      let second = await bus.postAndWait(Notice(2, .clearImmediately))
      #expect(second == PostOutcome.of(notified: 1, handled: 0, isPersisted: true))
      #expect(stream.droppedCount == 2 - room)
    }
    let bus = EventBus()
    let newest = bus.subscription(to: Notice.self, bufferingPolicy: .bufferingNewest(1))
    for number in 1...2 {
      let outcome = await bus.postAndWait(Notice(number, .clearImmediately))
      #expect(outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: false))
    }
    #expect(await newest.first(1) == [Notice(2, .clearImmediately)])
  }

  @Test func `a retained event that does not fit into a late stream stays`() async {
    let bus = EventBus()
    for number in 1...3 { bus.post(Notice(number, .clearImmediately)) }
    let stream = bus.subscription(to: Notice.self, bufferingPolicy: .bufferingOldest(2))
    #expect(bus.pendingNumbers() == [3])
    #expect(await stream.first(2).map(\.number) == [1, 2])
  }
}

extension PostOutcome {
  /// The expected values of an outcome that is not deferred.
  struct Summary: Hashable {
    let notified: Int
    let handled: Int
    let isPersisted: Bool
  }

  static func of(notified: Int, handled: Int, isPersisted: Bool) -> Summary {
    Summary(notified: notified, handled: handled, isPersisted: isPersisted)
  }

  static func == (left: PostOutcome, right: Summary) -> Bool {
    !left.isDeferred
      && Summary(notified: left.notified, handled: left.handled, isPersisted: left.isPersisted)
        == right
  }
}

extension BufferingPolicy<Notice> {
  var isNone: Bool {
    switch self {
    case .bufferingNewest(let limit), .bufferingOldest(let limit): limit <= 0
    case .unbounded: false
    @unknown default: false
    }
  }
}
