import Dispatch
import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Handlers that hang, with removal, skipping and priority escalation.
@Suite(.fewAtOnce) struct `A handler of events that hangs` {
  /// The ways to remove a handler.
  enum Removal: CaseIterable {
    case token, id, replacement
  }

  @Test(
    .guarantee(.hangingHandlersCanBeRemoved),
    arguments: Removal.allCases,
    PersistenceRule.allCases
  )
  func `a handler of events that hangs no longer blocks persistent events when it is removed`(
    removal: Removal,
    rule: PersistenceRule
  ) async {
    let (bus, deaf, log) = (EventBus(), Gate(), Log<Int>())
    let handle: @Sendable (Notice) async -> HandlerResult = { _ in
      // Ignores cancellation.
      await Task.detached { try? await deaf.wait() }.value
      return .handledSuccessfully
    }
    var token: ObservationToken?
    if removal == .token {
      token = bus.observe(Notice.self) { notice async in await handle(notice) }
    } else {
      bus.observe(id: 1, Notice.self) { notice async in await handle(notice) }
    }
    let next = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .failed
    }
    let waiting = Task { await bus.postAndWait(Notice(1, rule)) }
    await deaf.arrivals(1)
    switch removal {
    case .token: token?.cancel()
    case .id: bus.removeObserver(id: 1)
    case .replacement: bus.observe(id: 1, Notice.self, replacing: true) { _ in .failed }
    }
    // The offer has failed, so the event is offered to the next handler and retained.
    let outcome = await waiting.value
    #expect(outcome == PostOutcome.of(notified: 2, handled: 0, isPersisted: true))
    #expect(log.entries == [1])
    await bus.postAndWait(Notice(2))
    #expect(log.entries == [1, 2])
    // A success after the removal does not count.
    deaf.open()
    await bus.settle()
    #expect(bus.pendingNumbers() == [1])
    withExtendedLifetime(next) {}
  }

  @Test(.guarantee(.queuedEventsAreDeliveredInPortions))
  func `a hanging handler does not leave its whole backlog to the thread that removes it`() async {
    let (bus, deaf, released) = (EventBus(), Gate(), Log<Bool>())
    let token = bus.observe(Shipment.self) { _ async in
      try? await deaf.wait()
      return .handledSuccessfully
    }
    // The stream buffers the newest event only: the thread that sends the next one releases the previous one.
    let latest = bus.subscribe(to: Shipment.self, bufferingPolicy: .bufferingNewest(1))
    bus.post(Shipment(persistence: .persistent(.neverClear)))
    await deaf.arrivals(1)
    for _ in 0..<5_000 { bus.post(Shipment(content: Cargo(released))) }
    Removing.$isUnderWay.withValue(true) { token.cancel() }
    let all = await released.first(4_999)
    #expect(all.count { $0 } < 1_000)
    #expect(all.count { $0 } > 0)
    bus.post(Shipment(content: Cargo(released)))
    _ = await released.first(5_000)
    withExtendedLifetime(latest) {}
  }

  @Test(.guarantee(.hangingHandlersCanBeRemoved))
  func `a hanging handler that blocks its thread does not block persistent events once removed`()
    async
  {
    let (bus, host, calls, log) = (EventBus(), SteppedHost(), Log<Void>(), Log<Int>())
    let blocked = DispatchSemaphore(value: 0)
    let token = await host.observe(bus) { _ in
      calls.append(())
      blocked.wait()
      return .handledSuccessfully
    }
    let next = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .failed
    }
    let waiting = Task { await bus.postAndWait(Notice(1, .neverClear)) }
    let stepping = Task(executorPreference: OwnThreadExecutor()) {
      while calls.count == 0, !Task.isCancelled { await host.executor.step() }
    }
    _ = await calls.first(1)
    token.cancel()
    let outcome = await waiting.value
    #expect(outcome == PostOutcome.of(notified: 2, handled: 0, isPersisted: true))
    #expect(log.entries == [1])
    blocked.signal()
    await stepping.value
    withExtendedLifetime(next) {}
  }

  @Test(.guarantee(.hangingHandlersCanBeRemoved), .guarantee(.selfRemovingHandlersReportInASecond))
  func `a hanging handler reports its result if it removes itself without suspending`() async {
    let (bus, token) = (EventBus(), Guarded<ObservationToken?>(nil))
    let observation = bus.observe(Notice.self) { _ in
      token.withLock { $0 }?.cancel()
      return .handledSuccessfully
    }
    token.withLock { $0 = observation }
    let outcome = await bus.postAndWait(Notice(1, .neverClear))
    #expect(outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: true))
  }

  @Test(
    .guarantee(.selfRemovingHandlersReportInASecond),
    arguments: [true, false],
    PersistenceRule.allCases
  )
  func `a hanging handler blocks persistent events for a second at most after removing itself`(
    isAsync: Bool,
    rule: PersistenceRule
  ) async {
    let clock = ManualClock()
    let (bus, deaf, calls, log) = (EventBus(clock: clock), Gate(), Log<Void>(), Log<Int>())
    let (token, blocked) = (Guarded<ObservationToken?>(nil), DispatchSemaphore(value: 0))
    var stepping: Task<Void, Never>?
    if isAsync {
      let observation = bus.observe(Notice.self) { _ async in
        token.withLock { $0.take() }?.cancel()
        calls.append(())
        await Task.detached { try? await deaf.wait() }.value
        return .handledSuccessfully
      }
      token.withLock { $0 = observation }
    } else {
      let host = SteppedHost()
      let observation = await host.observe(bus) { _ in
        token.withLock { $0.take() }?.cancel()
        calls.append(())
        blocked.wait()
        return .handledSuccessfully
      }
      token.withLock { $0 = observation }
      stepping = Task(executorPreference: OwnThreadExecutor()) {
        while calls.count == 0, !Task.isCancelled { await host.executor.step() }
      }
    }
    let next = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .failed
    }
    let waiting = Task { await bus.postAndWait(Notice(1, rule)) }
    _ = await calls.first(1)
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(999))
    #expect(log.entries == [])
    clock.advance(by: .milliseconds(1))
    let outcome = await waiting.value
    #expect(outcome == PostOutcome.of(notified: 2, handled: 0, isPersisted: true))
    #expect(log.entries == [1])
    // A late success does not count.
    deaf.open()
    blocked.signal()
    await stepping?.value
    await bus.settle()
    #expect(bus.pendingNumbers() == [1])
    withExtendedLifetime(next) {}
  }

  @Test(.guarantee(.selfRemovingHandlersReportInASecond), arguments: PersistenceRule.allCases)
  func `a hanging handler reports its result if it removes itself and suspends below a second`(
    rule: PersistenceRule
  ) async {
    let clock = ManualClock()
    let (bus, gate, token) = (EventBus(clock: clock), Gate(), Guarded<ObservationToken?>(nil))
    let observation = bus.observe(Notice.self) { _ async in
      token.withLock { $0.take() }?.cancel()
      // The removal cancels the task.
      await Task.detached { try? await gate.wait() }.value
      return .handledSuccessfully
    }
    token.withLock { $0 = observation }
    let waiting = Task { await bus.postAndWait(Notice(1, rule)) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(999))
    gate.open()
    let outcome = await waiting.value
    #expect(
      outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: rule == .neverClear)
    )
    await bus.settle()
    #expect(clock.sleeperCount == 0, "The timer has been cancelled")
  }

  @Test(.guarantee(.hangingHandlersCanBeRemoved))
  func `a hanging handler does not block persistent events once a task it started removes it`()
    async
  {
    let (bus, deaf, log) = (EventBus(), Gate(), Log<Int>())
    let token = Guarded<ObservationToken?>(nil)
    let isRegistered = Gate()
    let registered = bus.observe(Notice.self) { _ async in
      Task {
        try? await isRegistered.wait()
        token.withLock { $0 }?.cancel()
      }
      await Task.detached { try? await deaf.wait() }.value
      return .handledSuccessfully
    }
    token.withLock { $0 = registered }
    let next = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .failed
    }
    bus.post(Notice(1, .neverClear))
    await deaf.arrivals(1)
    isRegistered.open()
    #expect(await log.first(1) == [1])
    deaf.open()
    withExtendedLifetime(next) {}
  }

  @Test(.guarantee(.hangingHandlersCanBeRemoved))
  func `a handler of events that hangs no longer blocks a replay when it is removed`() async {
    let (bus, deaf, log) = (EventBus(), Gate(), Log<Int>())
    bus.post(Notice(1, .clearImmediately))
    let token = bus.observe(Notice.self) { _ async in
      await Task.detached { try? await deaf.wait() }.value
      return .handledSuccessfully
    }
    await deaf.arrivals(1)
    let late = bus.observe(Notice.self) { notice in
      log.append(notice.number)
      return .handledSuccessfully
    }
    token.cancel()
    #expect(await log.first(1) == [1])
    await bus.settle()
    #expect(bus.pendingNumbers() == [])
    deaf.open()
    withExtendedLifetime(late) {}
  }

  @Test(.guarantee(.postAndWaitRaisesPriority), arguments: [nil, PersistenceRule.neverClear])
  func `a handler of events is raised to the priority of a caller that waits for it`(
    rule: PersistenceRule?
  ) async {
    let (bus, gate) = (EventBus(), Gate())
    let token = await Task.detached(priority: .background) {
      bus.observe(Notice.self) { _ async in
        try? await gate.wait()
        // The priority is escalated by another thread, which can take a while.
        while Task.currentPriority < .high { await Task.detached {}.value }
      }
    }.value
    bus.post(Notice(1))
    await gate.arrivals(1)
    let waiting = Task.detached(priority: .high) { await bus.postAndWait(Notice(2, rule)) }
    gate.open()
    #expect(await waiting.value.handled == 1)
    withExtendedLifetime(token) {}
  }

  @Test
  func `a handler registered after others is also raised to the priority of a waiting caller`()
    async
  {
    let (bus, gate) = (EventBus(), Gate())
    let early = bus.observe(Notice.self) { _ in }
    await Task.detached(priority: .high) { _ = await bus.postAndWait(Notice(1)) }.value
    let late = await Task.detached(priority: .background) {
      bus.observe(Notice.self) { _ async in
        try? await gate.wait()
        // The priority is escalated by another thread, which can take a while.
        while Task.currentPriority < .high { await Task.detached {}.value }
      }
    }.value
    bus.post(Notice(2))
    await gate.arrivals(1)
    let waiting = Task.detached(priority: .high) { await bus.postAndWait(Notice(3)) }
    gate.open()
    #expect(await waiting.value.handled == 2)
    withExtendedLifetime((early, late)) {}
  }
}

