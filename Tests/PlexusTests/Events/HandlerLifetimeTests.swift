import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Tokens, owners and ids.
@Suite(.fewAtOnce) struct `A handler of events` {
  final class LoggingOwner: Sendable {
    let log: Log<String>

    init(_ log: Log<String> = Log()) {
      self.log = log
    }

    deinit {
      log.append("gone")
    }
  }

  enum Screen: Hashable, Sendable { case home, settings }
  struct Place: Hashable, Sendable { let row, column: Int }

  @Test(.guarantee(.handlersLiveAsLongAsTheirOwner))
  func `a handler of events lives as long as its token`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    var token: ObservationToken? = bus.observe(Ping.self) { log.append($0.number) }
    await bus.postAndWait(Ping(1))
    token?.cancel()
    #expect(bus.subscriberCount(for: Ping.self) == 0)
    token = bus.observe(Ping.self) { ping async in log.append(ping.number) }
    await bus.postAndWait(Ping(2))
    token = nil
    #expect(bus.subscriberCount(for: Ping.self) == 0)
    await bus.postAndWait(Ping(3))
    #expect(log.entries == [1, 2])
  }

  @Test(.guarantee(.handlersLiveAsLongAsTheirOwner))
  func `a handler of events lives as long as its owner, which it does not keep alive`() async {
    let (bus, log) = (EventBus(), Log<String>())
    var owner: LoggingOwner? = LoggingOwner(log)
    if let owner {
      bus.observe(as: owner, Ping.self) { me, ping in me.log.append("sync\(ping.number)") }
      bus.observe(as: owner, Notice.self) { me, notice async in
        me.log.append("async\(notice.number)")
        return .handledSuccessfully
      }
    }
    await bus.postAndWait(Ping(1))
    await bus.postAndWait(Notice(2, .clearImmediately))
    #expect(log.entries == ["sync1", "async2"])
    owner = nil
    #expect(log.entries == ["sync1", "async2", "gone"])
    let outcome = await bus.postAndWait(Notice(3, .clearImmediately))
    #expect(outcome == PostOutcome.of(notified: 0, handled: 0, isPersisted: true))
    #expect(bus.subscriberCount(for: Ping.self) == 0)
    #expect(bus.subscriberCount(for: Notice.self) == 0)
    #expect(log.count == 3)
  }

  @Test func `a handler of events can release its own owner while it runs`() async {
    let (bus, log, gate) = (EventBus(), Log<String>(), Gate())
    let owner = Guarded<LoggingOwner?>(LoggingOwner(log))
    if let someone = owner.withLock({ $0 }) {
      bus.observe(as: someone, Notice.self) { me, notice async in
        owner.withLock { $0 = nil }
        try? await gate.wait()
        me.log.append("handled\(notice.number)")
        return .handledSuccessfully
      }
    }
    bus.post(Notice(1, .clearImmediately))
    bus.post(Notice(2, .clearImmediately))
    await gate.arrivals(1)
    gate.open()
    #expect(await log.first(2) == ["handled1", "gone"])
    await bus.settle()
    #expect(log.count == 2)
    #expect(bus.pendingNumbers() == [2])
    #expect(bus.subscriberCount(for: Notice.self) == 0)
  }

  @Test(.guarantee(.handlersLiveAsLongAsTheirOwner))
  func `a handler of events with an id lives until it is removed, whatever the type of the id`()
    async
  {
    let (bus, log) = (EventBus(), Log<String>())
    bus.observe(id: "name", Ping.self) { _ in log.append("string") }
    bus.observe(id: 7, Ping.self) { _ in log.append("int") }
    bus.observe(id: Screen.home, Ping.self) { _ in log.append("enum") }
    bus.observe(id: Place(row: 1, column: 2), Ping.self) { _ in log.append("struct") }
    await bus.postAndWait(Ping(1))
    #expect(log.entries == ["string", "int", "enum", "struct"])
    bus.removeObserver(id: Screen.settings)
    bus.removeObserver(id: UInt(7))
    bus.removeObserver(id: "7")
    #expect(bus.subscriberCount(for: Ping.self) == 4)
    bus.removeObserver(id: "name")
    bus.removeObserver(id: Screen.home)
    await bus.postAndWait(Ping(2))
    #expect(log.entries.suffix(2) == ["int", "struct"])
    bus.removeObserver(id: 7)
    bus.removeObserver(id: Place(row: 1, column: 2))
    #expect(bus.subscriberCount(for: Ping.self) == 0)
  }

  @Test(.guarantee(.handlersLiveAsLongAsTheirOwner))
  func `a handler of events is removed by id for all types and scopes, or for one`() async {
    let bus = EventBus()
    func observe() {
      bus.observe(id: "x", Ping.self) { _ in }
      bus.observe(id: "x", Ping.self, scope: "left") { _ async in }
      bus.observe(id: "x", Notice.self) { _ in .handledSuccessfully }
      bus.observe(id: "y", Ping.self) { _ in }
    }
    func counts() -> [Int] {
      [
        bus.subscriberCount(for: Ping.self), bus.subscriberCount(for: Ping.self, scope: "left"),
        bus.subscriberCount(for: Notice.self),
      ]
    }
    observe()
    bus.removeObserver(id: "x", of: Ping.self)
    #expect(counts() == [1, 1, 1])
    bus.removeObserver(id: "x", of: Ping.self, scope: "right")
    #expect(counts() == [1, 1, 1])
    bus.removeObserver(id: "x", of: Ping.self, scope: "left")
    #expect(counts() == [1, 0, 1])
    observe()
    bus.removeObserver(id: "x")
    #expect(counts() == [2, 0, 0])
    bus.removeObserver(id: "y")
    #expect(counts() == [0, 0, 0])
  }

  @Test(.guarantee(.replacingReplacesTheHandler))
  func `a handler is replaced by one of the same id, type and scope, which is last in order`() async
  {
    let (bus, log) = (EventBus(), Log<String>())
    bus.observe(id: "x", Ping.self) { _ in log.append("x") }
    bus.observe(id: "x", Ping.self, scope: "left") { _ in log.append("left") }
    bus.observe(id: "y", Ping.self) { _ in log.append("y") }
    bus.observe(id: "x", Ping.self) { _ in log.append("second x") }
    await bus.postAndWait(Ping(1))
    #expect(log.entries == ["x", "y", "second x"])
    bus.observe(id: "x", Ping.self, replacing: true) { _ in log.append("new x") }
    await bus.postAndWait(Ping(2))
    #expect(log.entries.suffix(2) == ["y", "new x"])
    #expect(bus.subscriberCount(for: Ping.self) == 2)
    #expect(bus.subscriberCount(for: Ping.self, scope: "left") == 1)
    bus.removeObserver(id: "x")
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    #expect(bus.subscriberCount(for: Ping.self, scope: "left") == 0)
  }

  @Test func `a handler of events is distinguished from one whose id has the same hash value`() {
    struct Clashing: Hashable, Sendable {
      let number: Int
      func hash(into hasher: inout Hasher) {}
    }
    let bus = EventBus()
    for number in [1, 2, 3, 2] {
      bus.observe(id: Clashing(number: number), Ping.self, replacing: true) { _ in }
    }
    #expect(bus.subscriberCount(for: Ping.self) == 3)
    bus.removeObserver(id: Clashing(number: 2))
    #expect(bus.subscriberCount(for: Ping.self) == 2)
    bus.removeObserver(id: Clashing(number: 3), of: Ping.self)
    #expect(bus.subscriberCount(for: Ping.self) == 1)
  }

  @Test(.guarantee(.replacingReplacesTheHandler))
  func `a handler of events replaces another one without an overlap`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    bus.observe(id: 1, Ping.self) { log.append($0.number) }
    let poster = Task.detached {
      for number in 0..<1000 { bus.post(Ping(number)) }
    }
    for _ in 0..<100 {
      // Events that wait for the replaced handler are discarded with it, so the queues are empty.
      bus.observe(id: 1, Ping.self, replacing: true) { log.append($0.number) }
      #expect(bus.subscriberCount(for: Ping.self) == 1)
    }
    await poster.value
    await bus.postAndWait(Ping(1000))
    #expect(Set(log.entries).count == log.count)
    #expect(log.entries.last == 1000)
  }

  @Test func `a handler of events that removes itself or others is not called again`() async {
    for rule in [nil, PersistenceRule.neverClear] {
      let (bus, log) = (EventBus(), Log<String>())
      bus.observe(id: "a", Notice.self) { notice in
        log.append("a\(notice.number)")
        bus.removeObserver(id: "a")
        bus.removeObserver(id: "c")
      }
      bus.observe(id: "b", Notice.self) { notice async in log.append("b\(notice.number)") }
      bus.observe(id: "c", Notice.self) { notice in log.append("c\(notice.number)") }
      let outcome = await bus.postAndWait(Notice(1, rule))
      #expect(outcome == PostOutcome.of(notified: 2, handled: 2, isPersisted: rule != nil))
      await bus.postAndWait(Notice(2, rule))
      #expect(log.entries.sorted() == ["a1", "b1", "b2"])
      #expect(bus.subscriberCount(for: Notice.self) == 1)
    }
  }

  @Test
  func `a handler that is removed while it runs has its task cancelled, and fails if it throws`()
    async
  {
    for rule in [nil, PersistenceRule.clearAfterAllCurrentSubscribersNotified] {
      let (bus, gate) = (EventBus(), Gate())
      bus.observe(id: 1, Notice.self) { _ async throws in try await gate.wait() }
      let last = bus.observe(Notice.self) { _ in }
      async let outcome = bus.postAndWait(Notice(1, rule))
      await gate.arrivals(1)
      bus.removeObserver(id: 1)
      #expect(bus.subscriberCount(for: Notice.self) == 1)
      #expect(await outcome == PostOutcome.of(notified: 2, handled: 1, isPersisted: false))
      last.cancel()
    }
  }

  @Test(arguments: [nil, PersistenceRule.clearAfterAllCurrentSubscribersNotified])
  func `a handler of events that is removed before its turn is not waited for`(
    rule: PersistenceRule?
  ) async {
    let (bus, deaf) = (EventBus(), Gate())
    let stream = bus.subscription(to: Notice.self)
    bus.observe(id: 1, Notice.self) { notice async in
      // Ignores cancellation.
      await Task.detached { try? await deaf.wait() }.value
    }
    bus.post(Notice(1))
    await deaf.arrivals(1)
    let waiting = Task { await bus.postAndWait(Notice(2, rule)) }
    // The second event is now queued behind the first.
    #expect(await stream.first(2).map(\.number) == [1, 2])
    bus.removeObserver(id: 1)
    let outcome = await waiting.value
    #expect(outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: false))
    deaf.open()
  }

  @Test(.guarantee(.slowHandlersDelayNoOtherScope))
  func `a handler of events takes a constant time for each event`()
    async
  {
    // In quadratic time this would take hours.
    let (bus, log) = (EventBus(), Guarded(0))
    let token = bus.observe(Ping.self) { _ in log.withLock { $0 += 1 } }
    let other = bus.observe(Ping.self) { _ async in log.withLock { $0 += 1 } }
    for number in 1..<100_000 { bus.post(Ping(number)) }
    await bus.postAndWait(Ping(0))
    #expect(log.withLock { $0 } == 200_000)
    withExtendedLifetime((token, other)) {}
  }

  @MainActor final class Label {
    var texts: [String] = []

    func observe(_ bus: EventBus) -> [ObservationToken] {
      bus.observe(as: self, Ping.self) { me, ping in me.texts.append("owner\(ping.number)") }
      bus.observe(as: self, Notice.self) { me, notice in
        me.texts.append("owner\(notice.number)")
        return .failed
      }
      bus.observe(id: 1, Ping.self) { ping in self.texts.append("id\(ping.number)") }
      return [
        bus.observe(Ping.self) { ping in self.texts.append("token\(ping.number)") },
        bus.observe(Notice.self) { notice in
          self.texts.append("token\(notice.number)")
          return .failed
        },
        bus.observe(Notice.self) { notice async throws in
          await Task.detached {}.value
          self.texts.append("async\(notice.number)")
          return .handledSuccessfully
        },
      ]
    }
  }

  @MainActor @Test func `a handler of events of main-actor code runs on the main actor`() async {
    let (bus, label) = (EventBus(), Label())
    let tokens = label.observe(bus)
    await bus.postAndWait(Ping(1))
    #expect(label.texts == ["owner1", "id1", "token1"])
    let outcome = await bus.postAndWait(Notice(2, .clearImmediately))
    #expect(label.texts.suffix(3) == ["owner2", "token2", "async2"])
    #expect(outcome == PostOutcome.of(notified: 3, handled: 1, isPersisted: false))
    bus.removeObserver(id: 1)
    withExtendedLifetime(tokens) {}
  }

  actor Counter {
    var numbers: [Int] = []

    func observe(_ bus: EventBus) -> [ObservationToken] {
      bus.observe(as: self, Ping.self) { me, ping async in await me.note(ping.number) }
      return [
        bus.observe(Ping.self) { ping in self.numbers.append(ping.number + 10) },
        bus.observe(Notice.self) { notice async in
          self.numbers.append(notice.number)
          return .handledSuccessfully
        },
      ]
    }

    func note(_ number: Int) {
      numbers.append(number)
    }
  }

  @Test func `a handler of events of an actor runs on the actor`() async {
    let (bus, counter) = (EventBus(), Counter())
    let tokens = await counter.observe(bus)
    await bus.postAndWait(Ping(1))
    await bus.postAndWait(Notice(2, .clearImmediately))
    #expect(await counter.numbers.sorted() == [1, 2, 11])
    #expect(await counter.numbers.last == 2)
    withExtendedLifetime(tokens) {}
  }

  @Test func `a handler of events does not start again once it was cancelled on its own actor`()
    async
  {
    let (bus, log, host) = (EventBus(), Log<Int>(), SteppedHost())
    let token = bus.observe(Ping.self) { @MainActor ping in log.append(ping.number) }
    await MainActor.run {
      for number in 1...20 { bus.post(Ping(number)) }
      token.cancel()
    }
    let later = bus.observe(Ping.self) { @MainActor ping in log.append(ping.number) }
    await bus.postAndWait(Ping(100))
    #expect(log.entries == [100])
    withExtendedLifetime((later, host)) {}
  }
}
