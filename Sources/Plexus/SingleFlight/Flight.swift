// @unchecked Sendable and unchecked exclusivity: mutable state is atomic or behind a lock, except for `plan` and
// `attempt`. The plan is set under the lock of the key's shard before the launch; afterwards, the launching thread and
// then the flight's own task access it, and `isCounted` is only read. That task sets and reads the attempt.
// Unsafe: a checked continuation would allocate for each caller. A parked task is resumed exactly once, because the pure
// state returns it once, under the lock.

public import Synchronization

/// A fetch of one key, or a load of a publisher, in flight: the waiting callers, the tasks that work for it, their
/// priority, and the outcome until every caller has received it.
///
/// A fetch of several keys is a `BulkFlight`; the effects of a dispatch that is waited for have a flight as their scope.
///
/// The class is not generic. Its identity serves as a generation: an entry accepts changes only from the
/// flight that it refers to. Tasks of the fetch carry the flight as a task-local value, possibly long after its
/// end; a flight of a key that has ended holds no value, no task and no other flight.
@usableFromInline
class Flight: WaitNode, @unchecked Sendable {
  private struct State {
    var waiters: WaitListState<ParkedCaller>
    /// The outcome, for callers that have joined and not parked when it was set.
    var outcome: Outcome?
    var task: Task<Void, Never>?
    var otherTasks: [Task<Void, Never>] = []
    /// The fetch of several keys that this one is part of.
    var batch: BulkFlight?
    var predecessor: WaitNode?
    /// The stored copy that was read and is not new enough to be the answer.
    var readCopy: Outcome?
    /// Whether the tasks have finished.
    var hasEnded = false
    /// Whether the last caller has left.
    var wasLeft = false
    /// The number of joins that were counted.
    var joinCount: Int32 = 0
  }

  private let state: Locked<State>
  private let highestPriority: Atomic<UInt8>
  private let hasSettled = Atomic<Bool>(false)
  /// Whether the flight was cancelled, its fetch has begun, and another flight was queued behind it: one word, since whatever
  /// comes first counts.
  private let progress = Atomic<UInt8>(0)
  private static var cancelled: UInt8 { 1 }
  private static var begun: UInt8 { 2 }
  private static var followed: UInt8 { 4 }
  /// Whether the outcome has been delivered; orders the callers' reads after the creation of the outcome.
  private let hasFinished = Atomic<Bool>(false)

  /// The cache of the flight, if any.
  @usableFromInline final let source: Flight.Source?
  /// The hash of the key.
  @usableFromInline final let hash: UInt64
  /// Whether another flight must end before this one begins.
  private final let hasPredecessor: Bool
  @exclusivity(unchecked) @safe
  @usableFromInline final var plan = Plan()
  @exclusivity(unchecked) @safe
  @usableFromInline final var attempt = Attempt()
  /// The time at which the latest attempt began; `.min` before the first.
  ///
  /// The task of the flight sets it, and snapshots read it.
  @usableFromInline final let attemptStart = Atomic<Nanoseconds>(.min)

  /// - Parameters:
  ///   - source: The cache of the flight, if any.
  ///   - hash: The hash of its key.
  ///   - priority: The priority of the caller, if any.
  ///   - hasCaller: Whether a caller has joined, in ``WaitPlace/first``.
  ///   - predecessor: The flight that must end before this one begins, if any.
  @usableFromInline
  init(
    source: Flight.Source? = nil,
    hash: UInt64 = 0,
    priority: PriorityLevel = .none,
    hasCaller: Bool = false,
    predecessor: WaitNode? = nil
  ) {
    self.source = source
    self.hash = hash
    hasPredecessor = predecessor != nil
    highestPriority = Atomic(priority.rawValue)
    state = Locked(State(waiters: WaitListState(hasFirst: hasCaller), predecessor: predecessor))
    super.init()
    if let predecessor = predecessor as? Flight {
      predecessor.progress.bitwiseOr(Self.followed, ordering: .relaxed)
    }
  }

  /// Whether the flight begins some time after it was launched: together with others, or when it has a place.
  @usableFromInline final var isDelayed: Bool { source?.delaysFlights ?? false }

  /// The limit for the fetches of its cache, if there is one.
  var limit: FetchLimit? { source?.limit }

  /// Whether callers wait for it.
  var hasCallers: Bool { callerCount > 0 }

  /// Whether another flight has been queued behind it, or behind a part of it.
  var isFollowed: Bool { progress.load(ordering: .relaxed) & Self.followed != 0 }

  /// Returns whether no fetch waits for a place that it has, other than those of a limit.
  final func isWithoutPlace(outside limit: FetchLimit) -> Bool {
    self.limit.map { $0 === limit || !$0.hasPlace(self) } ?? true
  }

