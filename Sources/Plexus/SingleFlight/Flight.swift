// @unchecked Sendable and unchecked exclusivity: the fields that change are behind a lock or are atomic; `previous`, `readsFirst`,
// `takesStoredCopy`, `remembersFailure` and `inheritsTaskLocals` are set under the lock of the key's shard before the flight is launched, and read by the
// flight's own task afterwards, which also sets and reads `generation` and `duration`. Unsafe because a checked continuation would allocate for each of many
// callers: a parked task is resumed exactly once, since the pure state hands it out once, under the lock.

internal import Synchronization

/// One fetch of one key, or one load of a publisher, in flight: the callers that wait for it, the tasks that
/// work for it, their priority, and the outcome until every caller has seen it.
///
/// It is not generic. Its identity is its generation: an entry refers to the flight that may change it, and
/// ignores every other one. Tasks of the fetch carry it as a task-local value, possibly long after its end;
/// a flight that has ended holds no value, no task and no other flight.
@usableFromInline
class Flight: WaitNode, @unchecked Sendable {
  private struct State {
    var waiters = WaitListState<ParkedCaller>()
    /// The outcome, for callers that have joined and not parked when it came.
    var outcome: Outcome?
    var task: Task<Void, Never>?
    var otherTasks: [Task<Void, Never>] = []
    /// The fetch of several keys that this one is part of.
    var batch: BulkFlight?
    var predecessor: WaitNode?
    /// The stored copy that was read, and is not new enough to be the answer.
    var readCopy: Outcome?
    /// Whether the tasks have done their work.
    var hasEnded = false
  }

  private let state: Locked<State>
  private let highestPriority: Atomic<UInt8>
  private let hasSettled = Atomic<Bool>(false)
  private let hasBeenCancelled = Atomic<Bool>(false)
  /// Whether the callers have been given the outcome; it orders their reading after its making.
  private let hasFinished = Atomic<Bool>(false)

  /// The cache that the flight belongs to, if it belongs to one.
  @usableFromInline final let source: Flight.Source?
  /// The hash of the key.
  @usableFromInline final let hash: UInt64
  /// The value in memory that the fetch renews.
  @exclusivity(unchecked) @safe
  @usableFromInline final var previous: Outcome?
  /// Whether the stored copy is read before anything is fetched.
  @exclusivity(unchecked) @safe
  @usableFromInline final var readsFirst = false
  /// Whether the fetch is counted in the statistics already.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isCounted = false
  /// Whether a stored copy is an answer in place of a new value.
  @exclusivity(unchecked) @safe
  @usableFromInline final var takesStoredCopy = false
  /// Whether the failure of the fetch is remembered as the policy says.
  @exclusivity(unchecked) @safe
  @usableFromInline final var remembersFailure = true
  /// Whether the tasks of the flight have the task-local values of the task that starts them.
  @exclusivity(unchecked) @safe
  @usableFromInline final var inheritsTaskLocals = false
  /// The time that the fetch has taken, set by the flight's own task at its end.
  @exclusivity(unchecked) @safe
  @usableFromInline final var duration = Duration.zero
  /// How much had been removed from the cacher before the fetch began, if the cacher tells.
  @exclusivity(unchecked) @safe
  @usableFromInline final var generation: CacheGeneration?

  /// - Parameters:
  ///   - source: The cache that the flight belongs to, if it belongs to one.
  ///   - hash: The hash of its key.
  ///   - priority: The priority of the caller, if there is one.
  ///   - predecessor: The flight that has to end before this one begins.
  @usableFromInline
  init(
    source: Flight.Source? = nil,
    hash: UInt64 = 0,
    priority: TaskPriority? = nil,
    predecessor: WaitNode? = nil
  ) {
    self.source = source
    self.hash = hash
    highestPriority = Atomic(priority?.rawValue ?? 0)
    state = Locked(State(predecessor: predecessor))
  }

  /// Whether the flight begins some time after it was launched, together with others.
  @usableFromInline final var isDelayed: Bool { source?.delaysFlights ?? false }

  override final var predecessor: WaitNode? {
    state.withLock { $0.predecessor }
  }

  @usableFromInline override var isSettled: Bool {
    hasSettled.load(ordering: .acquiring)
  }

  /// Marks the outcome as known.
  ///
  /// It is called before any task can see the outcome: a task that has seen it may be waited for by tasks
  /// that have not been resumed yet, and does not wait for itself then.
  ///
  /// - Returns: The node that came before, to be released with no lock held.
  @usableFromInline
  @discardableResult
  final func settle() -> WaitNode? {
    state.withLock { state in
      hasSettled.store(true, ordering: .releasing)
      return state.predecessor.take()
    }
  }

