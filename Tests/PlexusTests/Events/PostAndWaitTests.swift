import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Waiting for the handlers of a post.
@Suite(.fewAtOnce) struct `Posting and waiting` {
  @Test(.guarantee(.postAndWaitReturnsTheOutcome), arguments: [nil, PersistenceRule.neverClear])
  func `posting and waiting returns after every handler has ended, with the correct counts`(
    rule: PersistenceRule?
  ) async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let tokens = [
      bus.observe(Notice.self) { _ async in
        try? await gate.wait()
        log.append("slow")
      },
      bus.observe(Notice.self) { _ throws in throw Broken() },
      bus.observe(Notice.self) { _ in .failed },
      bus.observe(Notice.self) { _ async in .handledSuccessfully },
    ]
    let stream = bus.subscription(to: Notice.self)
    let waiting = Task {
      let outcome = await bus.postAndWait(Notice(1, rule))
      log.append("returned")
      return outcome
    }
    await gate.arrivals(1)
    #expect(log.count == 0)
    gate.open()
    #expect(
      await waiting.value == PostOutcome.of(notified: 5, handled: 3, isPersisted: rule != nil)
    )
    #expect(log.entries == ["slow", "returned"])
    withExtendedLifetime((tokens, stream)) {}
  }

  @Test
  func `posting and waiting posts before it suspends, in order with other posts of the caller`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    let token = bus.observe(Ping.self) { log.append($0.number) }
    bus.post(Ping(1))
    await bus.postAndWait(Ping(2))
    bus.post(Ping(3))
    await bus.postAndWait(Ping(4))
    #expect(log.entries == [1, 2, 3, 4])
    withExtendedLifetime(token) {}
  }

  @Test(
    .guarantee(.cancelledWaitsLeaveHandlersRunning),
    arguments: [nil, PersistenceRule.neverClear]
  )
  func `posting and waiting returns the outcome so far at once when the caller is cancelled`(
    rule: PersistenceRule?
  ) async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let first = bus.observe(Notice.self) { _ in .handledSuccessfully }
    let second = bus.observe(Notice.self) { _ async throws in
      try await gate.wait()
      log.append("second")
    }
    let waiting = Task { await bus.postAndWait(Notice(1, rule)) }
    await gate.arrivals(1)
    waiting.cancel()
    let outcome = await waiting.value
    #expect(outcome.isIncomplete)
    #expect(outcome.handled <= 1 && outcome.notified == outcome.handled)
    #expect(outcome.isPersisted == (rule != nil))
    #expect(!outcome.isDeferred)
    #expect(log.count == 0)
    // The handlers still run, and are not cancelled.
    gate.open()
    #expect(await log.first(1) == ["second"])
    withExtendedLifetime((first, second)) {}
  }

  @Test(.guarantee(.cancelledWaitsLeaveHandlersRunning))
  func `posting and waiting counts the handlers that had ended when the caller was cancelled`()
    async
  {
    let (bus, gate) = (EventBus(), Gate())
    let first = bus.observe(Notice.self) { _ in .handledSuccessfully }
    let second = bus.observe(Notice.self) { _ in .failed }
    let third = bus.observe(Notice.self) { _ async in try? await gate.wait() }
    let waiting = Task {
      await bus.postAndWait(Notice(1, .clearAfterAllCurrentSubscribersNotified))
    }
    await gate.arrivals(1)
    waiting.cancel()
    let outcome = await waiting.value
    #expect(outcome.isIncomplete)
    #expect(outcome.notified == 2)
    #expect(outcome.handled == 1)
    #expect(outcome.isPersisted)
    gate.open()
    withExtendedLifetime((first, second, third)) {}
  }

  @Test(.guarantee(.cancelledWaitsLeaveHandlersRunning))
  func `posting and waiting posts and does not wait if the caller is already cancelled`() async {
    let (bus, gate) = (EventBus(), Gate())
    let token = bus.observe(Ping.self) { _ async in try? await gate.wait() }
    let outcome = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await bus.postAndWait(Ping(1))
    }.value
    #expect(outcome.isIncomplete)
    #expect(outcome.notified == 0)
    await gate.arrivals(1)
    gate.open()
    let complete = await bus.postAndWait(Ping(2))
    #expect(complete == PostOutcome.of(notified: 1, handled: 1, isPersisted: false))
    #expect(!complete.isIncomplete)
    withExtendedLifetime(token) {}
  }

  @Test func `posting and waiting does not count a replay to others`() async {
    let (bus, gate, log) = (EventBus(), Gate(), Log<String>())
    let first = bus.observe(Notice.self) { notice async in
      try? await gate.wait()
      return .failed
    }
    let waiting = Task { await bus.postAndWait(Notice(1, .clearImmediately)) }
    await gate.arrivals(1)
    let late = bus.observe(Notice.self) { notice in
      log.append("late\(notice.number)")
      return .handledSuccessfully
    }
    gate.open()
    #expect(await waiting.value == PostOutcome.of(notified: 1, handled: 0, isPersisted: true))
    await bus.settle()
    #expect(log.entries == ["late1", "late-1"])
    #expect(bus.pendingNumbers() == [])
    withExtendedLifetime((first, late)) {}
  }

  @Test(.guarantee(.nestedPostsAreQueued), arguments: [nil, PersistenceRule.neverClear])
  func `posting and waiting inside a handler of the event is deferred`(rule: PersistenceRule?) async
  {
    let (bus, log, outcomes) = (EventBus(), Log<String>(), Log<PostOutcome>())
    let first = bus.observe(Notice.self) { notice async in
      if notice.number == 1 { outcomes.append(await bus.postAndWait(Notice(2, rule))) }
      log.append("first\(notice.number)")
    }
    let second = bus.observe(Notice.self) { notice in log.append("second\(notice.number)") }
    let outcome = await bus.postAndWait(Notice(1, rule))
    #expect(outcome == PostOutcome.of(notified: 2, handled: 2, isPersisted: rule != nil))
    let inner = outcomes.entries[0]
    #expect(inner.isDeferred)
    #expect(inner.notified == 0)
    #expect(inner.handled == 0)
    #expect(inner.isPersisted == (rule != nil))
    await bus.settle()
    #expect(log.entries.filter { $0.hasPrefix("first") }.prefix(2) == ["first1", "first2"])
    #expect(log.entries.filter { $0.hasPrefix("second") }.prefix(2) == ["second1", "second2"])
    withExtendedLifetime((first, second)) {}
  }

  @Test func `posting and waiting in a task that a handler waits for is deferred, too`() async {
    let (bus, outcomes) = (EventBus(), Log<PostOutcome>())
    let token = bus.observe(Ping.self) { ping async in
      guard ping.number == 1 else { return }
      outcomes.append(await Task { await bus.postAndWait(Ping(2)) }.value)
      async let other = bus.postAndWait(Ping(3))
      outcomes.append(await other)
    }
    await bus.postAndWait(Ping(1))
    #expect(outcomes.entries.map(\.isDeferred) == [true, true])
    withExtendedLifetime(token) {}
  }

  @Test func `posting and waiting in a task that outlives its handler waits`() async {
    let (bus, gate, outcomes) = (EventBus(), Gate(), Log<PostOutcome>())
    let token = bus.observe(Ping.self) { ping async in
      guard ping.number == 1 else { return }
      Task {
        try? await gate.wait()
        outcomes.append(await bus.postAndWait(Ping(2)))
      }
    }
    await bus.postAndWait(Ping(1))
    gate.open()
    #expect(
      await outcomes.first(1)[0] == PostOutcome.of(notified: 1, handled: 1, isPersisted: false)
    )
    withExtendedLifetime(token) {}
  }

  @Test func `posting and waiting inside a handler of another type or scope waits`() async {
    let (bus, log) = (EventBus(), Log<String>())
    let outer = bus.observe(Ping.self) { ping async in
      let outcomes = [
        await bus.postAndWait(Notice(1)), await bus.postAndWait(Ping(2), scope: "left"),
      ]
      #expect(
        outcomes.allSatisfy { $0 == PostOutcome.of(notified: 1, handled: 1, isPersisted: false) }
      )
      log.append("outer")
    }
    let inner = bus.observe(Notice.self) { _ async in log.append("inner") }
    let scoped = bus.observe(Ping.self, scope: "left") { _ in log.append("scoped") }
    await bus.postAndWait(Ping(1))
    #expect(log.entries == ["inner", "scoped", "outer"])
    withExtendedLifetime((outer, inner, scoped)) {}
  }

  @Test(.guarantee(.nestedPostsAreQueued))
  func `posting and waiting around a cycle of types is deferred where the cycle would close`() async
  {
    let (bus, log) = (EventBus(), Log<String>())
    let ping = bus.observe(Ping.self) { ping async in
      guard ping.number == 1 else { return }
      let outcome = await bus.postAndWait(Notice(1))
      log.append("ping: \(outcome.isDeferred)")
    }
    let notice = bus.observe(Notice.self) { _ async in
      let outcome = await bus.postAndWait(Ping(2))
      log.append("notice: \(outcome.isDeferred)")
    }
    await bus.postAndWait(Ping(1))
    #expect(log.entries == ["notice: true", "ping: false"])
    // No record of the wait remains that would defer later posts.
    await bus.postAndWait(Notice(3))
    #expect(log.entries == ["notice: true", "ping: false", "notice: false"])
    withExtendedLifetime((ping, notice)) {}
  }

  @Test
  func `posting and waiting of handlers that wait for each other is deferred for one of them`()
    async
  {
    let (bus, log, gate) = (EventBus(), Log<Bool>(), Gate())
    let ping = bus.observe(Ping.self) { ping async in
      guard ping.number == 1 else { return }
      try? await gate.wait()
      log.append(await bus.postAndWait(Notice(2)).isDeferred)
    }
    let notice = bus.observe(Notice.self) { notice async in
      guard notice.number == 1 else { return }
      try? await gate.wait()
      log.append(await bus.postAndWait(Ping(2)).isDeferred)
    }
    async let one = bus.postAndWait(Ping(1))
    async let other = bus.postAndWait(Notice(1))
    await gate.arrivals(2)
    gate.open()
    _ = await (one, other)
    #expect(log.entries.sorted { $0 && !$1 } == [true, false])
    withExtendedLifetime((ping, notice)) {}
  }
}