  /// The fetch that callers wait for: another one if this is a part of it.
  @usableFromInline var whole: Flight { self }

  /// The fetch of several keys that it is part of, if any.
  final var batch: BulkFlight? { state.withLock { $0.batch } }

  override final var predecessor: WaitNode? {
    state.withLock { $0.batch ?? $0.predecessor }
  }

  @usableFromInline override var isSettled: Bool {
    hasSettled.load(ordering: .acquiring)
  }

  override final var isOver: Bool { isSettled && limit?.hasPlace(self) != true }

  /// Marks the outcome as known.
  ///
  /// Called before any task can see the outcome. A task that has seen it can be waited for by tasks that have not
  /// been resumed yet, and that is not a deadlock.
  ///
  /// - Returns: The predecessor, to be released with no lock held.
  @discardableResult
  final func settle() -> WaitNode? {
    state.withLock { state in
      hasSettled.store(true, ordering: .releasing)
      return state.predecessor.take()
    }
  }

  /// Marks the flight as begun, so that it no longer waits for its predecessor.
  ///
  /// - Parameter batch: The fetch of several keys that it becomes part of, if any.
  @usableFromInline
  final func begin(in batch: BulkFlight? = nil) {
    guard hasPredecessor || batch != nil else { return }
    var predecessor: WaitNode?
    let isCancelled = state.withLock { state in
      predecessor = state.predecessor.take()
      state.batch = batch
      return batch != nil && self.isCancelled
    }
    withExtendedLifetime(predecessor) {}
    guard let batch else { return }
    batch.raise(to: priority)
    if isCancelled { batch.leave() }
  }
}

extension Flight {
  /// Whether its tasks have finished.
  final var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Whether the result of the fetch is used: not once the flight was cancelled or its outcome is known.
  @usableFromInline final var isNeeded: Bool { !isCancelled && !isSettled }

  /// The number of callers that have joined it while the events of its cache had listeners.
  @usableFromInline final var joinCount: Int { state.withLock { Int($0.joinCount) } }

  /// Counts a caller that has joined.
  @usableFromInline
  final func countJoin() {
    state.withLock { $0.joinCount &+= 1 }
  }
}

// MARK: - Waiting

extension Flight {
  @usableFromInline
  @safe
  struct ParkedCaller: Sendable {
    private let continuation: UnsafeContinuation<Outcome?, Never>

    fileprivate init(continuation: UnsafeContinuation<Outcome?, Never>) {
      unsafe self.continuation = continuation
    }

    fileprivate func resume(_ outcome: Outcome?) {
      unsafe continuation.resume(returning: outcome)
    }
  }

  /// Reserves a place for a caller.
  @usableFromInline
  final func join() -> WaitPlace {
    state.withLock { $0.waiters.join() }
  }

  /// The number of waiting callers.
  @usableFromInline final var callerCount: Int {
    state.withLock { $0.waiters.count }
  }

  /// Whether there have been callers, and all of them have left.
  final var isLeft: Bool {
    state.withLock { $0.wasLeft && $0.waiters.count == 0 }
  }

  /// Whether the outcome has been delivered to the callers.
  @usableFromInline final var isFinished: Bool {
    hasFinished.load(ordering: .acquiring)
  }

