internal import Synchronization

/// The implementation of a ``SavedState``, which its last write uses after its release.
///
/// It follows the roots of the source by a joint, which is never behind them: what was sent before a clear, a flush or the
/// release is known then, whichever thread delivers it. The state is made from that when it is written.
final class SavingCore<Value: Sendable>: Sendable {
  /// A state of the roots that needs no write, because it was saved, cleared, or there from the beginning.
  private struct Base: Sendable {
    var roots: JointState
    /// The results for it, if they have been made.
    var results: [JointPlan.StepResult] = []
  }

  private struct State: Sendable {
    var saving: SavingState
    var timer = MovableTimer()
    var base: Base
    /// The round of the state that is being written.
    var writtenRound = Int.min
    /// The roots at the release.
    var last: JointState?
    /// The number of the last write that has failed, or of the last one before the release: what a later one has saved is
    /// newer.
    var failedWrite: Int?
    var handler: Handler?
    var hasEnded = false
  }

  let lane: SavingLane<Value>
  let key: String
  private let clock: any ErasedClock
  private let joint: Joint
  private let work: JointPlan.Work
  private let state: Locked<State>

  /// Creates a core that follows a source.
  ///
  /// - Parameters:
  ///   - source: The source, which the core does not keep alive.
  ///   - lane: The entry in which the states are saved.
  ///   - key: Its key.
  ///   - delay: The time from the first unsaved change to the write.
  ///   - clock: The clock of the delay.
  init(
    _ source: some StatefulBroadcaster<Value>,
    in lane: SavingLane<Value>,
    key: String,
    delay: Duration,
    clock: any Clock<Duration>
  ) {
    self.lane = lane
    self.key = key
    self.clock = clock.erased()
    var draft = JointPlan.Draft()
    let step = draft.place(source)
    let plan = JointPlan(draft, result: step)
    joint = Joint(plan.kinds)
    work = plan.work
    let saving = SavingState(delay: Nanoseconds(saturating: delay.limited))
    state = Locked(State(saving: saving, base: Base(roots: joint.newest)))
    follow(plan.roots)
  }

  deinit {
    lane.remove(self)
  }

  /// Subscribes to the roots; called once.
  private func follow(_ roots: [any JointRoot]) {
    joint.connect(to: roots)
    let subscription = joint.subscription(bufferingPolicy: .unbounded)
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(self)))
    var base = Base(roots: joint.newest)
    state.withLock { state in
      swap(&state.base, &base)
      state.saving.clear()
      if !state.hasEnded { state.handler = handler }
    }
    withExtendedLifetime(base) {}
    lane.add(self)
  }

  /// Changes the state, and does what is due.
  private func change(_ body: (inout State, _ now: Nanoseconds) -> Void) {
    let now = clock.nanoseconds()
    let (move, isDue, isReleased) = state.withLock { state in
      body(&state, now)
      let isDue = state.saving.takeDue(at: now)
      let move = state.timer.set(state.saving.deadline.map { .nanoseconds($0) })
      return (move, isDue, state.last != nil)
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
    while true {
      let period = lane.period
      // Before the state is read: a number after that of a release has a state after it.
      let number = lane.begin()
      let unsaved = unsaved()
      guard begin(unsaved?.base.roots.round), let (value, base) = unsaved else { return nil }
      var failure: (any Error)?
      do {
        try await lane.write(value, of: period)
      } catch {
        failure = error
      }
      let isCleared = lane.period != period
      if failure == nil, !isCleared {
        lane.noteSuccess(of: number)
        settle(base)
      }
      end(number, isSaved: failure == nil)
      // What has changed since a clear is still to be written.
      if !isCleared { return failure }
    }
  }

  /// Begins a write, unless there is nothing to write.
  ///
  /// - Parameter round: The round of the unsaved state; `nil` if there is none.
  /// - Returns: Whether it begins.
  private func begin(_ round: Int?) -> Bool {
    let newestWrite = lane.newestWrite
    var begins = false
    change { state, now in
      // After the release, a newer state of the key takes the place of one that could not be written, or not yet.
      let isOutdone = state.last != nil && state.failedWrite.map { newestWrite > $0 } ?? false
      begins = round != nil && !isOutdone
      if begins { state.saving.begin(at: now) } else { state.saving.giveUp() }
      state.writtenRound = round ?? .min
    }
    if !begins { round != nil ? settleLast() : noteChange() }
    return begins
  }

  private func end(_ write: Int, isSaved: Bool) {
    var isGivenUp = false
    change { state, now in
      if !isSaved {
        state.failedWrite = write
      } else if state.last == nil {
        state.failedWrite = nil
      }
      state.writtenRound = .min
      state.saving.finish(isSaved: isSaved, at: now)
      isGivenUp = state.last != nil && state.saving.isIdle
    }
    isGivenUp ? settleLast() : noteChange()
  }

  /// Notes that the source has changed, if it has since the last state that needs no write.
  private func noteChange() {
    let newest = joint.newest.round
    change { state, now in
      let round = state.last?.round ?? newest
      let known = max(state.base.roots.round, state.writtenRound)
      if round > known { state.saving.noteChange(at: now) }
    }
  }

  /// Notes that the state of the release needs no write anymore.
  private func settleLast() {
    if let last = state.withLock({ $0.last }) { settle(Base(roots: last)) }
  }

  /// Makes the newest state, if it has changed since the last one that needs no write.
  ///
  /// It calls user code.
  private func unsaved() -> (value: Value, base: Base)? {
    let (base, last) = state.withLock { ($0.base, $0.last) }
    let roots = last ?? joint.newest
    guard roots.round > base.roots.round else { return nil }
    let former = base.results.isEmpty ? work.results(for: base.roots) : base.results
    let results = work.results(for: roots, after: former)
    let element = work.element(of: results)
    let next = Base(roots: roots, results: results)
    guard element.changed > base.roots.round else {
      // Only other parts of the roots have changed.
      settle(next)
      return nil
    }
    return (Box<Value>.element(of: element.box), next)
  }

  /// Notes that a state needs no write anymore.
  private func settle(_ base: Base) {
    var base = base
    state.withLock { state in
      if base.roots.round >= state.base.roots.round { swap(&state.base, &base) }
    }
    withExtendedLifetime(base) {}
  }

  // MARK: - Clearing and ending

  /// Drops what is unsaved, also by other saved states of the key, and changes the cache.
  func drop(_ body: (KeyedCache<SingleKey, Value>) -> Void) {
    // In this order: a write that has not seen the clear of the states is one of an earlier period.
    for core in lane.cores { core.dropUnsaved() }
    lane.clear()
    body(lane.cache)
  }

  private func dropUnsaved() {
    settle(Base(roots: joint.newest))
    change { state, _ in
      state.failedWrite = nil
      state.saving.clear()
    }
  }

  /// Writes what is unsaved a last time, because the saved state was released.
  func release() {
    let roots = joint.newest
    var handler: Handler?
    change { state, now in
      state.last = roots
      state.failedWrite = lane.writeCount
      if roots.round > state.base.roots.round { state.saving.noteChange(at: now) }
      state.saving.release()
      handler = state.handler.take()
    }
    handler?.cancel()
  }
}

extension SavingCore: Handler.SenderCalls {
  var isOrdered: Bool { true }

  func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
    note()
  }

  func note() {
    // A notification can come later than a clear of what it notes.
    if !state.withLock({ $0.saving.isUnsaved || $0.last != nil }) { noteChange() }
  }

  func takeBack(in queue: HandlerQueue) {}

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
