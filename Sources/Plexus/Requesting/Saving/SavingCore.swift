internal import Synchronization

/// The implementation of a ``SavedState``, which its last write uses after its release.
///
/// It is a handler that the sending threads call: a change only notes that there is one. The newest state is read from the
/// source when it is written.
final class SavingCore<Value: Sendable>: Sendable {
  private struct State: Sendable {
    var saving: SavingState
    var timer = MovableTimer()
    /// The newest element that is not saved, for the time after the release of the source.
    var newest: Value?
    /// The number of the element with which the subscription began, which needs no write.
    var first: Int?
    /// The number of the newest element that was received, or dropped by a clear before it was.
    var received = Int.min
    /// The number of the first element after the last clear.
    var cleared = Int.min
    var handler: Handler?
    weak var stage: (any DerivedStage)?
    var hasEnded = false
    var isReleased = false
    /// The number of states in the lane when it saved last, or was released.
    var saves = 0

    /// Whether no further element is to be saved, because the newest one was read at the release.
    var isDetached: Bool { isReleased && handler == nil }

    /// Replaces the newest element, which the caller releases with no lock held.
    mutating func receive(_ element: inout Value?, _ sequence: Int) {
      swap(&newest, &element)
      received = max(received, sequence)
    }

    /// Notes that elements before a number are not to be saved.
    mutating func skip(before end: Int) {
      cleared = end
      received = max(received, end - 1)
    }
  }

  let lane: SavingLane<Value>
  let key: String
  private let clock: any ErasedClock
  private let state: Locked<State>
  /// Returns the current state of the source while that exists.
  private let current: @Sendable () -> Value?

  /// Creates a core that follows no source yet.
  ///
  /// - Parameters:
  ///   - lane: The entry in which the states are saved.
  ///   - key: Its key.
  ///   - delay: The time from the first unsaved change to the write.
  ///   - clock: The clock of the delay.
  ///   - current: Returns the current state of the source while that exists.
  init(
    _ lane: SavingLane<Value>,
    key: String,
    delay: Duration,
    clock: any Clock<Duration>,
    current: @escaping @Sendable () -> Value?
  ) {
    self.lane = lane
    self.key = key
    self.clock = clock.erased()
    self.current = current
    state = Locked(State(saving: SavingState(delay: Nanoseconds(saturating: delay.limited))))
  }

