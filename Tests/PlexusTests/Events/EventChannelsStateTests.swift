import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

/// The channels of scopes that are no longer in use.
@Suite(.fewAtOnce) struct `Channels of scopes` {
  let bus = EventBus()

  @Test func `channels of scopes are removed with their last stream`() {
    for number in 0..<1000 {
      let stream = bus.subscription(to: Ping.self, scope: EventScope(number))
      #expect(bus.core.scopedChannelCount == 1)
      withExtendedLifetime(stream) {}
    }
    #expect(bus.core.scopedChannelCount == 0)
  }

  @Test func `channels of scopes are removed with their last handler`() async {
    for number in 0..<100 {
      let scope = EventScope(number)
      let token = bus.observe(Ping.self, scope: scope) { _ in }
      bus.observe(id: number, Ping.self, scope: scope) { _ async in }
      await bus.postAndWait(Ping(1), scope: scope)
      token.cancel()
      #expect(bus.core.scopedChannelCount == 1)
      bus.removeObserver(id: number)
    }
    #expect(bus.core.scopedChannelCount == 0)
  }

  @Test
  func `channels of scopes are released with their bus, though handlers and streams retain them`() {
    weak var channel: EventChannel?
    weak var scoped: EventChannel?
    var tokens: [ObservationToken] = []
    var streams: [Subscription<Ping>] = []
    do {
      let bus = EventBus()
      for scope in [nil, EventScope(1)] {
        tokens.append(bus.observe(Ping.self, scope: scope) { _ in })
        tokens.append(bus.observe(Ping.self, scope: scope) { _ async in })
        bus.observe(id: 1, Ping.self, scope: scope) { _ in }
        streams.append(bus.subscription(to: Ping.self, scope: scope))
      }
      channel = bus.core.channel(of: ObjectIdentifier(Ping.self))
      scoped = bus.core.channel(of: ObjectIdentifier(Ping.self), in: EventScope(1))
      #expect(channel != nil)
      #expect(scoped != nil)
    }
    tokens = []
    streams = []
    #expect(channel == nil)
    #expect(scoped == nil)
  }

  @Test func `channels of scopes are removed with their last retained event`() {
    for number in 0..<100 {
      let scope = EventScope(number)
      bus.post(Notice(1, .clearImmediately), scope: scope)
      #expect(bus.core.scopedChannelCount == 1)
      if number % 2 == 0 {
        bus.removePendingEvents(of: Notice.self, scope: scope)
      } else {
        _ = bus.subscription(to: Notice.self, scope: scope)
      }
      #expect(bus.core.scopedChannelCount == 0)
    }
  }

  @Test func `channels of scopes are not created for events without subscribers and retention`() {
    for number in 0..<100 {
      bus.post(Ping(number), scope: EventScope(number))
      bus.post(Notice(number, .neverClear, limit: 0), scope: EventScope(number))
      _ = bus.pendingEvents(of: Notice.self, scope: EventScope(number))
      bus.removePendingEvents(of: Notice.self, scope: EventScope(number))
      bus.removeObserver(id: 1, of: Notice.self, scope: EventScope(number))
      _ = bus.subscriberCount(for: Notice.self, scope: EventScope(number))
    }
    #expect(bus.core.scopedChannelCount == 0)
  }

  @Test func `channels of scopes with expired events or released owners do not accumulate`() {
    let clock = ManualClock()
    let bus = EventBus(clock: clock)
    for number in 0..<10_000 {
      let scope = EventScope(number)
      bus.post(Notice(number, .neverClear, timeToLive: .seconds(1)), scope: scope)
      bus.observe(as: Owner(), Ping.self, scope: scope) { _, _ in }
      clock.advance(by: .seconds(1))
    }
    #expect(bus.core.scopedChannelCount < 1000)
  }

  @Test(arguments: [true, false])
  func `channels of scopes replace a handler atomically`(suspends: Bool) {
    let channel = bus.core.makeChannel(of: Ping.self, in: nil)
    let recipe = Handler.Recipe(
      isolation: nil,
      suspends ? .suspending { _ in .succeeded } : .synchronous { _ in .succeeded }
    )
    let old = channel.add(recipe, at: 0)
    _ = old.map(channel.start)
    #expect(channel.subscriberCount == 1)
    let new = channel.add(recipe, at: 0, replacing: [old?.handler].compactMap(\.self))
    #expect(channel.subscriberCount == 1)
    _ = new.map(channel.start)
    #expect(channel.subscriberCount == 1)
  }

  @Test(.guarantee(.slowHandlersDelayNoOtherScope), arguments: [0, 1_000])
  func `a post costs one look-up of its own scope, regardless of the number of other channels`(
    others: Int
  ) async {
    struct Room: Hashable, Sendable {
      let number: Int
      let looks: Guarded<Int>
      static func == (left: Self, right: Self) -> Bool {
        left.looks.withLock { $0 += 1 }
        return left.number == right.number
      }
      func hash(into hasher: inout Hasher) {
        looks.withLock { $0 += 1 }
        hasher.combine(number)
      }
    }
    let looks = Guarded(0)
    func scope(_ number: Int) -> EventScope { EventScope(Room(number: number, looks: looks)) }
    let stream = bus.subscription(to: Ping.self, scope: scope(0))
    let token = bus.observe(Ping.self, scope: scope(0)) { _ in }
    let strangers = (0..<others).map { bus.subscription(to: Ping.self, scope: scope($0 + 1)) }
    let unscoped = (0..<others).map { _ in bus.observe(Ping.self) { _ in } }
    // Former subscribers leave no entries.
    for _ in 0..<others { _ = bus.subscription(to: Ping.self, scope: scope(0)) }
    let target = scope(0)
    looks.withLock { $0 = 0 }
    bus.post(Ping(1), scope: target)
    #expect(looks.withLock { $0 } == 2, "One hash and one comparison")
    let channel = bus.core.channel(of: ObjectIdentifier(Ping.self), in: target)
    #expect(channel?.state.withLock { $0.offers.memberCount } == 2)
    #expect(channel?.hub.count == 2)
    #expect(channel?.hub.queues.count == 1)
    #expect(await bus.postAndWait(Ping(2), scope: target).notified == 2)
    withExtendedLifetime((stream, token, strangers, unscoped)) {}
  }
}
