import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A value that is saved under a manual clock.
struct SavedNumber: Sendable {
  let clock = ManualClock()
  let cacher = ControlledCacher<Int>()
  let number = CurrentValue(0)

  func persist(delay: Duration = .seconds(5)) -> SavedState {
    number.persist(in: cacher, as: "key", delay: delay, clock: clock)
  }

  /// Waits until the next sleep on the clock ends in a given time.
  func sleeps(_ duration: Duration) async {
    let deadline = clock.now.advanced(by: duration)
    while clock.nextDeadline != deadline { await Task.detached {}.value }
  }

  /// Advances the clock to the end of a sleep.
  func sleep(_ duration: Duration) async {
    await sleeps(duration)
    clock.advance(by: duration)
  }
}

extension SavedState {
  /// Records the events of writes: their successes as `nil`, and their errors.
  nonisolated func writes() -> Recorder<String> {
    Recorder(
      events().compactMap { event in
        switch event {
        case .flushed: "saved"
        case .cacherFailed(let key, _): "failed for \(key ?? "all")"
        default: nil
        }
      }
    )
  }
}

@Suite(.fewAtOnce) struct `A saved state` {
  let parts = SavedNumber()

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a saved state writes the newest state once, after the delay from the first change`() async {
    let saved = parts.persist()
    let writes = saved.writes()
    parts.number.value = 1
    await parts.sleeps(.seconds(5))
    parts.clock.advance(by: .seconds(4))
    parts.number.value = 2
    #expect(parts.cacher.calls.isEmpty)
    await parts.sleep(.seconds(1))
    #expect(await writes.first(1) == ["saved"])
    #expect(parts.cacher.value() == 2)
    #expect(parts.cacher.count(of: .store) == 1)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a source that changes all the time is saved once per delay`() async {
    let saved = parts.persist()
    let writes = saved.writes()
    for second in 1...20 {
      parts.number.value = second
      await parts.sleeps(.seconds(5 - (second - 1) % 5))
      parts.clock.advance(by: .seconds(1))
      if second.isMultiple(of: 5) { _ = await writes.first(second / 5) }
    }
    #expect(parts.cacher.count(of: .store) == 4)
    #expect(parts.cacher.value() == 20)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a saved state does not write the state with which it began`() async throws {
    let saved = parts.persist()
    try await saved.flush()
    #expect(parts.clock.sleeperCount == 0)
    #expect(parts.cacher.calls.isEmpty)
    parts.number.value = 0
    try await saved.flush()
    #expect(parts.cacher.value() == 0, "an equal state is a change: states need not be comparable")
    try await saved.flush()
    #expect(parts.cacher.count(of: .store) == 1)
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay), arguments: [Duration.zero, .seconds(-1)])
  func `a saved state without a delay writes at once`(delay: Duration) async {
    let saved = parts.persist(delay: delay)
    let writes = saved.writes()
    parts.number.value = 1
    #expect(await writes.first(1) == ["saved"])
    #expect(parts.cacher.value() == 1)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a saved state has the key as it is, whatever that is`() async throws {
    for key in ["a/b", "", "%", "é"] {
      let saved = parts.number.persist(in: parts.cacher, as: key, clock: parts.clock)
      parts.number.value += 1
      try await saved.flush()
      #expect(try await parts.cacher.entry(forKey: key)?.value == parts.number.value)
      try await saved.clear()
      #expect(parts.cacher.entries.isEmpty)
      #expect(saved.name == key)
    }
  }

  @Test(.guarantee(.statesAreSavedAtTheEnd))
  func `a saved state writes what is unsaved when it is released`() async {
    var saved: SavedState? = parts.persist()
    let writes = saved?.writes()
    parts.number.value = 1
    saved = nil
    #expect(await writes?.finished() == ["saved"])
    #expect(parts.cacher.value() == 1)
    #expect(parts.number.subscriberCount == 0)
    parts.number.value = 2
    #expect(parts.cacher.count(of: .store) == 1)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedAtTheEnd), arguments: [false, true])
  func `a saved state writes what is unsaved when its source ends`(isReleased: Bool) async throws {
    var number: CurrentValue<Int>? = CurrentValue(0)
    let saved = number?.persist(in: parts.cacher, as: "key", clock: parts.clock)
    let writes = saved?.writes()
    number?.value = 1
    if !isReleased { number?.finish() }
    number = nil
    #expect(await writes?.first(1) == ["saved"])
    #expect(parts.cacher.value() == 1)
    try await saved?.clear()
    #expect(parts.cacher.value() == nil)
  }

  @Test(.guarantee(.statesAreSavedAtTheEnd))
  func `a saved state does not keep its source, and counts as one subscriber`() {
    weak var source: CurrentValue<Int>?
    var saved: SavedState?
    do {
      let number = CurrentValue(0)
      source = number
      saved = number.persist(in: parts.cacher, as: "key", clock: parts.clock)
      #expect(number.subscriberCount == 1)
    }
    #expect(source == nil)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedAtTheEnd))
  func `a release during a write writes what has changed since it began`() async {
    var saved: SavedState? = parts.persist(delay: .zero)
    let writes = saved?.writes()
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    await gate.arrivals(1)
    parts.cacher.release()
    parts.number.value = 2
    saved = nil
    gate.open()
    #expect(await writes?.finished() == ["saved", "saved"])
    #expect(parts.cacher.value() == 2)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `changes during a write are written together after it`() async {
    let saved = parts.persist(delay: .zero)
    let writes = saved.writes()
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    await gate.arrivals(1)
    parts.cacher.release()
    for number in 2...9 { parts.number.value = number }
    #expect(parts.cacher.count(of: .store) == 1)
    gate.open()
    #expect(await writes.first(2) == ["saved", "saved"])
    #expect(parts.cacher.value() == 9)
    #expect(parts.cacher.count(of: .store) == 2)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a part of a store is saved when it changes, without being stored`() async throws {
    struct App: Sendable { var volume = 3, text = "" }
    var store: Store<App, Int>? = Store(App()) { app, volume in
      app.volume = volume
      app.text += "."
    }
    let saved = store?.select(\.volume).persist(in: parts.cacher, as: "key", clock: parts.clock)
    store?.dispatch(3)
    try await saved?.flush()
    #expect(parts.cacher.calls.isEmpty, "the part has not changed")
    store?.dispatch(5)
    try await saved?.flush()
    #expect(parts.cacher.value() == 5)
    let writes = saved?.writes()
    store?.dispatch(7)
    store = nil
    #expect(await writes?.first(1) == ["saved"])
    #expect(parts.cacher.value() == 7)
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `a saved combination and a saved map write what they are made of`() async throws {
    let other = CurrentValue(10)
    let sum = combine(parts.number, other) { $0 + $1 }
    let saved = sum.map { 2 * $0 }.persist(in: parts.cacher, as: "key", clock: parts.clock)
    parts.number.value = 1
    other.value = 20
    try await saved.flush()
    #expect(parts.cacher.value() == 42)
  }
}