  /// Notes that the flight no longer waits for the one before it.
  ///
  /// - Parameter batch: The fetch of several keys that it is part of from now on, if any.
  @usableFromInline
  final func begin(in batch: BulkFlight? = nil) {
    let (predecessor, isCancelled) = state.withLock { state in
      let predecessor = state.predecessor
      // A flight that a stored value has settled would never release the batch.
      state.predecessor = hasSettled.load(ordering: .relaxed) ? nil : batch
      state.batch = batch
      return (predecessor, batch != nil && hasBeenCancelled.load(ordering: .relaxed))
    }
    withExtendedLifetime(predecessor) {}
    guard let batch else { return }
    if let priority { batch.raise(to: priority) }
    if isCancelled { batch.leave() }
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

  /// Takes a place for a caller.
  @usableFromInline
  final func join() -> WaitPlace {
    state.withLock { $0.waiters.join() }
  }

  /// The number of callers that wait.
  @usableFromInline final var callerCount: Int {
    state.withLock { $0.waiters.count }
  }

  /// Whether the callers have been given the outcome.
  @usableFromInline final var isFinished: Bool {
    hasFinished.load(ordering: .acquiring)
  }

  /// Waits in a place for the outcome, and raises the priority of the flight to that of the caller, also if
  /// that rises later.
  ///
  /// - Parameters:
  ///   - place: The place that the caller has taken.
  ///   - onCancel: Called when the caller's task is cancelled; it has to call ``leave(_:)``. It may be called
  ///     before, during and after the wait.
  /// - Returns: The outcome; `nil` if the caller has left.
  final func wait(in place: WaitPlace, onCancel: @Sendable () -> Void) async -> Outcome? {
    // What waits is kept for each of many callers: nothing is nested more deeply than it must be, and
    // there is one place only where it is suspended.
    await withTaskCancellationHandler(
      operation: {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
          raise(to: Task.currentPriority)
          return await park(in: place)
        }
        return await withTaskPriorityEscalationHandler(
          operation: {
            // A priority that rises from now on calls the handler.
            raise(to: Task.currentPriority)
            return await park(in: place)
          },
          onPriorityEscalated: { _, priority in self.raise(to: priority) }
        )
      },
      onCancel: onCancel,
      isolation: #isolation
    )
  }

  /// Waits in a place for the outcome; cancellation is the caller's affair.
  @inline(__always)
  final func park(in place: WaitPlace) async -> Outcome? {
    let outcome = await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
      unsafe park(ParkedCaller(continuation: continuation), in: place)
    }
    // A caller that is resumed before it has suspended goes on without any barrier of its own.
    _ = hasFinished.load(ordering: .acquiring)
    return outcome
  }

  private final func park(_ caller: ParkedCaller, in place: WaitPlace) {
    // The caller may be the last one that the outcome was kept for, which is then released unlocked.
    let (parking, outcome) = state.withLock { state in
      let parking = state.waiters.park(caller, in: place)
      return (parking, state.waiters.isOver ? state.outcome.take() : state.outcome)
    }
    if parking != .parked { caller.resume(parking == .finished ? outcome : nil) }
  }

  /// What has to follow the departure of a caller, with no lock held.
  @usableFromInline
  struct Departure: Sendable {
    fileprivate var parked: ParkedCaller?
    /// Whether the caller was there until now.
    var hasLeft = false
    /// Whether it was the last one.
    var isLast = false

    /// Resumes the caller, which finds that it has left.
    func resume() {
      parked?.resume(nil)
    }
  }

  /// Removes a caller, unless the outcome is there.
  final func leave(_ place: WaitPlace) -> Departure {
    state.withLock { state in
      let (hasLeft, parked) = state.waiters.leave(place)
      return Departure(
        parked: parked,
        hasLeft: hasLeft,
        isLast: hasLeft && state.waiters.count == 0
      )
    }
  }

  /// Removes a caller that has joined, and does not wait after all.
  final func withdraw(_ place: WaitPlace) {
    let outcome = state.withLock { state in
      state.waiters.withdraw(place)
      return state.waiters.isOver ? state.outcome.take() : nil
    }
    withExtendedLifetime(outcome) {}
  }

  /// Gives every caller the outcome; the first outcome counts.
  @usableFromInline
  final func finish(_ outcome: Outcome) {
    settle()
    let waiting = state.withLock { state -> WaitListState<ParkedCaller>.Waiting in
      guard !state.waiters.isFinished else { return .init() }
      let waiting = state.waiters.finish()
      hasFinished.store(true, ordering: .releasing)
      if !state.waiters.isOver { state.outcome = outcome }
      return waiting
    }
    waiting.each { $0.resume(outcome) }
  }
}

// MARK: - Tasks

extension Flight {
  /// The highest priority of all callers so far.
  @usableFromInline final var priority: TaskPriority? {
    let rawValue = highestPriority.load(ordering: .relaxed)
    return rawValue == 0 ? nil : TaskPriority(rawValue: rawValue)
  }

  /// Whether the flight was cancelled.
  @usableFromInline final var isCancelled: Bool {
    hasBeenCancelled.load(ordering: .relaxed)
  }