/// Handlers of the bus with a limited buffer.
@Suite(.fewAtOnce) struct `A buffering policy of a handler of events` {
  @Test func `a buffering policy of a handler of events makes a slow handler skip events`() async {
    let (bus, gate) = (EventBus(), Gate())
    let logs = (0..<4).map { _ in Log<Int>() }
    func note(_ log: Log<Int>) -> @Sendable (Ping) async -> Void {
      { ping in
        log.append(ping.number)
        try? await gate.wait()
      }
    }
    let owner = Parcel(0)
    let notes = logs.map(note)
    let tokens = [
      bus.observe(Ping.self, bufferingPolicy: .bufferingNewest(2)) { ping async in
        await notes[0](ping)
      },
      bus.observe(Ping.self, bufferingPolicy: .bufferingOldest(2)) { ping async in
        await notes[1](ping)
      },
    ]
    bus.observe(as: owner, Ping.self, bufferingPolicy: .bufferingNewest(1)) { _, ping async in
      await notes[2](ping)
    }
    bus.observe(id: 1, Ping.self, bufferingPolicy: .unbounded) { ping async in
      await notes[3](ping)
    }
    bus.post(Ping(0))
    await gate.arrivals(4)
    for number in 1...5 { bus.post(Ping(number)) }
    gate.open()
    #expect(await logs[0].first(3) == [0, 4, 5])
    #expect(await logs[1].first(3) == [0, 1, 2])
    #expect(await logs[2].first(2) == [0, 5])
    #expect(await logs[3].first(6) == Array(0...5))
    // No other event is in the queues.
    await bus.postAndWait(Ping(6))
    #expect(logs.map(\.count) == [4, 4, 3, 7])
    withExtendedLifetime((tokens, owner)) {}
  }