  /// Subscribes to the source; called once.
  func follow(_ source: some Broadcaster<Value>) {
    let subscription = source.subscription(bufferingPolicy: .unbounded)
    let subscriber = subscription.subscriber
    let position = subscriber.position.load(ordering: .relaxed)
    let first = subscriber.replayCount > 0 ? position - 1 : nil
    let stage = subscriber.core.stage
    state.withLock { state in
      state.first = first
      state.stage = stage
    }
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(self)))
    state.withLock { state in
      if !state.hasEnded { state.handler = handler }
    }
  }

  /// Changes the state, and does what is due.
  private func change(_ body: (inout State, _ now: Nanoseconds) -> Void) {
    let now = clock.nanoseconds()
    let (move, isDue, isReleased) = state.withLock { state in
      body(&state, now)
      let isDue = state.saving.takeDue(at: now)
      let move = state.timer.set(state.saving.deadline.map { .nanoseconds($0) })
      return (move, isDue, state.isReleased)
    }
    if let move {
      // After the release, the timer of a further attempt keeps the core alive.
      let keeper = isReleased ? self : nil
      move.perform(on: clock) { [weak self] sleeper, hasSlept in
        defer { withExtendedLifetime(keeper) {} }
        return self?.wake(sleeper, hasSlept: hasSlept)
      }
    }
    if isDue { enqueueWrite() }
  }

  /// Handles the waking of a sleeper.
  ///
  /// - Parameters:
  ///   - sleeper: The sleeper.
  ///   - hasSlept: Whether the clock has let it sleep. If not, a change is due, but no further attempt is.
  /// - Returns: The time at which it wakes next, if any.
  private func wake(_ sleeper: MovableTimer.Sleeper, hasSlept: Bool) -> Duration? {
    let now = clock.nanoseconds()
    let (isDue, next) = state.withLock { state -> (Bool, Duration?) in
      guard state.timer.isCurrent(sleeper) else { return (false, nil) }
      // A clock that cannot sleep must not make attempts follow one another without a pause.
      guard hasSlept || !state.saving.isPausing else {
        return (false, state.timer.sleep(until: nil))
      }
      let isDue = state.saving.takeDue(at: hasSlept ? now : .max)
      return (isDue, state.timer.sleep(until: state.saving.deadline.map { .nanoseconds($0) }))
    }
    if isDue { enqueueWrite() }
    return next
  }

  // MARK: - Writing

  private func enqueueWrite() {
    lane.queue.add { [self] in _ = await write() }
  }

  /// Writes what is unsaved; called in the queue of the lane.
  ///
  /// - Returns: The error of the cacher, if it has failed.
  func write() async -> (any Error)? {
    let (period, now, saves) = (lane.period, clock.nanoseconds(), lane.saves)
    let isBehind = isBehind
    let begins = state.withLock { state in
      if isBehind { state.saving.noteChange(at: now, in: period) }
      // Another saved state has saved a newer state under the key.
      if state.isReleased, state.saves != saves { state.saving.giveUp() }
      return state.saving.begin(in: period)
    }
    var failure: (any Error)?
    if begins, let value = current() ?? state.withLock({ $0.newest }) {
      do {
        try await lane.write(value, of: period)
        lane.countSave()
      } catch {
        failure = error
      }
    }
    var garbage: Value?
    change { state, now in
      if begins {
        state.saving.finish(isSaved: failure == nil, at: now, in: lane.period)
        if failure == nil { state.saves = max(state.saves, saves + 1) }
      }
      if state.saving.isIdle { garbage = state.newest.take() }
    }
    withExtendedLifetime(garbage) {}
    return failure
  }

  /// Whether another thread is still delivering an element to the core, or to a view in front of it.
  private var isBehind: Bool {
    let (handler, stage) = state.withLock { ($0.handler, $0.stage) }
    guard let handler else { return false }
    // In this order: an element is in the queue before the view has passed it.
    if stage?.isUpToDate == false { return true }
    let end = handler.queue.end
    return state.withLock { $0.received } < end - 1
  }

  // MARK: - Clearing and ending

  /// Drops what is unsaved, also by other saved states of the key, and changes the cache.
  func drop(_ body: (KeyedCache<SingleKey, Value>) -> Void) {
    // What other threads are still delivering was sent before.
    state.withLock { state in
      if let handler = state.handler { state.skip(before: handler.queue.end) }
    }
    lane.clear()
    body(lane.cache)
    var garbage: Value?
    change { state, _ in
      state.saving.clear(lane.period)
      if state.saving.isIdle { garbage = state.newest.take() }
    }
    withExtendedLifetime(garbage) {}
  }

  /// Writes what is unsaved a last time, because the saved state was released.
  func release() {
    let isBehind = isBehind
    let saves = lane.saves
    // It has the changes that other threads are still delivering; without its source, these are waited for.
    var newest = isBehind ? current() : nil
    var handler: Handler?
    change { state, now in
      state.isReleased = true
      state.saves = saves
      if isBehind { state.saving.noteChange(at: now, in: lane.period) }
      state.saving.release()
      if newest != nil { swap(&state.newest, &newest) } else if isBehind { return }
      handler = state.handler.take()
    }
    handler?.cancel()
    withExtendedLifetime(newest) {}
  }
}

extension SavingCore: Handler.SenderCalls {
  var isOrdered: Bool { true }

  func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
    var element = isWanted ? Box<Value>.element(of: item.box) : nil
    let period = lane.period
    var isReleased = false
    let isNoted = state.withLock { state in
      let isOld = item.sequence == state.first || item.sequence < state.cleared
      guard isWanted, !isOld, !state.isDetached else {
        state.received = max(state.received, item.sequence)
        return true
      }
      guard !state.isReleased, state.saving.isUnsaved(in: period) else { return false }
      state.receive(&element, item.sequence)
      return true
    }
    guard !isNoted else { return withExtendedLifetime(element) {} }
    change { state, now in
      guard !state.isDetached else { return }
      state.receive(&element, item.sequence)
      state.saving.noteChange(at: now, in: period)
      isReleased = state.isReleased
    }
    if isReleased, !isBehind { state.withLock { $0.handler.take() }?.cancel() }
    withExtendedLifetime(element) {}
  }

  func note() {}

  func takeBack(in queue: HandlerQueue) {
    state.release { $0.newest.take() }
  }

  func removeOrphans() {}

  func end() {
    var handler: Handler?
    change { state, _ in
      state.hasEnded = true
      state.saving.endSource()
      handler = state.handler.take()
    }
    withExtendedLifetime(handler) {}
  }
}
