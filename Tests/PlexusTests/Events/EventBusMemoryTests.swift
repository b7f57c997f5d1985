import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Rule 0.6: nothing leaks.
@Suite(.fewAtOnce) struct `An event bus leaks nothing` {
  @Test(.guarantee(.releasedBusesEndTheirStreams))
  func `a released bus ends its streams after their buffered events`() async {
    var bus: EventBus? = EventBus()
    let stream = bus?.subscribe(to: Ping.self)
    let scoped = bus?.subscription(to: Ping.self, scope: "left")
    let waiting = bus.map { Recorder($0.subscription(to: Notice.self)) }
    bus?.post(Ping(1))
    bus?.post(Ping(2), scope: "left")
    bus = nil
    #expect(await stream?.all() == [Ping(1)])
    #expect(await scoped?.all() == [Ping(2)])
    #expect(await waiting?.finished() == [])
  }

  @Test(.guarantee(.releasedBusesEndTheirStreams))
  func `a bus is not kept alive by streams, handlers, tokens, kept or queued events`() async {
    weak var weakBus: EventBus?
    let gate = Gate()
    var rest: [Any] = []
    do {
      let bus = EventBus()
      weakBus = bus
      rest.append(bus.subscribe(to: Ping.self))
      rest.append(bus.subscription(to: Notice.self, scope: "left"))
      rest.append(bus.observe(Ping.self) { _ in })
      rest.append(bus.observe(Notice.self) { _ async in try? await gate.wait() })
      bus.observe(id: 1, Ping.self) { _ in }
      bus.post(Ping(1))
      bus.post(Notice(1, .neverClear))
      bus.post(Notice(2, .neverClear))
      await gate.arrivals(1)
    }
    #expect(weakBus == nil)
    gate.open()
    withExtendedLifetime(rest) {}
  }

  @Test(arguments: [nil, PersistenceRule.neverClear])
  func `a bus released during a handler call delivers posted events to handlers and ends`(
    rule: PersistenceRule?
  ) async {
    let (census, gate, log) = (Census(), Gate(), Log<Int>())
    var bus: EventBus? = EventBus()
    let stream = bus?.subscribe(to: Notice.self)
    let token = { [captured = census.parcel()] in
      bus?.observe(Notice.self) { notice async in
        try? await gate.wait()
        log.append(notice.number)
        withExtendedLifetime(captured) {}
      }
    }()
    let other = Log<Int>()
    let second = bus?.observe(Notice.self) { notice in
      other.append(notice.number)
      return .failed
    }
    for number in 1...3 { bus?.post(Notice(number, rule)) }
    await gate.arrivals(1)
    bus = nil
    // The stream does not wait for the handler.
    let buffered = await stream?.all().map(\.number)
    #expect(buffered == (rule == nil ? [1, 2, 3] : [1]))
    #expect(log.count == 0)
    gate.open()
    #expect(await log.first(3) == [1, 2, 3])
    #expect(await other.first(3) == [1, 2, 3])
    await census.falls(to: 0)
    withExtendedLifetime((token, second)) {}
  }

  /// The ways in which a handler ends.
  enum Ending: CaseIterable {
    case cancel, release, bag, id, typedID, replacement, owner, bus
  }

  @Test(arguments: Ending.allCases, [true, false])
  func `a handler is released with its captures`(ending: Ending, isAsync: Bool) async {
    let census = Census()
    var bus: EventBus? = EventBus()
    var token: ObservationToken?
    var owner: Owner? = Owner()
    let bag = ObservationBag()
    do {
      let captured = census.parcel()
      switch ending {
      case .cancel, .release, .bag, .bus:
        token =
          isAsync
          ? bus?.observe(Ping.self) { _ async in withExtendedLifetime(captured) {} }
          : bus?.observe(Ping.self) { _ in withExtendedLifetime(captured) {} }
        if ending == .bag { token?.store(in: bag) }
      case .id, .typedID, .replacement:
        if isAsync {
          bus?.observe(id: 1, Ping.self) { _ async in withExtendedLifetime(captured) {} }
        } else {
          bus?.observe(id: 1, Ping.self) { _ in withExtendedLifetime(captured) {} }
        }
      case .owner:
        if let owner, isAsync {
          bus?.observe(as: owner, Ping.self) { _, _ async in withExtendedLifetime(captured) {} }
        } else if let owner {
          bus?.observe(as: owner, Ping.self) { _, _ in withExtendedLifetime(captured) {} }
        }
      }
    }
    await bus?.postAndWait(Ping(1))
    #expect(census.living == 1)
    switch ending {
    case .cancel: token?.cancel()
    case .release: token = nil
    case .bag: bag.cancelAll()
    case .id: bus?.removeObserver(id: 1)
    case .typedID: bus?.removeObserver(id: 1, of: Ping.self)
    case .replacement: bus?.observe(id: 1, Ping.self, replacing: true) { _ in }
    case .owner: owner = nil
    case .bus: bus = nil
    }
    if ending != .bus {
      #expect(bus?.subscriberCount(for: Ping.self) == (ending == .replacement ? 1 : 0))
    }
    // The task that has called the handler ends after its post.
    await census.falls(to: 0)
    withExtendedLifetime(token) {}
  }

