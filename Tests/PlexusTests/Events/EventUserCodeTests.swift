import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Rule 0.9: values that are released, compared or called can use the bus to which they belong.
///
/// If a lock were held, a test would deadlock: run these under an external time limit.
@Suite(.fewAtOnce) struct `User code of events never runs under a lock` {
  /// A parcel that uses the bus when it is released.
  func parcel(_ bus: EventBus, _ census: Census) -> Parcel {
    census.parcel { [weak bus] in
      if let bus { use(bus) }
    }
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns), arguments: [nil] + PersistenceRule.allCases)
  func `no lock is held when an event is delivered, replayed, refused or left unread`(
    rule: PersistenceRule?
  ) async {
    let (bus, census) = (EventBus(), Census())
    let policies: [BufferingPolicy<Load>] = [
      .bufferingOldest(1), .bufferingNewest(0), .bufferingNewest(1), .unbounded,
    ]
    var streams = policies.map { bus.subscription(to: Load.self, bufferingPolicy: $0) }
    for number in 0..<20 {
      bus.post(Load(parcel(bus, census), number % 2 == 0 ? rule : nil))
    }
    streams += policies.map { bus.subscription(to: Load.self, bufferingPolicy: $0) }
    let handler = bus.observe(Load.self) { _ in .handledSuccessfully }
    for _ in 0..<20 { await bus.postAndWait(Load(parcel(bus, census), rule)) }
    streams = []
    handler.cancel()
    bus.removePendingEvents(of: Load.self)
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  @Test func `no lock is held when a limit, time or the release of the bus drops an event`() async {
    struct Bounded: Event {
      let parcel: Parcel
      var persistence: EventPersistence {
        .persistent(.neverClear, limit: 2, timeToLive: .seconds(1))
      }
    }
    let (census, clock) = (Census(), ManualClock())
    var bus: EventBus? = EventBus(clock: clock)
    for _ in 0..<5 {
      if let bus { bus.post(Bounded(parcel: parcel(bus, census))) }
    }
    #expect(census.living == 2)
    clock.advance(by: .seconds(1))
    #expect(bus?.pendingEvents(of: Bounded.self).count == 0)
    #expect(census.living == 0)
    if let bus { bus.post(Bounded(parcel: parcel(bus, census))) }
    bus = nil
    #expect(census.living == 0)
  }

  @Test(arguments: [true, false])
  func `no lock is held when a handler of events is released`(isAsync: Bool) async {
    let (bus, census) = (EventBus(), Census())
    func add(id: Int) {
      let captured = parcel(bus, census)
      if isAsync {
        bus.observe(id: id, Load.self, replacing: true) { _ async in
          withExtendedLifetime(captured) {}
        }
      } else {
        bus.observe(id: id, Load.self, replacing: true) { _ in withExtendedLifetime(captured) {} }
      }
    }
    for _ in 0..<5 {
      add(id: 1)
      await bus.postAndWait(Load(Parcel(0)))
    }
    add(id: 2)
    bus.removeObserver(id: 1)
    bus.removeObserver(id: 2, of: Load.self)
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  /// A value whose comparison uses the bus.
  struct Nosy: Hashable, Sendable {
    let number: Int
    let bus: EventBus
    let parcel: Parcel

    static func == (left: Self, right: Self) -> Bool {
      use(left.bus)
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {
      use(bus)
      hasher.combine(number % 2)
    }
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns))
  func `no lock is held when scopes and ids are compared, hashed or released`() async {
    let (bus, census) = (EventBus(), Census())
    func nosy(_ number: Int) -> Nosy { Nosy(number: number, bus: bus, parcel: parcel(bus, census)) }
    for number in 0..<6 {
      let scope = EventScope(nosy(number))
      let stream = bus.subscription(to: Ping.self, scope: scope)
      bus.post(Ping(number), scope: EventScope(nosy(number)))
      #expect(await stream.first(1) == [Ping(number)])
      bus.observe(id: nosy(number), Ping.self, scope: scope) { _ in }
      bus.observe(id: nosy(number), Ping.self, scope: scope, replacing: true) { _ in }
      #expect(bus.subscriberCount(for: Ping.self, scope: scope) == 2)
    }
    for number in 0..<6 {
      if number % 2 == 0 {
        bus.removeObserver(id: nosy(number))
      } else {
        bus.removeObserver(id: nosy(number), of: Ping.self, scope: EventScope(nosy(number)))
      }
      #expect(bus.subscriberCount(for: Ping.self, scope: EventScope(nosy(number))) == 0)
    }
    #expect(census.living == 0)
  }

  @Test func `no lock is held when the persistence of an event or the time of the clock is read`() {
    struct Curious: Event {
      let bus: EventBus
      var persistence: EventPersistence {
        use(bus)
        return .persistent(.neverClear, limit: 1)
      }
    }
    struct CuriousClock: Clock {
      let bus: Guarded<EventBus?>
      let inner = ContinuousClock()
      var now: ContinuousClock.Instant {
        let bus = bus.withLock { bus in
          defer { bus = nil }
          return bus
        }
        if let bus { use(bus) }
        return inner.now
      }
      var minimumResolution: Duration { inner.minimumResolution }
      func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {}
    }
    let known = Guarded<EventBus?>(nil)
    let bus = EventBus(clock: CuriousClock(bus: known))
    for _ in 0..<3 {
      known.withLock { $0 = bus }
      bus.post(Curious(bus: bus))
      known.withLock { $0 = bus }
      #expect(bus.pendingEvents(of: Curious.self).count == 1)
      for replacing in [true, false] {
        known.withLock { $0 = bus }
        bus.observe(id: 1, Ping.self, replacing: replacing) { _ in }
        known.withLock { $0 = bus }
        bus.observe(Ping.self) { _ async in }.cancel()
      }
    }
    known.withLock { $0 = nil }
    // The bus retains an event that retains the bus.
    bus.removePendingEvents(of: Curious.self)
  }
}

/// Calls everything on a bus that user code can call.
private func use(_ bus: EventBus) {
  bus.post(Load(Parcel(-1)))
  bus.post(Load(Parcel(-1), .neverClear), scope: "elsewhere")
  _ = bus.subscription(to: Load.self)
  _ = bus.observe(Load.self) { _ in }
  _ = bus.observe(Load.self) { _ async in }
  bus.observe(id: "user code", Load.self) { _ in }
  bus.removeObserver(id: "user code")
  _ = bus.subscriberCount(for: Load.self)
  _ = bus.pendingEvents(of: Load.self)
  bus.removePendingEvents(of: Load.self, scope: "elsewhere")
}
