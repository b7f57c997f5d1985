import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Clearing a saved state` {
  let parts = SavedNumber()

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a clear drops what is unsaved, and nothing is written until the next change`() async throws
  {
    let saved = parts.persist()
    parts.number.value = 1
    try await saved.flush()
    parts.number.value = 2
    try await saved.clear()
    #expect(parts.cacher.value() == nil)
    try await saved.flush()
    #expect(parts.clock.sleeperCount == 0)
    #expect(parts.cacher.count(of: .store) == 1)
    parts.number.value = 3
    try await saved.flush()
    #expect(parts.cacher.value() == 3)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a state that is made for a write while it is cleared is not written`() async throws {
    let (saved, isClearing) = (Guarded<SavedState?>(nil), Guarded(false))
    let view = parts.number.map { number in
      if isClearing.withLock({ $0 }) { saved.withLock { $0 }?.invalidate() }
      return number
    }
    let state = view.persist(in: parts.cacher, as: "key", clock: parts.clock)
    saved.withLock { $0 = state }
    parts.number.value = 1
    isClearing.withLock { $0 = true }
    try await state.flush()
    saved.withLock { $0 = nil }
    #expect(parts.cacher.count(of: .store) == 0)
    #expect(parts.cacher.value() == nil)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a clear waits for a running write, and removes what it has written`() async throws {
    let saved = parts.persist(delay: .zero)
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    await gate.arrivals(1)
    parts.cacher.release()
    parts.number.value = 2
    let clear = Task { try await saved.clear() }
    gate.open()
    try await clear.value
    #expect(parts.cacher.value() == nil)
    try await saved.flush()
    #expect(parts.cacher.value() == nil)
    #expect(parts.cacher.count(of: .store) == 1)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a change during a clear is written after the removal`() async throws {
    let saved = parts.persist(delay: .zero)
    parts.number.value = 1
    try await saved.flush()
    let gate = parts.cacher.hold(.remove)
    let clear = Task { try await saved.clear() }
    await gate.arrivals(1)
    parts.number.value = 2
    parts.cacher.release()
    gate.open()
    try await clear.value
    try await saved.flush()
    #expect(parts.cacher.value() == 2)
    #expect(parts.cacher.calls.last?.operation == .store)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a failing clear throws, and the state is removed before the next write`() async throws {
    let saved = parts.persist()
    parts.number.value = 1
    try await saved.flush()
    parts.cacher.fail(.remove)
    await #expect(throws: CacherError.self) { try await saved.clear() }
    #expect(parts.cacher.value() == 1)
    parts.number.value = 2
    await #expect(throws: CacherError.self) { try await saved.flush() }
    #expect(parts.cacher.value() == 1)
    parts.cacher.mend()
    try await saved.flush()
    #expect(parts.cacher.value() == 2)
    try await saved.clear()
    #expect(parts.cacher.value() == nil)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a clear inside a write of the cacher removes what that write stores`() async throws {
    let saved = parts.persist()
    let rounds = Tally()
    parts.cacher.onCall { [weak saved] call in
      guard call.operation == .store, rounds.increment() == 1 else { return }
      try await saved?.clear()
    }
    parts.number.value = 1
    try await saved.flush()
    try await saved.flush()
    try await saved.removeStored()
    #expect(parts.cacher.value() == nil)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a repository clears and flushes saved states, and names the failed ones`() async throws {
    let repository = MuxRepository()
    let saved = parts.persist().register(in: repository)
    repository.register(saved)
    #expect(repository.count == 1)
    parts.number.value = 1
    try await repository.flushAll()
    #expect(parts.cacher.value() == 1)
    #expect(repository.statistics["key"]?.cacherErrors == 0)
    parts.number.value = 2
    parts.cacher.fail(.store)
    let error = await #expect(throws: MuxRepositoryError.self) { try await repository.flushAll() }
    #expect(error?.failures.map(\.id) == ["key"])
    parts.cacher.mend()
    repository.clearMemory()
    try await repository.flushAll()
    #expect(parts.cacher.value() == 2)
    parts.number.value = 3
    try await repository.clearAll()
    #expect(parts.cacher.value() == nil)
    try await repository.flushAll()
    #expect(parts.cacher.value() == nil)
    parts.number.value = 4
    try await repository.flushAll()
    #expect(parts.cacher.value() == 4)
    repository.unregister(saved)
    #expect(repository.count == 0)
  }

  @Test(.guarantee(.clearedStatesStayCleared), arguments: [false, true])
  func `a repository clears the last write of a saved state that was released`(
    hasSuccessor: Bool
  ) async throws {
    let repository = MuxRepository()
    var saved: SavedState? = parts.persist().register(in: repository)
    let writes = saved?.writes()
    let gate = parts.cacher.hold(.store)
    parts.number.value = 1
    saved = nil
    await gate.arrivals(1)
    let next = hasSuccessor ? parts.persist().register(in: repository) : nil
    let clear = Task { try await repository.clearAll() }
    gate.open()
    try await clear.value
    if !hasSuccessor { _ = await writes?.finished() }
    #expect(parts.cacher.value() == nil)
    withExtendedLifetime((saved, next)) {}
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a repository removes the stored copy of a saved state that was released`() async throws {
    let repository = MuxRepository()
    var saved: SavedState? = parts.persist().register(in: repository)
    let writes = saved?.writes()
    parts.number.value = 1
    saved = nil
    #expect(await writes?.finished() == ["saved"])
    try await repository.clearAll()
    #expect(parts.cacher.value() == nil)
    withExtendedLifetime(saved) {}
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `a clear by the successor drops what a released saved state still tries to write`()
    async throws
  {
    parts.cacher.fail(.store)
    var saved: SavedState? = parts.persist()
    let writes = saved?.writes()
    parts.number.value = 1
    saved = nil
    _ = await writes?.first(1)
    let next = parts.persist()
    parts.cacher.mend()
    try await next.clear()
    while parts.clock.sleeperCount > 0 { parts.clock.advance(by: .seconds(60)) }
    try await next.flush()
    #expect(parts.cacher.value() == nil)
    #expect(parts.cacher.count(of: .store) == 1)
  }

  @Test(.guarantee(.clearedStatesStayCleared))
  func `changes between pause and resume are not saved`() async throws {
    let saved = parts.persist()
    parts.number.value = 1
    saved.pause()
    parts.number.value = 2
    saved.resume()
    try await saved.flush()
    #expect(parts.cacher.count(of: .store) == 0)
    parts.number.value = 3
    try await saved.flush()
    #expect(parts.cacher.value() == 3)
  }
}
