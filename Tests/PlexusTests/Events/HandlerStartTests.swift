import Plexus
import TestSupport
import Testing

/// The start of asynchronous handlers, which does not follow a cancellation on their own actor.
@Suite(.fewAtOnce) struct `An asynchronous handler` {
  /// The source of a handler, and its lifetime.
  enum Kind: CaseIterable, Sendable {
    case ofMessages
    case ofEvents
    case ofEventsWithOwner
    case ofForwardedEvents
  }

  private static let rounds = 100

  @MainActor
  @Test(.guarantee(.cancelledHandlersDoNotStart), arguments: Kind.allCases, [0, 1, 2, 3, 5, 8])
  func `an asynchronous handler does not start after it was cancelled on the main actor`(
    kind: Kind,
    turns: Int
  ) async {
    for _ in 0..<Self.rounds {
      let (sender, log, census) = (Sender(), Log<Int>(), Census())
      let cancel = observe(kind, sender, census.parcel()) { log.append($0) }
      sender.send()
      // The task of the handler gets some turns of the actor.
      for _ in 0..<turns { await everybodyHasBegun() }
      let count = log.count
      cancel()
      await census.falls(to: 0)
      #expect(log.count == count)
    }
  }

  @MainActor
  private func observe(
    _ kind: Kind,
    _ sender: Sender,
    _ parcel: Parcel,
    _ body: @escaping @Sendable (Int) -> Void
  ) -> @Sendable () -> Void {
    let handle: @Sendable (Int) -> Void = { number in
      withExtendedLifetime(parcel) { body(number) }
    }
    switch kind {
    case .ofMessages:
      let token = sender.messenger.observe { @MainActor (number: Int) async in handle(number) }
      return { token.cancel() }
    case .ofEvents:
      let token = sender.bus.observe(Ping.self) { @MainActor (ping: Ping) async in
        handle(ping.number)
      }
      return { token.cancel() }
    case .ofEventsWithOwner:
      let owner = Guarded<Parcel?>(Parcel(0))
      if let parcel = owner.withLock({ $0 }) {
        sender.bus.observe(as: parcel, Ping.self) { @MainActor (_: Parcel, ping: Ping) async in
          handle(ping.number)
        }
      }
      return {
        owner.withLock { $0 = nil }
        // The handler is removed at the next look.
        _ = sender.bus.subscriberCount(for: Ping.self)
      }
    case .ofForwardedEvents:
      let token = Pings(bus: sender.bus).observe { @MainActor (ping: Ping) async in
        handle(ping.number)
      }
      return { token.cancel() }
    }
  }

  @Test(.guarantee(.cancelledHandlersDoNotStart), arguments: [0, 1, 2, 3, 5, 8])
  func `an asynchronous handler does not start after it was cancelled on its own actor`(
    turns: Int
  ) async {
    for _ in 0..<Self.rounds {
      let (bus, log, census) = (EventBus(), Log<Int>(), Census())
      let host = Host(bus: bus)
      await host.observe(census.parcel()) { log.append($0) }
      bus.post(Ping(0))
      for _ in 0..<turns { await host.takeTurn() }
      let count = await host.cancel(log)
      await census.falls(to: 0)
      #expect(log.count == count)
    }
  }

  /// A messenger and a bus.
  struct Sender {
    let messenger = Messenger<Int>()
    let bus = EventBus()

    func send() {
      messenger.send(0)
      bus.post(Ping(0))
    }
  }

  /// The pings of a bus.
  struct Pings: Broadcaster {
    let bus: EventBus

    var subscriberCount: Int { bus.subscriberCount(for: Ping.self) }

    func subscription(bufferingPolicy: BufferingPolicy<Ping>) -> Subscription<Ping> {
      bus.subscription(to: Ping.self, bufferingPolicy: bufferingPolicy)
    }
  }

  /// An actor with a handler.
  actor Host {
    private let bus: EventBus
    private var token: ObservationToken?
    private var callCount = 0

    init(bus: EventBus) {
      self.bus = bus
    }

    func observe(_ parcel: Parcel, _ body: @escaping @Sendable (Int) -> Void) {
      token = bus.observe(Ping.self) { (ping: Ping) async in
        self.callCount += 1
        withExtendedLifetime(parcel) { body(ping.number) }
      }
    }

    func takeTurn() {}

    /// Removes the handler.
    ///
    /// - Returns: The number of calls at that moment.
    func cancel(_ log: Log<Int>) -> Int {
      token?.cancel()
      token = nil
      return log.count
    }
  }
}
