// @unchecked Sendable: `value` is accessed only by the thread that has set `isRunning` under the lock, until it
// resets it under the lock. Run-time exclusivity checks are therefore unnecessary, too.

/// A queue that the calling threads drain, with a value that only the draining thread accesses.
///
/// A caller that finds the queue idle processes its own item immediately, and then items that other threads
/// have enqueued meanwhile, within its budget. If the queue is busy, because of another thread or of an outer
/// call on the same thread, the caller enqueues its item and returns. Callers never wait, items are never
/// nested, and no lock is held while an item is processed.
///
/// When the budget is spent, the next caller continues the queue; a task does so if there is no further
/// caller. Items that are enqueued by an item on the draining thread are not limited: without other
/// threads, everything has been processed when the caller returns.
@usableFromInline
@safe
final class DrainQueue<Item: Sendable, Value>: @unchecked Sendable {
  @usableFromInline
  struct Entry: Sendable {
    @usableFromInline let item: Item
    /// Whether it was enqueued by another item on the draining thread.
    @usableFromInline let isNested: Bool

    @inlinable
    init(item: Item, isNested: Bool) {
      self.item = item
      self.isNested = isNested
    }
  }

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var entries = ChunkedQueue<Entry>()
    @usableFromInline var isRunning = false
    /// The draining thread, if any.
    @usableFromInline var thread = ThreadID()
    /// Whether a task is scheduled to process the remaining items, as for every idle queue with items.
    @usableFromInline var isCovered = false
    @usableFromInline var isClosed = false
    /// Whether the ending has run.
    @usableFromInline var isOver = false

    @inlinable
    init() {}
  }

  /// The state in which an item finds the queue; `inherited` means idle with the items of an earlier caller.
  @usableFromInline
  enum Admission: Sendable { case idle, inherited, busy, refused }

  /// The next step of the draining thread.
  @usableFromInline
  enum Step: Sendable {
    case entry(Entry)
    case ending
    case handOver
    case nothing
  }

  @usableFromInline let state = Locked(State())
  @usableFromInline let ending: @Sendable (inout Value) -> Void
  /// The clock that limits the processing of other callers' items, or `nil` for the system clock.
  @usableFromInline let time: (@Sendable () -> Nanoseconds)?
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - value: The value, which only the draining thread accesses.
  ///   - time: The clock that limits the processing of other callers' items, or `nil` for the system clock.
  ///   - ending: A closure that runs last, after ``close()``.
  @inlinable
  init(
    _ value: sending Value,
    time: (@Sendable () -> Nanoseconds)? = nil,
    ending: @escaping @Sendable (inout Value) -> Void
  ) {
    self.value = value
    self.time = time
    self.ending = ending
  }

  /// Processes an item, or enqueues it for the draining thread.
  ///
  /// - Parameters:
  ///   - item: The item.
  ///   - handOver: Called when the allowance is used up and no task is scheduled. It must start a task that calls
  ///     ``resume(_:)`` until that returns `false`.
  ///   - perform: A closure that processes an item of this or another caller.
  /// - Returns: Whether the item has been or will be processed; `false` if the queue is closed.
  @inlinable
  func add(
    _ item: Item,
    handOver: () -> Void,
    _ perform: (Item, inout Value) -> Void
  ) -> Bool {
    let thread = ThreadID.current
    let admission = state.withLock { state -> Admission in
      guard !state.isClosed else { return .refused }
      guard !state.isRunning else {
        state.entries.append(Entry(item: item, isNested: state.thread == thread))
        return .busy
      }
      state.isRunning = true
      state.thread = thread
      guard !state.entries.isEmpty else { return .idle }
      state.entries.append(Entry(item: item, isNested: false))
      return .inherited
    }
    switch admission {
    case .busy: return true
    case .refused: return false
    case .idle: perform(item, &value)
    case .inherited:
      // A small allowance is enough here: later calls continue the backlog in the same way.
      if drain(within: 25_000, perform) { handOver() }
      return true
    }
    if drain(perform) { handOver() }
    return true
  }

  /// Processes the remaining items unless another caller has continued the queue.
  ///
  /// - Parameter perform: A closure that processes an item.
  /// - Returns: Whether items remain and this method must be called again.
  @inlinable
  func resume(_ perform: (Item, inout Value) -> Void) -> Bool {
    let isIdle = state.withLock { state in
      state.isCovered = false
      guard !state.isRunning, !state.entries.isEmpty else { return false }
      state.isRunning = true
      state.thread = .current
      return true
    }
    return isIdle && drain(perform)
  }

  /// Closes the queue: the enqueued items are still processed, and then the ending runs.
  func close() {
    let isIdle = state.withLock { state in
      // If items remain, the scheduled task processes them and then runs the ending.
      let isIdle = !state.isRunning && !state.isClosed && state.entries.isEmpty
      state.isClosed = true
      if isIdle { (state.isRunning, state.thread) = (true, .current) }
      return isIdle
    }
    if isIdle { _ = drain { _, _ in } }
  }

  /// Processes items until the queue is empty or the budget for items of other callers is spent.
  ///
  /// - Parameters:
  ///   - limit: The time for items of other callers.
  ///   - perform: A closure that processes an item.
  /// - Returns: Whether items remain for which no task is scheduled.
  @inlinable
  func drain(
    within limit: Nanoseconds = TurnBudget.usualLimit,
    _ perform: (Item, inout Value) -> Void
  ) -> Bool {
    // Most callers find no items of others.
    var budget: TurnBudget?
    var isSpent = false
    while true {
      let step = state.withLock { state -> Step in
        if isSpent, state.entries.oldest?.isNested == false {
          state.isRunning = false
          defer { state.isCovered = true }
          return state.isCovered ? .nothing : .handOver
        }
        if let entry = state.entries.popFirst() { return .entry(entry) }
        if state.isClosed, !state.isOver {
          state.isOver = true
          return .ending
        }
        state.isRunning = false
        return .nothing
      }
      switch step {
      case .entry(let entry):
        perform(entry.item, &value)
        // Tests inject a clock, which is read outside the lock.
        if !entry.isNested { isSpent = isSpent || spend(&budget, limit) }
      case .ending: ending(&value)
      case .handOver: return true
      case .nothing: return false
      }
    }
  }

  /// Counts an item of another caller.
  ///
  /// - Returns: Whether the budget is spent.
  @usableFromInline
  func spend(_ budget: inout TurnBudget?, _ limit: Nanoseconds) -> Bool {
    var current = budget ?? TurnBudget(limit: limit, most: 1_024)
    defer { budget = current }
    return current.isSpent(time ?? monotonicNanoseconds)
  }
}
