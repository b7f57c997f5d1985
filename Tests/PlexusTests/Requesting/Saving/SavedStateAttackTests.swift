import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Attacks on states that are saved.
@Suite(.fewAtOnce) struct `An attacked saved state` {
  let parts = SavedNumber()

  enum Source: CaseIterable, Sendable {
    case whole, selected, mapped, combined
  }

  /// Saves the number, or a view of it.
  func persist(
    _ source: Source,
    of number: CurrentValue<Int>,
    delay: Duration = .seconds(5)
  ) -> SavedState {
    let (cacher, clock) = (parts.cacher, parts.clock)
    return switch source {
    case .whole:
      number.persist(in: cacher, as: "key", delay: delay, clock: clock)
    case .selected:
      number.select { $0 }.persist(in: cacher, as: "key", delay: delay, clock: clock)
    case .mapped:
      number.map { $0 }.persist(in: cacher, as: "key", delay: delay, clock: clock)
    case .combined:
      combine(number) { $0 }.persist(in: cacher, as: "key", delay: delay, clock: clock)
    }
  }

  @Test
  func `the last write is not given up for one that began before its change`() async throws {
    let other = CurrentValue(0)
    let older = persist(.whole, of: other, delay: .zero)
    var newer: SavedState? = parts.persist()
    let gate = parts.cacher.hold(.store)
    other.value = 1
    await gate.arrivals(1)
    parts.cacher.release()
    parts.number.value = 2
    newer = nil
    gate.open()
    // It is done after the last write, which is in the same queue.
    try await older.flush()
    #expect(parts.cacher.value() == 2)
    withExtendedLifetime(newer) {}
  }

  @Test
  func `the last write of a released saved state never replaces what its successor has saved`()
    async throws
  {
    var former: SavedState? = parts.persist(delay: .zero)
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    await gate.arrivals(1)
    parts.cacher.release()
    // Its last state is queued only once the running write has ended.
    parts.number.value = 2
    former = nil
    let successor = parts.persist(delay: .zero)
    // This write is queued at once, behind the running one and before the last of the former.
    parts.number.value = 3
    gate.open()
    // The second one is done after all of them, which are in the same queue.
    for _ in 0..<2 { try await successor.flush() }
    #expect(parts.cacher.value() == 3)
    withExtendedLifetime(former) {}
  }

  /// A clock that calls a closure once when it is read.
  struct CallingClock: Clock {
    let base = ManualClock()
    let call = Guarded<(@Sendable () -> Void)?>(nil)
    var now: ManualClock.Instant {
      call.withLock { $0.take() }?()
      return base.now
    }
    var minimumResolution: Duration { base.minimumResolution }

