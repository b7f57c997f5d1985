internal import Synchronization

/// Keeps the value of one key up to date while it has live subscriptions.
///
/// It does not keep the cache alive. Its lock is acquired before that of a shard, never the other way round.
@usableFromInline
final class LiveFetching<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct State: Sendable {
    var live = LiveState()
    /// The fetch in flight for the subscriptions.
    var fetch: Task<Void, Never>?
    var timer = MovableTimer()
    /// The tasks that iterate the signals of each subscription.
    var signals: [UInt64: [Task<Void, Never>]] = [:]
  }

  /// The work to be done with no lock held.
  private struct Work: Sendable {
    var effects = LiveState.Effects()
    var cancelledFetch: Task<Void, Never>?
    var timer: MovableTimer.Move?
  }

  private let key: Key
  private let hash: UInt64
  private weak let cache: KeyedCache<Key, Value>?
  private let state = Locked(State())
  /// The number of live subscriptions, counted under the lock of the shard.
  private let users = Atomic<Int>(0)

  init(_ key: Key, hash: UInt64, in cache: KeyedCache<Key, Value>) {
    self.key = key
    self.hash = hash
    self.cache = cache
  }

  /// Counts a live subscription; called under the lock of the shard.
  func addUser() {
    users.add(1, ordering: .relaxed)
  }

  /// Ends the counting of a live subscription; called under the lock of the shard.
  ///
  /// - Returns: Whether it was the last one.
  func removeUser() -> Bool {
    users.subtract(1, ordering: .relaxed).newValue == 0
  }

  /// Adds a live subscription.
  func join(_ id: UInt64, _ refetching: Refetching) {
    change { live, sight, now in
      live.join(
        id,
        isWhenStale: refetching.isWhenStale,
        // A shorter interval than the clock can measure is still one.
        interval: refetching.interval.map { max(Nanoseconds(saturating: $0), 1) },
        sight(),
        at: now
      )
    }
    guard !refetching.signals.isEmpty else { return }
    let tasks = refetching.signals.map { signals in
      Task.detached(priority: Task.currentPriority) { [weak self] in
        await signals { self?.receiveSignal(for: id) ?? false }
      }
    }
    state.withLock { $0.signals[id] = tasks }
  }

  /// Removes a live subscription.
  func leave(_ id: UInt64) {
    let tasks = state.withLock { $0.signals.removeValue(forKey: id) }
    for task in tasks ?? [] { task.cancel() }
    change { live, _, now in live.leave(id, at: now) }
  }

  /// Cancels all tasks, because the cache has been released.
  func finish() {
    let (signals, fetch, sleeper) = state.withLock { state in
      defer { (state.signals, state.fetch) = ([:], nil) }
      return (state.signals, state.fetch, state.timer.clear())
    }
    for task in signals.values.joined() { task.cancel() }
    fetch?.cancel()
    sleeper?.cancel()
  }

  private func receiveSignal(for id: UInt64) -> Bool {
    guard !Task.isCancelled else { return false }
    change { live, sight, now in live.signal(sight(), at: now) }
    return true
  }

  /// Marks the value as changed at its origin.
  @usableFromInline
  func refresh() {
    change { live, sight, _ in live.refresh(sight()) }
  }

  /// Looks the value up again: another process may have changed it.
  func confirm() {
    change { live, sight, _ in live.confirm(sight()) }
  }

  /// Handles the removal of the value.
  ///
  /// - Parameter isSignedOut: Whether nothing is fetched until the value is requested.
  @usableFromInline
  func clear(isSignedOut: Bool) {
    change { live, _, _ in live.clear(isSignedOut: isSignedOut) }
  }

  /// Handles a change of the value.
  func note() {
    change { live, sight, now in
      live.note(sight(), at: now)
      return LiveState.Effects()
    }
  }

  // MARK: - Effects

  private func change(
    _ event: (inout LiveState, _ sight: () -> LiveState.Sight, _ now: Nanoseconds) ->
      LiveState.Effects
  ) {
    guard let cache else { return }
    let clock = cache.liveClock
    // Both clocks can be the user's. The clock of the timer is read first: if time passes in between, the timer is early,
    // and sleeps again, rather than late.
    let clockNow = clock.now()
    let now = cache.time.now()
    let work = state.withLock { state in
      var work = Work()
      work.effects = event(&state.live, { cache.sight(of: key, hash: hash) }, now)
      if work.effects.leavesFetch || work.effects.fetch != nil {
        work.cancelledFetch = state.fetch.take()
      }
      let wake = state.live.nextWake.map { clockNow + .nanoseconds($0.subtractingSaturating(now)) }
      work.timer = state.timer.set(wake?.limited, isExact: true)
      return work
    }
    work.cancelledFetch?.cancel()
    work.timer?.perform(on: clock) { [weak self] sleeper, hasSlept in
      self?.wake(sleeper, hasSlept: hasSlept)
      return nil
    }
    if let fetch = work.effects.fetch { begin(fetch, in: cache) }
  }

  private func begin(_ fetch: LiveState.Fetch, in cache: KeyedCache<Key, Value>) {
    // Another thread may have been faster.
    guard state.withLock({ $0.live.isRunning(fetch.number) }) else { return }
    let place = cache.joinFetch(of: key, hash: hash, for: fetch)
    let task = Task.detached(priority: Task.currentPriority) { [weak self] in
      await cache.wait(for: place)
      self?.end(fetch.number)
    }
    let isWanted = state.withLock { state in
      guard state.live.isRunning(fetch.number) else { return false }
      state.fetch = task
      return true
    }
    if !isWanted { task.cancel() }
  }

  private func end(_ number: Int) {
    change { live, sight, now in
      live.finish(number, sight(), at: now)
      return LiveState.Effects()
    }
  }

  private func wake(_ sleeper: MovableTimer.Sleeper, hasSlept: Bool) {
    let isCurrent = state.withLock { state in
      guard state.timer.isCurrent(sleeper) else { return false }
      return state.timer.clear() != nil
    }
    guard isCurrent, hasSlept else { return }
    change { live, sight, now in live.wake(sight(), at: now) }
  }
}