  /// Waits for the outcome, and raises the priority of the flight to that of the caller, including later
  /// escalations.
  ///
  /// - Parameters:
  ///   - place: The place of the caller.
  ///   - onCancel: Called when the caller's task is cancelled, possibly before or after the wait. It must call
  ///     ``leave(_:)``.
  /// - Returns: The outcome, or `nil` if the caller has left.
  @inline(__always)
  final func wait(in place: WaitPlace, onCancel: @Sendable () -> Void) async -> Outcome? {
    // The async frame exists once per waiting caller: keep the nesting shallow and suspend in one place only, to
    // keep it small.
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      return await park(in: place, onCancel: onCancel)
    }
    return await withTaskPriorityEscalationHandler(
      operation: { await park(in: place, onCancel: onCancel) },
      onPriorityEscalated: { _, priority in self.raise(to: PriorityLevel(priority)) }
    )
  }

  /// Waits for the outcome, and raises the priority of the flight to the present one of the caller.
  @inline(__always)
  nonisolated(nonsending) private final func park(
    in place: WaitPlace,
    onCancel: @Sendable () -> Void
  ) async -> Outcome? {
    // Later escalations call `onPriorityEscalated`.
    raise(to: .current)
    return await withTaskCancellationHandler(
      operation: { await park(in: place) },
      onCancel: onCancel,
      isolation: #isolation
    )
  }

  /// Waits for the outcome without handling cancellation.
  @inline(__always)
  nonisolated(nonsending) final func park(in place: WaitPlace) async -> Outcome? {
    if isFinished, let outcome = takeOutcome(in: place) { return outcome }
    let outcome = await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
      unsafe park(ParkedCaller(continuation: continuation), in: place)
    }
    // A caller that is resumed before it has suspended needs its own acquire barrier.
    _ = hasFinished.load(ordering: .acquiring)
    return outcome
  }

  /// Returns the outcome to a caller that has joined and need not park, unless it has left.
  private final func takeOutcome(in place: WaitPlace) -> Outcome? {
    state.withLock { state in
      guard state.waiters.withdrawIfFinished(place) else { return nil }
      return state.waiters.isOver ? state.outcome.take() : state.outcome
    }
  }

  private final func park(_ caller: ParkedCaller, in place: WaitPlace) {
    // The outcome may have been kept only for this caller; it is then released outside the lock.
    let (parking, outcome) = state.withLock { state in
      let parking = state.waiters.park(caller, in: place)
      return (parking, state.waiters.isOver ? state.outcome.take() : state.outcome)
    }
    if parking != .parked { caller.resume(parking == .finished ? outcome : nil) }
  }

  /// The effects of a caller's departure, to be carried out with no lock held.
  @usableFromInline
  struct Departure: Sendable {
    fileprivate var parked: ParkedCaller?
    /// Whether the caller was removed by this call.
    var hasLeft = false
    /// Whether it was the last caller.
    var isLast = false

    /// Resumes the caller without an outcome.
    func resume() {
      parked?.resume(nil)
    }
  }

  /// Removes a caller unless the outcome is known.
  final func leave(_ place: WaitPlace) -> Departure {
    state.withLock { state in
      let (hasLeft, parked) = state.waiters.leave(place)
      let isLast = hasLeft && state.waiters.count == 0
      if isLast { state.wasLeft = true }
      return Departure(parked: parked, hasLeft: hasLeft, isLast: isLast)
    }
  }

  /// Removes a caller that has joined and will not wait.
  final func withdraw(_ place: WaitPlace) {
    state.release { state in
      state.waiters.withdraw(place)
      return state.waiters.isOver ? state.outcome.take() : nil
    }
  }

  /// Delivers the outcome to every caller; later outcomes are ignored.
  @usableFromInline
  final func finish(_ outcome: Outcome) {
    var predecessor: WaitNode?
    let waiting = state.withLock { deliver(outcome, &$0, &predecessor) }
    waiting.each { $0.resume(outcome) }
    withExtendedLifetime(predecessor) {}
  }

  /// Marks the outcome as known, and as delivered if it is given.
  ///
  /// - Returns: The callers to resume, with no lock held.
  @inline(__always)
  private final func deliver(
    _ outcome: Outcome?,
    _ state: inout State,
    _ predecessor: inout WaitNode?
  ) -> WaitListState<ParkedCaller>.Waiting {
    hasSettled.store(true, ordering: .releasing)
    predecessor = state.predecessor.take()
    guard let outcome, !state.waiters.isFinished else { return .init() }
    let waiting = state.waiters.finish()
    hasFinished.store(true, ordering: .releasing)
    if !state.waiters.isOver { state.outcome = outcome }
    return waiting
  }
}

// MARK: - Tasks

extension Flight {
  /// The highest priority of all callers so far.
  @usableFromInline final var priority: PriorityLevel {
    PriorityLevel(rawValue: highestPriority.load(ordering: .relaxed))
  }

  /// Whether the flight was cancelled.
  @usableFromInline final var isCancelled: Bool {
    progress.load(ordering: .relaxed) & Self.cancelled != 0
  }

  /// Whether the fetch has begun.
  final var hasBegun: Bool { progress.load(ordering: .relaxed) & Self.begun != 0 }

  /// Marks the fetch as begun, before its closure is called.
  ///
  /// - Returns: Whether the closure can be called: not if the flight was cancelled before.
  final func beginFetch() -> Bool {
    progress.bitwiseOr(Self.begun, ordering: .relaxed).oldValue & Self.cancelled == 0
  }

  /// Starts a detached task for the flight, with the priority of its callers.
  ///
  /// It inherits nothing from the current task except, if requested, its task-local values: not those by which waits
  /// are recognized, since it does not belong to the work of the current task. If the flight has been cancelled, the
  /// task is cancelled immediately.
  @usableFromInline
  @discardableResult
  final func start(
    _ operation: @escaping @concurrent @Sendable () async -> Void
  ) -> Task<Void, Never> {
    addTask { priority in
      plan.inheritsTaskLocals
        ? Task(priority: priority) {
          await WaitScope.local.withValue(nil) { await SerialQueue.outside(operation) }
        } : Task.detached(priority: priority) { await operation() }
    }
  }