  /// Starts a task for the flight, with the priority of its callers.
  ///
  /// It inherits nothing from the current task but, if so wished, its task-local values: not those by which waits
  /// are recognized, since it does not belong to what the current task works for. It is cancelled at once if the
  /// flight is.
  @usableFromInline
  @discardableResult
  final func start(
    _ operation: @escaping @concurrent @Sendable () async -> Void
  ) -> Task<Void, Never> {
    let priority = priority
    let task =
      inheritsTaskLocals
      ? Task(priority: priority) {
        await WaitScope.local.withValue(nil) { await SerialQueue.outside(operation) }
      } : Task.detached(priority: priority, operation: operation)
    state.withLock { state in
      guard !state.hasEnded else { return }
      if state.task == nil { state.task = task } else { state.otherTasks.append(task) }
    }
    // Both are changed before the tasks are looked up, so that the task is told here or there.
    if isCancelled { task.cancel() }
    if let current = self.priority, current > priority ?? .background {
      Self.escalate(task, to: current)
    }
    return task
  }

  /// The stored copy that was read, and is not new enough to be the answer.
  @usableFromInline final var readCopy: Outcome? { state.withLock { $0.readCopy } }

  /// Notes the stored copy that was read.
  final func note(readCopy copy: Outcome) {
    state.withLock { $0.readCopy = copy }
  }

  /// Forgets a task that has ended.
  final func remove(_ task: Task<Void, Never>) {
    state.withLock { state in
      if state.task == task { state.task = nil }
      state.otherTasks.removeAll { $0 == task }
    }
  }

  /// Raises the priority of the flight's tasks to that of a caller.
  @usableFromInline
  final func raise(to priority: TaskPriority) {
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
  }

  private static func escalate(_ task: Task<Void, Never>, to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      task.escalatePriority(to: priority)
    } else {
      // A task that waits for another one raises its priority.
      Task.detached(priority: priority) { await task.value }
    }
  }

  /// Cancels every task that works for the flight, now and later.
  @usableFromInline
  final func cancel() {
    let (task, others, batch) = state.withLock {
      state -> (Task<Void, Never>?, [Task<Void, Never>], BulkFlight?) in
      let isFirst = !hasBeenCancelled.exchange(true, ordering: .relaxed)
      return (state.task, state.otherTasks, isFirst ? state.batch : nil)
    }
    task?.cancel()
    for task in others { task.cancel() }
    batch?.leave()
  }

  /// Notes that the tasks have done their work.
  ///
  /// - Returns: The fetch of several keys that this was part of until now, which is to be told.
  @usableFromInline
  @discardableResult
  final func end() -> BulkFlight? {
    let previous = previous.take()
    let (work, batch) = state.withLock { state in
      state.hasEnded = true
      let work = (state.task, state.otherTasks)
      state.task = nil
      state.otherTasks = []
      return ((work, state.readCopy.take()), state.batch.take())
    }
    withExtendedLifetime((work, previous)) {}
    return isCancelled ? nil : batch
  }
}

/// The flight of one key of a cache.
@usableFromInline
final class KeyFlight<Key: Hashable & Sendable>: Flight, @unchecked Sendable {
  @usableFromInline let key: Key

  @inlinable
  init(
    _ key: Key,
    source: Flight.Source,
    hash: UInt64,
    priority: TaskPriority?,
    predecessor: WaitNode? = nil
  ) {
    self.key = key
    super.init(source: source, hash: hash, priority: priority, predecessor: predecessor)
  }

  override var label: String? { source?.label(of: key) }
}

/// One fetch of several keys, each of which has a flight of its own.
///
/// It is cancelled when every flight has ended or was cancelled, and has the highest priority of all.
@usableFromInline
final class BulkFlight: Flight, @unchecked Sendable {
  private let flights: [Flight]
  private let remaining: Atomic<Int>

  @usableFromInline
  init(_ flights: [Flight]) {
    self.flights = flights
    remaining = Atomic(flights.count)
    super.init()
  }

  override var label: String? {
    let labels = flights.prefix(3).compactMap(\.label).joined(separator: ", ")
    return flights.count > 3 ? "\(labels) and \(flights.count - 3) more" : labels
  }

  override var isSettled: Bool { flights.allSatisfy(\.isSettled) }

  /// Notes that a flight was cancelled, or has ended.
  @usableFromInline
  func leave() {
    if remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { cancel() }
  }
}

extension Flight {
  /// The names of a cache and of its keys in errors and events.
  @usableFromInline
  final class Source: Sendable {
    private let id: String?
    private let type: any Any.Type
    private let namesKeys: Bool
    /// Whether a flight waits for others with which it shares a fetch.
    @usableFromInline let delaysFlights: Bool

    @usableFromInline
    init(id: String?, type: any Any.Type, namesKeys: Bool, delaysFlights: Bool = false) {
      self.delaysFlights = delaysFlights
      self.id = id
      self.type = type
      self.namesKeys = namesKeys
    }

    /// The id of the multiplexer, or its type.
    ///
    /// The name of a type is made when it is needed, because that is slow.
    var name: String { id ?? "\(type)" }

    /// The name of a key in events.
    func name<Key>(of key: Key) -> String {
      namesKeys ? "\(key)" : name
    }

    /// The name of a key in error messages.
    func label<Key>(of key: Key) -> String {
      namesKeys ? "\(name)[\(key)]" : name
    }
  }
}