  @Test
  func `a handler's buffering policy ends the wait of postAndWait even if the event was skipped`()
    async
  {
    let (bus, gate, log) = (EventBus(), Gate(), Log<Int>())
    let token = bus.observe(Ping.self, bufferingPolicy: .bufferingNewest(1)) { ping async in
      log.append(ping.number)
      try? await gate.wait()
    }
    bus.post(Ping(0))
    await gate.arrivals(1)
    // Once the stream has the event, it is also in the queue.
    let stream = bus.subscription(to: Ping.self)
    let skipped = Task { await bus.postAndWait(Ping(1)) }
    #expect(await stream.first(1) == [Ping(1)])
    bus.post(Ping(2))
    let outcome = await skipped.value
    #expect(outcome == PostOutcome.of(notified: 1, handled: 1, isPersisted: false))
    gate.open()
    #expect(await log.first(2) == [0, 2])
    withExtendedLifetime(token) {}
  }

  @Test func `a buffering policy of a handler of events does not apply to persistent events`() async
  {
    let (bus, gate, log) = (EventBus(), Gate(), Log<Int>())
    let token = bus.observe(Notice.self, bufferingPolicy: .bufferingOldest(0)) { notice async in
      log.append(notice.number)
      try? await gate.wait()
      return .handledSuccessfully
    }
    bus.post(Notice(1, .clearImmediately))
    await gate.arrivals(1)
    for number in 2...4 { bus.post(Notice(number, .clearImmediately)) }
    gate.open()
    #expect(await log.first(4) == [1, 2, 3, 4])
    withExtendedLifetime(token) {}
  }
}

