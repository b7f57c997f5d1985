import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Flushing a saved state` {
  let parts = SavedNumber()

  @Test(.guarantee(.flushedStatesAreTheNewest))
  func `a flush writes at once, and the delay begins with the next change`() async throws {
    let saved = parts.persist()
    let writes = saved.writes()
    parts.number.value = 1
    await parts.sleeps(.seconds(5))
    parts.clock.advance(by: .seconds(4))
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    parts.number.value = 2
    await parts.sleep(.seconds(5))
    #expect(await writes.first(2).count == 2)
    #expect(parts.cacher.value() == 2)
  }

  @Test(.guarantee(.flushedStatesAreTheNewest))
  func `a flush during a write waits for it, and writes what has changed since`() async throws {
    let saved = parts.persist(delay: .zero)
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    await gate.arrivals(1)
    let first = Task { try await saved.flush() }
    parts.number.value = 2
    let second = Task { try await saved.flush() }
    parts.cacher.release()
    gate.open()
    try await first.value
    try await second.value
    #expect(parts.cacher.value() == 2)
    #expect(parts.cacher.count(of: .store) == 2)
  }

  @Test(.guarantee(.flushedStatesAreTheNewest))
  func `a flush completes even if its task is cancelled, before or while it waits`() async throws {
    let saved = parts.persist()
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await saved.flush()
    }
    parts.number.value = 1
    try await early.value
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    let gate = parts.cacher.hold(.store)
    parts.number.value = 2
    let late = Task { try await saved.flush() }
    await gate.arrivals(1)
    late.cancel()
    gate.open()
    try await late.value
    #expect(parts.cacher.value() == 2)
  }

  @Test(.guarantee(.flushedStatesAreTheNewest))
  func `a flush inside a call of the cacher does not wait for itself`() async throws {
    let saved = parts.persist()
    let rounds = Tally()
    let number = parts.number
    parts.cacher.onCall { [weak saved] call in
      guard call.operation == .store, rounds.increment() == 1 else { return }
      number.value = 2
      try await saved?.flush()
    }
    parts.number.value = 1
    try await saved.flush()
    try await saved.flush()
    #expect(parts.cacher.value() == 2)
  }

  @Test(.guarantee(.flushedStatesAreTheNewest))
  func `a flush writes every change that was made before it, whichever thread delivers it`()
    async throws
  {
    let (number, cacher) = (CurrentValue(0), ControlledCacher<Int>())
    let saved = [
      number.persist(in: cacher, as: "whole", clock: parts.clock),
      number.select { $0 }.persist(in: cacher, as: "part", clock: parts.clock),
    ]
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask { for _ in 0..<2_000 { number.update { $0 += 1 } } }
        group.addTask {
          for _ in 0..<100 {
            let own = number.update(increment)
            for (state, key) in zip(saved, ["whole", "part"]) {
              try? await state.flush()
              let stored = cacher.value(key) ?? 0
              #expect(stored >= own, "\(key) has \(stored)")
            }
          }
        }
      }
    }
  }

  @Test(.guarantee(.statesAreSavedAtTheEnd))
  func `a release saves the changes before it, whichever thread delivers them`() async {
    for round in 0..<100 {
      let cacher = ControlledCacher<Int>()
      var number: CurrentValue<Int>? = CurrentValue(0)
      var saved = number?.select { $0 }.persist(in: cacher, as: "key", clock: parts.clock)
      let writes = saved?.writes()
      let other = Task { [number] in for _ in 0..<200 { number?.update { $0 += 1 } } }
      var own = 0
      for _ in 0..<20 { own = number?.update(increment) ?? 0 }
      if round.isMultiple(of: 2) { number = nil }
      saved = nil
      _ = await writes?.finished()
      let stored = cacher.value() ?? 0
      #expect(stored >= own)
      await other.value
      withExtendedLifetime((number, saved)) {}
    }
  }
}

/// Increments a value and returns it.
@Sendable private func increment(_ value: inout Int) -> Int {
  value += 1
  return value
}
