import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Unusual values, timings and numbers.
@Suite(.fewAtOnce) struct `Events at the edge` {
  /// A hashable class with a subclass.
  @MainActor class Window: nonisolated Hashable {
    nonisolated let number: Int

    nonisolated init(_ number: Int) {
      self.number = number
    }

    nonisolated static func == (left: Window, right: Window) -> Bool {
      left.number == right.number
    }

    nonisolated func hash(into hasher: inout Hasher) {
      hasher.combine(number)
    }
  }

  final class Panel: Window {}

  /// An event that calls a closure when its persistence is read.
  struct Curious: Event {
    let ask: @Sendable () -> Void

    var persistence: EventPersistence {
      ask()
      return .none
    }
  }

  @Test func `an id can be an instance of a subclass of its static type`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    func handle(_ id: Window) {
      bus.observe(id: id, Ping.self, replacing: true) { log.append($0.number) }
    }
    for _ in 0..<3 { handle(Panel(1)) }
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    // The dynamic class is part of the value: an instance of another class is another id.
    bus.removeObserver(id: Window(1))
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    bus.removeObserver(id: Panel(1))
    #expect(bus.subscriberCount(for: Ping.self) == 0)
    handle(Panel(2))
    bus.removeObserver(id: Panel(2) as Window)
    await bus.postAndWait(Ping(1))
    #expect(log.count == 0)
  }

  @Test func `a scope can be an instance of a subclass of its static type`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    func scope(_ window: Window) -> EventScope { EventScope(window) }
    let token = bus.observe(Ping.self, scope: scope(Panel(1))) { log.append($0.number) }
    await bus.postAndWait(Ping(1), scope: scope(Panel(1)))
    await bus.postAndWait(Ping(2), scope: EventScope(Panel(1)))
    await bus.postAndWait(Ping(3), scope: scope(Window(1)))
    #expect(log.entries == [1, 2])
    withExtendedLifetime(token) {}
  }

  @Test func `an id can be nil`() {
    let bus = EventBus()
    bus.observe(id: Int?.none, Ping.self) { _ in }
    bus.observe(id: Int?.some(1), Ping.self) { _ in }
    bus.removeObserver(id: 1)
    bus.removeObserver(id: String?.none)
    #expect(bus.subscriberCount(for: Ping.self) == 2)
    bus.removeObserver(id: Int?.none)
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    bus.removeObserver(id: Int?.some(1))
    #expect(bus.subscriberCount(for: Ping.self) == 0)
  }

  @Test(arguments: [true, false])
  func `a handler that is removed after the release of its bus is cancelled`(
    isQueued: Bool
  ) async {
    let (gate, log) = (Gate(), Log<String>())
    var bus: EventBus? = EventBus()
    let token = bus?.observe(Ping.self) { ping async in
      do {
        try await gate.wait()
        log.append("finished \(ping.number)")
      } catch {
        log.append("cancelled \(ping.number)")
      }
    }
    bus?.post(Ping(1))
    await gate.arrivals(1)
    if isQueued { bus?.post(Ping(2)) }
    bus = nil
    #expect(log.count == 0)
    token?.cancel()
    #expect(await log.first(1) == ["cancelled 1"])
    gate.open()
    #expect(log.count == 1)
  }

  @Test func `a wait inside a handler is detected even if the first subscriber is added meanwhile`()
    async
  {
    let (bus, log, bag) = (EventBus(), Log<String>(), ObservationBag())
    let late = Curious {
      guard bag.count < 2 else { return }
      let token = bus.observe(Curious.self) { _ async in
        let outcome = await bus.postAndWait(Notice(2, .neverClear))
        log.append("curious: \(outcome.isDeferred)")
      }
      bag.insert(token)
    }
    let token = bus.observe(Notice.self) { notice async in
      guard notice.number == 1 else { return }
      let outcome = await bus.postAndWait(late)
      log.append("notice: \(outcome.isDeferred)")
    }
    bag.insert(token)
    await bus.postAndWait(Notice(1, .neverClear))
    #expect(log.entries == ["curious: true", "notice: false"])
    bag.cancelAll()
  }

  @Test func `an unhandled event does not block handled ones`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    let token = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return notice.number == 0 ? .failed : .handledSuccessfully
    }
    for number in 0..<1000 { bus.post(Notice(number, .clearImmediately)) }
    await bus.settle()
    #expect(bus.pendingNumbers() == [0])
    #expect(log.entries == Array(0..<1000) + [-1])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.slowHandlersDelayNoOtherScope))
  func `ten thousand handlers of one event come and go`() async {
    let bus = EventBus()
    var tokens: [ObservationToken] = []
    for number in 0..<10_000 {
      tokens.append(bus.observe(Ping.self) { _ in })
      if number % 100 == 0 { bus.post(Ping(number)) }
    }
    #expect(bus.subscriberCount(for: Ping.self) == 10_000)
    while tokens.popLast() != nil {}
    #expect(bus.subscriberCount(for: Ping.self) == 0)
    var owner: Owner? = Owner()
    if let owner {
      for _ in 0..<10_000 { bus.observe(as: owner, Ping.self) { _, _ in } }
    }
    owner = nil
    let outcome = await bus.postAndWait(Ping(1))
    #expect(outcome.notified == 0)
    #expect(bus.subscriberCount(for: Ping.self) == 0)
  }
}