/// Objects that serve as ids and equal only themselves.
@Suite(.fewAtOnce) struct `An object that serves as an id` {
  final class Screen: Hashable, Sendable {
    static func == (left: Screen, right: Screen) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }

  @Test(.guarantee(.handlerIDsAreNotKeptAlive))
  func `an object that serves as an id is not kept alive by the handlers`() async {
    let (bus, log) = (EventBus(), Log<Int>())
    weak var released: Screen?
    do {
      let screen = Screen()
      released = screen
      bus.observe(id: screen, Ping.self) { log.append($0.number) }
      bus.observe(id: screen, Ping.self, scope: "left") { _ async in }
    }
    #expect(released == nil)
    // The handlers are registered until they are removed or the bus is released.
    await bus.postAndWait(Ping(1))
    #expect(log.entries == [1])
    #expect(bus.subscriberCount(for: Ping.self) == 1)
  }

  @Test func `an object that serves as an id removes and replaces its own handlers, and no others`()
    async
  {
    let (bus, log) = (EventBus(), Log<String>())
    let (first, second) = (Screen(), Screen())
    bus.observe(id: first, Ping.self) { _ in log.append("first") }
    bus.observe(id: second, Ping.self) { _ in log.append("second") }
    bus.observe(id: first, Ping.self, replacing: true) { _ in log.append("new first") }
    #expect(bus.subscriberCount(for: Ping.self) == 2)
    await bus.postAndWait(Ping(1))
    #expect(log.entries == ["second", "new first"])
    bus.removeObserver(id: second, of: Ping.self)
    #expect(bus.subscriberCount(for: Ping.self) == 1)
    bus.removeObserver(id: first)
    #expect(bus.subscriberCount(for: Ping.self) == 0)
  }
}

/// Whether the code runs inside the removal of a handler.
private enum Removing {
  @TaskLocal static var isUnderWay = false
}

/// An event, retained or not, whose content reports its release.
private struct Shipment: PersistentEvent {
  var content: Cargo?
  var persistence = EventPersistence.none
  var persistenceRule: PersistenceRule { .neverClear }
}

private final class Cargo: Sendable {
  private let released: Log<Bool>

  init(_ released: Log<Bool>) {
    self.released = released
  }

  deinit {
    released.append(Removing.isUnderWay)
  }
}