  /// Makes a task for the flight, with the priority of its callers.
  ///
  /// If the flight has been cancelled, the task is cancelled immediately.
  @usableFromInline
  @discardableResult
  @inline(__always)
  final func addTask(_ make: (TaskPriority?) -> Task<Void, Never>) -> Task<Void, Never> {
    let initial = priority
    let task = make(initial.taskPriority)
    state.withLock { state in
      guard !state.hasEnded else { return }
      if state.task == nil { state.task = task } else { state.otherTasks.append(task) }
    }
    // Both are set before the tasks are read in `cancel()` and `raise(to:)`, so no change is missed.
    if isCancelled { task.cancel() }
    let current = priority
    if current > max(initial, .background) { Self.escalate(task, to: current) }
    return task
  }

  /// The stored copy that was read and is not new enough to be the answer.
  final var readCopy: Outcome? { state.withLock { $0.readCopy } }

  /// Records the stored copy that was read, if any.
  final func note(readCopy copy: Outcome?) {
    var copy = copy
    // The former one is released after unlocking.
    state.withLock { swap(&$0.readCopy, &copy) }
  }

  /// Removes a task that has ended.
  final func remove(_ task: Task<Void, Never>) {
    state.withLock { state in
      if state.task == task { state.task = nil }
      state.otherTasks.removeAll { $0 == task }
    }
  }

  /// Raises the priority of the flight's tasks to that of a caller.
  final func raise(to priority: PriorityLevel) {
    guard priority.rawValue > highestPriority.load(ordering: .relaxed) else { return }
    let (task, others, batch) = state.withLock {
      state -> (Task<Void, Never>?, [Task<Void, Never>], BulkFlight?) in
      guard priority.rawValue > highestPriority.load(ordering: .relaxed) else {
        return (nil, [], nil)
      }
      highestPriority.store(priority.rawValue, ordering: .relaxed)
      return (state.task, state.otherTasks, state.batch)
    }
    if let task { Self.escalate(task, to: priority) }
    for task in others { Self.escalate(task, to: priority) }
    batch?.raise(to: priority)
    if let limit = source?.limit { limit.raise(self, to: priority) }
  }

  private static func escalate(_ task: Task<Void, Never>, to level: PriorityLevel) {
    guard let priority = level.taskPriority else { return }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      task.escalatePriority(to: priority)
    } else {
      // Waiting for a task raises its priority.
      Task.detached(priority: priority) { await task.value }
    }
  }

  /// Cancels all current and later tasks of the flight.
  ///
  /// - Returns: Whether the statistics include a fetch that will not begin because of this call.
  @usableFromInline
  @discardableResult
  final func cancel() -> Bool {
    let (task, others, batch, former) = state.withLock {
      state -> (Task<Void, Never>?, [Task<Void, Never>], BulkFlight?, UInt8) in
      let former = progress.bitwiseOr(Self.cancelled, ordering: .relaxed).oldValue
      return (
        state.task, state.otherTasks, former & Self.cancelled == 0 ? state.batch : nil, former
      )
    }
    limit?.forget(self)
    task?.cancel()
    for task in others { task.cancel() }
    batch?.leave()
    return plan.isCounted && former & (Self.cancelled | Self.begun) == 0
  }

  /// Marks the outcome as known, before it is stored where any task can see it.
  @usableFromInline
  final func noteOutcome() {
    hasSettled.store(true, ordering: .releasing)
  }

  /// Marks the tasks of the flight as finished, and delivers the outcome to every caller, unless they have an earlier
  /// one.
  ///
  /// - Parameter outcome: The outcome; `nil` if no caller waits for this flight itself.
  /// - Returns: The fetch of several keys that it was part of, which must be notified.
  @usableFromInline
  @discardableResult
  final func end(with outcome: Outcome? = nil) -> BulkFlight? {
    let previous = plan.previous.take()
    // What is taken out is released with no lock held.
    var task: Task<Void, Never>?
    var otherTasks: [Task<Void, Never>] = []
    var readCopy: Outcome?
    var predecessor: WaitNode?
    var batch: BulkFlight?
    var waiting = WaitListState<ParkedCaller>.Waiting()
    let isCancelled = state.withLock { state in
      state.hasEnded = true
      task = state.task.take()
      if !state.otherTasks.isEmpty { swap(&otherTasks, &state.otherTasks) }
      readCopy = state.readCopy.take()
      batch = state.batch.take()
      waiting = deliver(outcome, &state, &predecessor)
      // A later cancellation finds no batch to notify.
      return self.isCancelled
    }
    if let outcome { waiting.each { $0.resume(outcome) } }
    withExtendedLifetime((previous, task, otherTasks, readCopy, predecessor)) {}
    return isCancelled ? nil : batch
  }
}
