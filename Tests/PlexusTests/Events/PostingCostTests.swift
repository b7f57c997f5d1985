import Plexus
import PlexusTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The cost of a post` {
  /// The shortest time of several rounds of posts, so that what else the machine does at the time does not
  /// count.
  private func shortestTime(_ bus: EventBus) -> Duration {
    var shortest = Duration.seconds(1_000_000)
    for _ in 0..<20 {
      let start = ContinuousClock.now
      for number in 0..<200 { bus.post(Ping(number), scope: "own") }
      shortest = min(shortest, start.duration(to: .now))
    }
    return shortest
  }

  /// What takes as long as there are subscribers would take thousands of times longer.
  @Test func `does not grow with the subscribers of other types and scopes`() {
    let bus = EventBus()
    let own = bus.subscription(to: Ping.self, scope: "own", bufferingPolicy: .bufferingNewest(1))
    let alone = shortestTime(bus)
    let others = (0..<20_000).map { bus.subscription(to: Ping.self, scope: EventScope($0)) }
    let notices = (0..<20_000).map { _ in bus.subscription(to: Notice.self) }
    #expect(shortestTime(bus) < alone * 20)
    withExtendedLifetime((own, others, notices)) {}
  }
}
