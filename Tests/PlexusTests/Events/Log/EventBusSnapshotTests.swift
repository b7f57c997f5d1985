import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A snapshot of a bus` {
  let clock = ManualClock()

  private func only(
    _ bus: EventBus,
    pendingLimit: Int = 100
  ) throws -> EventBus.ChannelSnapshot {
    let channels = bus.snapshot(pendingLimit: pendingLimit)
    #expect(channels.count == 1)
    return try #require(channels.first)
  }

  @Test func `a snapshot of a bus has the handlers and streams of each type and scope`() throws {
    let bus = EventBus()
    #expect(bus.snapshot().isEmpty)
    let token = bus.observe(Ping.self, scope: "left") { _ in }
    bus.observe(id: 1, Ping.self, scope: "left") { _ async in }
    let stream = bus.subscribe(to: Ping.self, scope: "left")
    let other = bus.subscribe(to: Notice.self)
    let channels = bus.snapshot().sorted { $0.typeName < $1.typeName }
    #expect(channels.map(\.typeName) == ["Notice", "Ping"])
    #expect(channels.map(\.scope) == [nil, "left"])
    #expect(channels.map(\.subscriberCount) == [1, 3])
    #expect(channels.map(\.handlerCount) == [0, 2])
    #expect(channels.map { $0.type == Ping.self } == [false, true])
    withExtendedLifetime((token, stream, other)) {}
  }

  @Test func `a snapshot of a bus has the oldest retained events, and the number of all`() throws {
    let bus = EventBus(clock: clock)
    for number in 1...5 {
      bus.post(Notice(number, .neverClear, timeToLive: .seconds(number == 1 ? 1 : 60)))
    }
    clock.advance(by: .seconds(1))
    let channel = try only(bus, pendingLimit: 2)
    #expect(channel.pendingCount == 4)
    #expect(channel.pendingEvents.compactMap { ($0 as? Notice)?.number } == [2, 3])
    #expect(try only(bus).pendingEvents.count == 4)
    #expect(try only(bus, pendingLimit: 0).pendingEvents.isEmpty)
  }

  @Test func `a snapshot of a bus does not count handlers whose owner was released`() throws {
    let bus = EventBus()
    bus.observe(as: Parcel(0), Ping.self) { _, _ in }
    let channel = try only(bus)
    #expect(channel.subscriberCount == 0 && channel.handlerCount == 0)
  }

  @Test(.startsProcess)
  func `a snapshot of fewer than no retained events is a mistake`() async {
    await #expect(processExitsWith: .failure) { _ = EventBus().snapshot(pendingLimit: -1) }
  }
}
