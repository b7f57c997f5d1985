import Plexus
import TestSupport
import Testing

/// The defaults of events, rules and handlers.
@Suite(.fewAtOnce) struct `The defaults of events` {
  struct Plain: Event {}

  struct Ruled: PersistentEvent {
    let persistenceRule: PersistenceRule
  }

  @Test(.guarantee(.eventsAreRetainedByTheirRule)) func `an event is not retained by default`()
    async
  {
    #expect(Plain().persistence == .none)
    #expect(EventPersistence.none.rule == nil)
    let bus = EventBus()
    #expect(await !bus.postAndWait(Plain()).isPersisted)
    #expect(bus.pendingEvents(of: Plain.self).isEmpty)
  }

  @Test(.guarantee(.eventsAreRetainedByTheirRule), arguments: PersistenceRule.allCases)
  func `a persistent event is retained by its rule, without a limit`(
    rule: PersistenceRule
  ) async {
    let event = Ruled(persistenceRule: rule)
    #expect(event.persistence == .persistent(rule))
    #expect(event.persistence.rule == rule)
    #expect(event.persistence.limit == nil)
    #expect(event.persistence.timeToLive == nil)
    // The rule also applies to an existential of type `any Event`.
    let any: any Event = event
    #expect(any.persistence == .persistent(rule))
    let bus = EventBus()
    for _ in 0..<2 { #expect(await bus.postAndWait(event).isPersisted) }
    let stream = bus.subscription(to: Ruled.self)
    #expect(await stream.first(2).count == 2)
    #expect(bus.pendingEvents(of: Ruled.self).count == (rule == .neverClear ? 2 : 0))
  }

  @Test(.guarantee(.eventsReachTheirTypeAndScope))
  func `posting and subscribing are without a scope by default`() async {
    let bus = EventBus()
    let stream = bus.subscribe(to: Ping.self)
    let subscription = bus.subscription(to: Ping.self)
    let scoped = bus.subscription(to: Ping.self, scope: "left")
    bus.post(Ping(1))
    await bus.postAndWait(Ping(2))
    bus.post(Ping(3), scope: "left")
    #expect(bus.subscriberCount(for: Ping.self) == 2)
    #expect(bus.subscriberCount(for: Ping.self, scope: nil) == 2)
    #expect(await stream.first(2) == [Ping(1), Ping(2)])
    #expect(await subscription.first(2) == [Ping(1), Ping(2)])
    #expect(await scoped.first(1) == [Ping(3)])
    bus.post(Notice(1, .neverClear))
    #expect(bus.pendingEvents(of: Notice.self) == bus.pendingEvents(of: Notice.self, scope: nil))
    #expect(bus.pendingEvents(of: Notice.self, scope: "left").isEmpty)
    bus.removePendingEvents(of: Notice.self)
    #expect(bus.pendingEvents(of: Notice.self).isEmpty)
  }

  /// The ways to register a handler that returns a result.
  enum Registration: CaseIterable, Sendable {
    case token
    case owner
    case id

    func observe(
      _ bus: EventBus,
      _ owner: Parcel,
      isAsync: Bool,
      returns result: HandlerResult
    ) -> ObservationToken? {
      switch (self, isAsync) {
      case (.token, false): return bus.observe(Notice.self) { _ in result }
      case (.token, true): return bus.observe(Notice.self) { _ async in result }
      case (.owner, false): bus.observe(as: owner, Notice.self) { _, _ in result }
      case (.owner, true): bus.observe(as: owner, Notice.self) { _, _ async in result }
      case (.id, false): bus.observe(id: 1, Notice.self) { _ in result }
      case (.id, true): bus.observe(id: 1, Notice.self) { _ async in result }
      }
      return nil
    }

    func observe(
      _ bus: EventBus,
      _ owner: Parcel,
      isAsync: Bool,
      throwing error: Broken?
    ) -> ObservationToken? {
      let body: @Sendable () throws -> Void = { if let error { throw error } }
      switch (self, isAsync) {
      case (.token, false): return bus.observe(Notice.self) { _ in try body() }
      case (.token, true): return bus.observe(Notice.self) { _ async throws in try body() }
      case (.owner, false): bus.observe(as: owner, Notice.self) { _, _ in try body() }
      case (.owner, true): bus.observe(as: owner, Notice.self) { _, _ async throws in try body() }
      case (.id, false): bus.observe(id: 1, Notice.self) { _ in try body() }
      case (.id, true): bus.observe(id: 1, Notice.self) { _ async throws in try body() }
      }
      return nil
    }
  }

  @Test(.guarantee(.noResultIsSuccess), arguments: Registration.allCases, [false, true])
  func `a result, a return and an error count alike with every kind of registration`(
    registration: Registration,
    isAsync: Bool
  ) async {
    let owner = Parcel(0)
    for (succeeds, returnsResult) in [(true, true), (true, false), (false, true), (false, false)] {
      let bus = EventBus()
      let token =
        returnsResult
        ? registration.observe(
          bus,
          owner,
          isAsync: isAsync,
          returns: succeeds ? .handledSuccessfully : .failed
        )
        : registration.observe(bus, owner, isAsync: isAsync, throwing: succeeds ? nil : Broken())
      let outcome = await bus.postAndWait(Notice(1, .clearImmediately))
      let handled = succeeds ? 1 : 0
      #expect(outcome == PostOutcome.of(notified: 1, handled: handled, isPersisted: !succeeds))
      withExtendedLifetime(token) {}
    }
  }
}