    func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
      try await base.sleep(until: deadline, tolerance: tolerance)
    }
  }

  @Test
  func `a change after a clear is saved even if a write is just beginning`() async throws {
    let clock = CallingClock()
    let (number, cacher) = (parts.number, parts.cacher)
    let saved = number.persist(in: cacher, as: "key", clock: clock)
    number.value = 1
    clock.call.withLock { call in
      call = { [weak saved] in
        saved?.invalidate()
        number.value = 2
      }
    }
    for _ in 0..<3 { try await saved.flush() }
    #expect(cacher.value() == 2)
  }

  @Test(arguments: Source.allCases)
  func `a clear drops a change that is still on its way to the saved state`(
    source: Source
  ) async throws {
    let reference = Guarded<SavedState?>(nil)
    let token = onSend(parts.number) { number in
      if number == 1 { reference.withLock { $0 }?.invalidate() }
    }
    let saved = persist(source, of: parts.number)
    reference.withLock { $0 = saved }
    parts.number.value = 1
    try await saved.flush()
    #expect(parts.cacher.value() == nil)
    reference.withLock { $0 = nil }
    withExtendedLifetime(token) {}
  }

  @Test func `a clear drops a change of a store whose parts are evaluated later`() async throws {
    struct App: Sendable { var user = "Ada", volume = 0 }
    let reference = Guarded<SavedState?>(nil)
    let store = Store<App, String>(App()) { app, user in
      app.user = user
      app.volume += 1
    }
    let token = onSend(store) { app in
      if app.user.isEmpty { reference.withLock { $0 }?.invalidate() }
    }
    let saved = store.select(\.volume).persist(in: parts.cacher, as: "key", clock: parts.clock)
    reference.withLock { $0 = saved }
    store.dispatch("")
    try await saved.flush()
    #expect(parts.cacher.value() == nil)
    reference.withLock { $0 = nil }
    withExtendedLifetime(token) {}
  }

  @Test
  func `a clear drops what its siblings of the key have not received yet`() async throws {
    let reference = Guarded<SavedState?>(nil)
    let token = onSend(parts.number) { number in
      if number == 1 { reference.withLock { $0 }?.invalidate() }
    }
    let (one, two) = (parts.persist(), parts.persist())
    reference.withLock { $0 = one }
    parts.number.value = 1
    try await one.flush()
    try await two.flush()
    #expect(parts.cacher.value() == nil)
    reference.withLock { $0 = nil }
    withExtendedLifetime(token) {}
  }

  @Test(arguments: Source.allCases)
  func `a flush saves a change that another thread is still delivering`(
    source: Source
  ) async throws {
    let (number, began, end) = (parts.number, Log<Int>(), DispatchSemaphore(value: 0))
    let token = onSend(number) { value in
      guard value == 1 else { return }
      began.append(value)
      end.wait()
    }
    let saved = persist(source, of: number)
    Thread.detachNewThread { number.value = 1 }
    await began.first(1)
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    end.signal()
    withExtendedLifetime(token) {}
  }

  @Test
  func `a saved state that was released while an element came saves no later one`() async throws {
    let (number, began, end) = (parts.number, Log<Int>(), DispatchSemaphore(value: 0))
    let token = onSend(number) { value in
      guard value == 1 else { return }
      began.append(value)
      end.wait()
    }
    let repository = MuxRepository()
    var saved: SavedState? = parts.persist().register(in: repository)
    let writes = saved?.writes()
    let gate = parts.cacher.hold(.store)
    let delivered = Log<Int>()
    Thread.detachNewThread {
      number.value = 1
      delivered.append(1)
    }
    await began.first(1)
    saved = nil
    await gate.arrivals(1)
    parts.cacher.release()
    let clear = Task { try await repository.clearAll() }
    gate.open()
    try await clear.value
    end.signal()
    await delivered.first(1)
    #expect(number.subscriberCount == 1, "only the handler of the test")
    number.value = 2
    _ = await writes?.finished()
    #expect(parts.cacher.value() == nil)
    withExtendedLifetime((token, saved)) {}
  }

  @Test func `a change that was flushed while it came is not written again`() async throws {
    let (number, began, end) = (parts.number, Log<Int>(), DispatchSemaphore(value: 0))
    let token = onSend(number) { value in
      guard value == 1 else { return }
      began.append(value)
      end.wait()
    }
    let saved = parts.persist()
    let delivered = Log<Int>()
    Thread.detachNewThread {
      number.value = 1
      delivered.append(1)
    }
    await began.first(1)
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    end.signal()
    await delivered.first(1)
    try await saved.flush()
    #expect(parts.cacher.count(of: .store) == 1)
    withExtendedLifetime(token) {}
  }

  @Test func `siblings of a key in one repository save again after it is cleared`() async throws {
    let repository = MuxRepository()
    let (one, two) = (parts.persist(), parts.persist())
    one.register(in: repository)
    two.register(in: repository)
    for round in 1...3 {
      parts.number.value = 10 * round
      try await repository.clearAll()
      try await repository.flushAll()
      #expect(parts.cacher.value() == nil)
      parts.number.value = 10 * round + 1
      try await repository.flushAll()
      #expect(parts.cacher.value() == 10 * round + 1)
    }
  }

  @Test func `many threads that change, flush and clear lose no change after the last clear`()
    async throws
  {
    for _ in 0..<200 {
      let (number, cacher) = (CurrentValue(0), ControlledCacher<Int>())
      let saved = number.persist(in: cacher, as: "key", delay: .zero, clock: parts.clock)
      let flushes = Task.detached { for _ in 0..<20 { try? await saved.flush() } }
      for value in 1...10 {
        number.value = value
        saved.invalidate()
      }
      number.value = 11
      await flushes.value
      try await saved.flush()
      #expect(cacher.value() == 11)
    }
  }

  @Test func `a saved state that is made and released in a handler writes nothing`() async throws {
    let parts = parts
    let token = onSend(parts.number) { value in
      if value == 1 { _ = parts.persist() }
    }
    parts.number.value = 1
    let probe = parts.persist()
    try await probe.flush()
    #expect(parts.cacher.calls.isEmpty)
    #expect(parts.number.subscriberCount == 2)
    withExtendedLifetime((token, probe)) {}
  }

  @Test(arguments: Source.allCases)
  func `a saved state that begins while an older element comes does not write it`(
    source: Source
  ) async throws {
    let reference = Guarded<SavedState?>(nil)
    let view = parts.number.select { $0 }
    let parts = parts
    let token = onSend(parts.number) { value in
      guard value == 1 else { return }
      let saved =
        source == .selected
        ? view.persist(in: parts.cacher, as: "key", clock: parts.clock)
        : persist(source, of: parts.number)
      reference.withLock { $0 = saved }
    }
    let other = view.observe { _ in }
    parts.number.value = 1
    let saved = reference.withLock { $0.take() }
    try await saved?.flush()
    #expect(parts.cacher.calls.isEmpty)
    parts.number.value = 2
    try await saved?.flush()
    #expect(parts.cacher.value() == 2)
    withExtendedLifetime((token, other)) {}
  }

  @Test(arguments: [false, true])
  func `a clear removes only the own key, also of several released saved states`(
    isRepository: Bool
  ) async throws {
    let repository = MuxRepository()
    try await parts.cacher.store([
      "foreign": CacheEntry(7, age: .zero), "a/b": CacheEntry(8, age: .zero),
      "ab": CacheEntry(9, age: .zero),
    ])
    var states: [SavedState?] = ["a", "b", "c"].map { key in
      parts.number.persist(in: parts.cacher, as: key, clock: parts.clock).register(in: repository)
    }
    parts.number.value = 5
    for state in states { try await state?.flush() }
    #expect(parts.cacher.entries.count == 6)
    if isRepository {
      states[0] = nil
      states[1] = nil
      try await repository.clearAll()
    } else {
      for state in states { try await state?.clear() }
    }
    #expect(Set(parts.cacher.entries.keys) == ["foreign", "a/b", "ab"])
    withExtendedLifetime(states) {}
  }

  @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.min), .nanoseconds(1)])
  func `extreme delays neither trap nor prevent a flush`(delay: Duration) async throws {
    let saved = parts.persist(delay: delay)
    parts.number.value = 1
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    parts.number.value = 2
    try await saved.clear()
    try await saved.flush()
    #expect(parts.cacher.value() == nil || delay < .zero)
  }

  @Test func `a change during the removals of a repository is written after them`() async throws {
    let repository = MuxRepository()
    let saved = parts.persist(delay: .zero).register(in: repository)
    parts.number.value = 1
    try await saved.flush()
    let gate = parts.cacher.hold(.remove)
    let clear = Task { try await repository.clearAll() }
    await gate.arrivals(1)
    parts.number.value = 2
    parts.cacher.release()
    gate.open()
    try await clear.value
    try await saved.flush()
    #expect(parts.cacher.value() == 2)
  }

  @Test func `values are released with no lock held, by writes and clears, too`() async throws {
    let census = Tally()
    let reference = Guarded<SavedState?>(nil)
    let source = Guarded<CurrentValue<Parcel>?>(nil)
    @Sendable func parcel(_ number: Int) -> Parcel {
      Parcel(number) {
        census.increment()
        let saved = reference.withLock { $0 }
        let source = source.withLock { $0 }
        withoutLocks {
          _ = saved?.statistics
          _ = source?.subscriberCount
        }
      }
    }
    let cacher = ControlledCacher<Parcel>()
    let number = CurrentValue(parcel(0))
    let saved = combine(number) { parcel($0.number) }
      .persist(in: cacher, as: "key", clock: parts.clock)
    reference.withLock { $0 = saved }
    source.withLock { $0 = number }
    for round in 1...5 {
      number.value = parcel(round)
      number.value = parcel(round)
      if round.isMultiple(of: 2) { try await saved.flush() }
      number.value = parcel(round)
      try await saved.clear()
    }
    cacher.entries = [:]
    #expect(census.value > 10)
    reference.withLock { $0 = nil }
    source.withLock { $0 = nil }
  }
}

/// Calls a closure on the sending thread, as the transform of a view.
func onSend<Source: StatefulBroadcaster>(
  _ source: Source,
  _ body: @escaping @Sendable (Source.Element) -> Void
) -> Subscription<Source.Element> {
  source.map { element in
    body(element)
    return element
  }
  .subscription(bufferingPolicy: .bufferingNewest(1))
}
