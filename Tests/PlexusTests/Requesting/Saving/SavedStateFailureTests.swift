import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A saved state whose cacher fails` {
  let parts = SavedNumber()

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a failed write is tried again after growing pauses, and each failure is reported`() async {
    parts.cacher.fail(.store)
    let saved = parts.persist(delay: .zero)
    let writes = saved.writes()
    parts.number.value = 1
    var count = 1
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
      _ = await writes.first(count)
      // A change neither shortens the pause nor extends it.
      parts.number.value += 1
      await parts.sleeps(.seconds(pause))
      parts.clock.advance(by: .seconds(pause) - .nanoseconds(1))
      #expect(parts.cacher.count(of: .store) == count)
      parts.clock.advance(by: .nanoseconds(1))
      count += 1
    }
    _ = await writes.first(count)
    parts.cacher.mend()
    await parts.sleep(.seconds(60))
    let all = await writes.first(count + 1)
    #expect(all == Array(repeating: "failed for key", count: count) + ["saved"])
    #expect(parts.cacher.value() == 9)
    #expect(saved.statistics?.cacherErrors == count)
    // The pauses of the next failure begin with the shortest one.
    parts.cacher.fail(.store)
    parts.number.value = 10
    _ = await writes.first(count + 2)
    parts.cacher.mend()
    await parts.sleep(.seconds(1))
    #expect(await writes.first(count + 3).last == "saved")
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a flush writes without the pause of a failure, and throws the error`() async throws {
    parts.cacher.fail(.store)
    let saved = parts.persist()
    parts.number.value = 1
    for _ in 0..<2 {
      let error = await #expect(throws: CacherError.self) { try await saved.flush() }
      #expect(error?.keys == ["key"])
      #expect(error?.failures["key"] is Broken)
    }
    parts.cacher.mend()
    try await saved.flush()
    #expect(parts.cacher.value() == 1)
    #expect(parts.cacher.count(of: .store) == 3)
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a released saved state is freed after eight failures in succession`() async {
    weak var captured: Owner?
    var saved: SavedState?
    do {
      let owner = Owner()
      captured = owner
      saved = parts.number.map { number in withExtendedLifetime(owner) { number } }
        .persist(in: parts.cacher, as: "key", delay: .zero, clock: parts.clock)
    }
    parts.cacher.fail(.store)
    let writes = saved?.writes()
    parts.number.value = 1
    _ = await writes?.first(1)
    await parts.sleeps(.seconds(1))
    saved = nil
    for (index, pause) in [1, 2, 4, 8, 16, 32, 60].enumerated() {
      _ = await writes?.first(index + 2)
      #expect(captured != nil)
      await parts.sleep(.seconds(pause))
    }
    #expect(await writes?.finished().count == 9)
    while captured != nil { await Task.detached {}.value }
    #expect(parts.cacher.value() == nil)
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a released saved state is tried again although another one had saved before`() async throws
  {
    let former = CurrentValue(5)
    let other = former.persist(in: parts.cacher, as: "key", clock: parts.clock)
    former.value = 6
    try await other.flush()
    parts.cacher.fail(.store)
    var saved: SavedState? = parts.persist()
    let writes = saved?.writes()
    parts.number.value = 1
    saved = nil
    _ = await writes?.first(1)
    parts.cacher.mend()
    await parts.sleep(.seconds(5))
    #expect(await writes?.first(2).last == "saved")
    #expect(parts.cacher.value() == 1)
    withExtendedLifetime((saved, other)) {}
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a released saved state gives up once its successor has saved`() async throws {
    parts.cacher.fail(.store)
    var saved: SavedState? = parts.persist()
    let writes = saved?.writes()
    parts.number.value = 1
    saved = nil
    _ = await writes?.first(1)
    let successor = CurrentValue(5)
    let next = successor.persist(in: parts.cacher, as: "key", clock: parts.clock)
    successor.value = 6
    parts.cacher.mend()
    try await next.flush()
    await parts.sleep(.seconds(5))
    try await next.flush()
    #expect(parts.cacher.value() == 6)
    #expect(parts.cacher.count(of: .store) == 2)
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a cacher that takes too long has failed, and nothing is written before it has returned`()
    async throws
  {
    let saved = parts.persist(delay: .seconds(100))
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    let flush = Task { try await saved.flush() }
    await gate.arrivals(1)
    await parts.sleeps(.seconds(5))
    parts.clock.advance(by: .seconds(6))
    await #expect(throws: CacherError.self) { try await flush.value }
    parts.number.value = 2
    await #expect(throws: CacherError.self) { try await saved.flush() }
    #expect(parts.cacher.count(of: .store) == 1)
    parts.cacher.release()
    gate.open()
    // The attempts follow one another until the write has returned.
    while parts.cacher.value() != 2 {
      try? await saved.flush()
      await Task.detached {}.value
    }
    #expect(parts.cacher.count(of: .store) == 2)
  }

  @Test(.guarantee(.failedSavesAreTriedAgain))
  func `a clock that cannot sleep does not make attempts follow one another`() async throws {
    struct Restless: Clock {
      let base = ManualClock()
      var now: ManualClock.Instant { base.now }
      var minimumResolution: Duration { base.minimumResolution }
      func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        throw Broken()
      }
    }
    let saved = parts.number.persist(in: parts.cacher, as: "key", clock: Restless())
    let writes = saved.writes()
    parts.cacher.fail(.store)
    parts.number.value = 1
    #expect(await writes.first(1) == ["failed for key"])
    parts.cacher.mend()
    try await saved.flush()
    #expect(parts.cacher.count(of: .store) == 2)
    #expect(parts.cacher.value() == 1)
  }
}
