import Plexus
import TestSupport

/// An event of the contract's tests, which is not retained.
struct Posted: Event {
  let parcel: Parcel
}

/// Events of one type and scope, read as streams and handled by closures of the bus.
struct EventBusSubject: ContractSubject {
  /// A bus as a broadcaster of one type in one scope.
  struct Source: Broadcaster {
    let bus = EventBus()
    let scope: EventScope?

    var subscriberCount: Int { bus.subscriberCount(for: Posted.self, scope: scope) }

    func subscription(bufferingPolicy: BufferingPolicy<Posted>) -> Subscription<Posted> {
      bus.subscription(to: Posted.self, scope: scope, bufferingPolicy: bufferingPolicy)
    }

    func subscribe(bufferingPolicy: BufferingPolicy<Posted>) -> AsyncStream<Posted> {
      bus.subscribe(to: Posted.self, scope: scope, bufferingPolicy: bufferingPolicy)
    }
  }

  let scope: EventScope?

  var testDescription: String { scope == nil ? "an event bus" : "a scope of an event bus" }

  func makeSource() -> Source { Source(scope: scope) }

  func send(_ parcel: Parcel, to source: Source) {
    source.bus.post(Posted(parcel: parcel), scope: scope)
  }

  func parcel(in element: Posted) -> Parcel? { element.parcel }

  func stage() -> any Stage { EventStage(self) }
}

/// A stage that registers its handlers with the bus.
private final class EventStage: Stage {
  private let base: ContractStage<EventBusSubject>

  init(_ subject: EventBusSubject) {
    base = ContractStage(subject)
  }

  var subscriberCount: Int { base.subscriberCount }

  private var bus: EventBus { base.source.bus }

  private var scope: EventScope? { base.subject.scope }

  func send(_ parcel: Parcel) { base.send(parcel) }

  func end() { base.end() }

  func subscribe(_ way: ReadingWay) -> any StageReader { base.subscribe(way) }

  func observe(
    _ site: HandlerSite,
    policy: Policy,
    on host: HandlerHost,
    _ body: @escaping @Sendable (Int) -> Void
  ) async -> ObservationToken {
    switch site {
    case .mainActor: return await observeOnMainActor(isAsync: false, body)
    case .mainActorAsync: return await observeOnMainActor(isAsync: true, body)
    case .actorInstance: return await host.observe(bus, scope, isAsync: false, body)
    case .actorInstanceAsync: return await host.observe(bus, scope, isAsync: true, body)
    case .nonisolated:
      return bus.observe(Posted.self, scope: scope) { body($0.parcel.number) }
    case .nonisolatedAsync:
      return bus.observe(Posted.self, scope: scope) { event async in body(event.parcel.number) }
    }
  }

  @MainActor
  private func observeOnMainActor(
    isAsync: Bool,
    _ body: @escaping @Sendable (Int) -> Void
  ) -> ObservationToken {
    guard isAsync else {
      return bus.observe(Posted.self, scope: scope) { event in
        MainActor.assertIsolated()
        body(event.parcel.number)
      }
    }
    return bus.observe(Posted.self, scope: scope) { event async in
      MainActor.assertIsolated()
      body(event.parcel.number)
    }
  }

  func observe(as owner: Parcel, isAsync: Bool, _ body: @escaping @Sendable (Int) -> Void) {
    if isAsync {
      bus.observe(as: owner, Posted.self, scope: scope) { _, event async in
        body(event.parcel.number)
      }
    } else {
      bus.observe(as: owner, Posted.self, scope: scope) { _, event in body(event.parcel.number) }
    }
  }

  func observeSlowly(_ body: @escaping @Sendable (Int) async -> Void) -> ObservationToken {
    bus.observe(Posted.self, scope: scope) { event async in await body(event.parcel.number) }
  }
}

extension HandlerHost {
  fileprivate func observe(
    _ bus: EventBus,
    _ scope: EventScope?,
    isAsync: Bool,
    _ body: @escaping @Sendable (Int) -> Void
  ) -> ObservationToken {
    guard isAsync else {
      return bus.observe(Posted.self, scope: scope) { event in
        self.assertIsolated()
        body(event.parcel.number)
      }
    }
    return bus.observe(Posted.self, scope: scope) { event async in
      self.assertIsolated()
      body(event.parcel.number)
    }
  }
}