  @Test(arguments: [true, false])
  func `a handler of a released owner is released at the next event`(isAsync: Bool) async {
    let (bus, census) = (EventBus(), Census())
    do {
      let captured = census.parcel()
      let owner = Owner()
      if isAsync {
        bus.observe(as: owner, Ping.self) { _, _ async in withExtendedLifetime(captured) {} }
      } else {
        bus.observe(as: owner, Ping.self) { _, _ in withExtendedLifetime(captured) {} }
      }
    }
    let outcome = await bus.postAndWait(Ping(1))
    #expect(outcome == PostOutcome.of(notified: 0, handled: 0, isPersisted: false))
    await census.falls(to: 0)
  }

  @Test func `handlers of released owners do not accumulate without posts`() {
    let (bus, census) = (EventBus(), Census())
    for _ in 0..<10_000 {
      let captured = census.parcel()
      bus.observe(as: Owner(), Ping.self) { _, _ in withExtendedLifetime(captured) {} }
    }
    #expect(census.most < 1000)
  }

  @Test(arguments: [nil] + PersistenceRule.allCases)
  func `events are released once they are delivered and not retained`(
    rule: PersistenceRule?
  ) async {
    let (bus, census) = (EventBus(), Census())
    let token = bus.observe(Load.self) { _ in }
    let other = bus.observe(Load.self) { _ async in }
    var stream: Subscription<Load>? = bus.subscription(to: Load.self)
    for number in 0..<20 { bus.post(Load(census.parcel(number), rule)) }
    await bus.postAndWait(Load(Parcel(-1)))
    stream = nil
    bus.removePendingEvents(of: Load.self)
    await census.falls(to: 0)
    #expect(census.living == 0)
    withExtendedLifetime((token, other, stream)) {}
  }

  @Test func `retained events are released with the bus`() async {
    let census = Census()
    var bus: EventBus? = EventBus()
    for number in 0..<20 { bus?.post(Load(census.parcel(number), .neverClear)) }
    #expect(census.living == 20)
    bus = nil
    #expect(census.living == 0)
  }

  @Test func `an event that a post displaces is released while its handlers still run`() async {
    let (bus, census, gate) = (EventBus(), Census(), Gate())
    let stream = bus.subscription(to: Load.self, bufferingPolicy: .bufferingNewest(1))
    bus.post(Load(census.parcel(1)))
    let token = bus.observe(Load.self) { _ async in try? await gate.wait() }
    let post = Task { await bus.postAndWait(Load(census.parcel(2))) }
    await gate.arrivals(1)
    await census.falls(to: 1)
    #expect(census.living == 1)
    gate.open()
    #expect(await post.value.handled == 2)
    withExtendedLifetime((token, stream)) {}
  }

  @Test func `events that wait for a removed handler are released immediately`() async {
    let (bus, census, gate) = (EventBus(), Census(), Gate())
    let token = bus.observe(Load.self) { _ async in
      // Ignores cancellation.
      await Task.detached { try? await gate.wait() }.value
    }
    for number in 0..<20 { bus.post(Load(census.parcel(number))) }
    await gate.arrivals(1)
    token.cancel()
    #expect(census.living <= 1)
    gate.open()
    await census.falls(to: 0)
  }
}
