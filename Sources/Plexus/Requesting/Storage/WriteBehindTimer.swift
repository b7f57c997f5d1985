/// The timer that writes changes without a call of `flush`.
///
/// It keeps the cache alive while there are changes that were not written, so that a map that is released loses nothing,
/// until so many writes have failed that a cacher that always fails would keep the cache alive indefinitely.
final class WriteBehindTimer: Sendable {
  private struct Pending: Sendable {
    var state: State
    /// The cache, while it has changes that were not written.
    var owner: (any AnyObject & Sendable)?
    /// The number of failed writes since the last change or successful write.
    var failures = 0
  }

  /// The number of failed writes in succession after which the cache is released.
  private static var patience: Int { 16 }

  private let pending: Locked<Pending>
  private let clock: any ErasedClock

  init(delay: Duration, clock: any Clock<Duration>) {
    pending = Locked(Pending(state: State(delay: Nanoseconds(saturating: delay))))
    self.clock = clock.erased()
  }

  /// Records that all changes so far are about to be written.
  func beginFlush() {
    pending.release { pending in
      pending.state.beginFlush()
      return pending.owner.take()
    }
  }

  /// Records a change.
  ///
  /// - Parameters:
  ///   - owner: The cache.
  ///   - makeFlush: Returns the closure that writes all changes and returns whether it succeeded; `nil` if the cache was
  ///     released.
  func noteChange(
    in owner: any AnyObject & Sendable,
    _ makeFlush: () -> @concurrent @Sendable () async -> Bool?
  ) {
    let now = clock.nanoseconds()
    let starts = pending.withLock { pending in
      if pending.owner == nil {
        pending.owner = owner
        pending.failures = 0
      }
      return pending.state.noteChange(at: now)
    }
    if starts { start(makeFlush()) }
  }

  /// Records that changes could not be written, which is tried again.
  ///
  /// - Parameters:
  ///   - owner: The cache.
  ///   - makeFlush: Returns the closure that writes all changes and returns whether it succeeded; `nil` if the cache was
  ///     released.
  func noteFailure(
    in owner: any AnyObject & Sendable,
    _ makeFlush: () -> @concurrent @Sendable () async -> Bool?
  ) {
    let now = clock.nanoseconds()
    let starts = pending.withLock { pending in
      pending.failures += 1
      if pending.failures < Self.patience { pending.owner = owner }
      pending.state.noteFailure(at: now)
      return pending.state.noteChange(at: now)
    }
    if starts { start(makeFlush()) }
  }

  private func start(_ flush: @escaping @concurrent @Sendable () async -> Bool?) {
    Task.detached { [self] in await run(flush) }
  }

  private func run(_ flush: @escaping @concurrent @Sendable () async -> Bool?) async {
    while true {
      let now = clock.nanoseconds()
      switch pending.withLock({ $0.state.wake(at: now) }) {
      case .ends:
        return
      case .sleeps(let deadline):
        // If the sleep has failed, the changes are written at once.
        if await clock.hasSlept(until: .nanoseconds(deadline)) { continue }
      case .flushes:
        break
      }
      let owner = pending.withLock { $0.owner }
      // Without a cache nothing is left to be written.
      guard let hasWritten = await flush() else { return end() }
      withExtendedLifetime(owner) {}
      if hasWritten { pending.withLock { $0.failures = 0 } }
    }
  }

  private func end() {
    beginFlush()
    _ = pending.withLock { $0.state.wake(at: .max) }
  }
}
