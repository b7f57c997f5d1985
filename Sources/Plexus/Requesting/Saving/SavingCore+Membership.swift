/// The part of a ``SavingCore`` that does not depend on the type of the states.
protocol SavedStateCore: CacheMember {
  /// Writes what is unsaved a last time.
  func release()

  /// Returns a stream of the events of the entry.
  func events(bufferingPolicy: BufferingPolicy<CacheEvent>) -> AsyncStream<CacheEvent>
}

extension SavingCore: SavedStateCore {
  func events(bufferingPolicy: BufferingPolicy<CacheEvent>) -> AsyncStream<CacheEvent> {
    lane.cache.subscribe(bufferingPolicy: bufferingPolicy)
  }

  var name: String { key }

  var statistics: CacheStatistics? { lane.cache.currentStatistics }

  func flush() async throws {
    let failure = Locked<(any Error)?>(nil)
    await lane.queue.perform { [self] in
      let error = await write()
      failure.withLock { $0 = error }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }

  // MARK: - Clearing

  func invalidate() {
    drop { $0.invalidate() }
  }

  func pause() {
    drop { $0.pause() }
  }

  func resume() {
    drop { $0.resume() }
  }

  func removeStored() async throws {
    try await lane.cache.removeStored()
  }

  func clearMemory() {}

  func withholdCopies() {
    lane.cache.withholdCopies()
  }

  func releaseCopies() {
    lane.cache.releaseCopies()
  }

  var copies: (any StoredCopies)? { lane.cache.copies }

  var isShared: Bool { lane.cache.isShared }

  func forgetHere() {
    drop { $0.forgetHere() }
  }

  func removeEverywhere() async throws {
    try await lane.cache.removeEverywhere()
  }

  func forgetHere(tags: Set<CacheTag>) {}

  func removeEverywhere(tags: Set<CacheTag>) async throws {}
}
