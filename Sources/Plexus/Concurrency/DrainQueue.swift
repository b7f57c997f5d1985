// @unchecked Sendable: `value` is accessed only by the thread that has set `isRunning` under the lock, until it
// resets it under the lock. Run-time exclusivity checks are therefore unnecessary, too.

/// A queue that the calling threads drain, with a value that only the draining thread accesses.
///
/// A caller that finds the queue idle processes its own item immediately, and then items that other threads
/// have enqueued meanwhile, within its allowance. If the queue is busy, because of another thread or of an outer
/// call on the same thread, the caller enqueues its item and returns. Callers never wait, items are never
/// nested, and no lock is held while an item is processed.
///
/// When the allowance is used up, the next caller continues the queue; a task does so if there is no further
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
      if drain(DrainAllowance(limit: 25_000), perform) { handOver() }
      return true
    }
    if drain(DrainAllowance(), perform) { handOver() }
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
    return isIdle && drain(DrainAllowance(), perform)
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
    if isIdle { _ = drain(DrainAllowance()) { _, _ in } }
  }

  /// Processes items until the queue is empty or the allowance is used up.
  ///
  /// - Parameters:
  ///   - allowance: The limit for items of other callers.
  ///   - perform: A closure that processes an item.
  /// - Returns: Whether items remain for which no task is scheduled.
  @inlinable
  func drain(
    _ allowance: consuming DrainAllowance,
    _ perform: (Item, inout Value) -> Void
  ) -> Bool {
    while true {
      // Tests inject a clock, which is read outside the lock.
      let mayGoOn = allowance.permitsNext(at: now)
      let step = state.withLock { state -> Step in
        if !mayGoOn, state.entries.oldest?.isNested == false {
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
        if !entry.isNested { allowance.count &+= 1 }
      case .ending: ending(&value)
      case .handOver: return true
      case .nothing: return false
      }
    }
  }

  @usableFromInline
  func now() -> Nanoseconds {
    time?() ?? monotonicNanoseconds()
  }
}

/// A limit for the items of other callers: a duration, by default a millisecond, and at most 1,024 items.
///
/// The clock is read after the first item and then after twice as many items each time, or earlier if the
/// limit would otherwise be exceeded by far.
@usableFromInline
struct DrainAllowance: Sendable {
  @usableFromInline static var most: Int { 1_024 }

  @usableFromInline let limit: Nanoseconds

  /// The number of processed items.
  @usableFromInline var count = 0
  /// The number of items at which the clock is read next.
  @usableFromInline var nextReading = 0
  @usableFromInline var start: Nanoseconds = 0

  @inlinable
  init(limit: Nanoseconds = 1_000_000) {
    self.limit = limit
  }

  /// Returns whether the caller can process the next item.
  ///
  /// - Parameter now: A closure that reads the clock.
  /// - Returns: Whether the allowance permits it.
  @inlinable
  mutating func permitsNext(at now: () -> Nanoseconds) -> Bool {
    // Fast path: most callers find no items of others.
    guard count > 0 else { return true }
    guard count < Self.most else { return false }
    return count < nextReading || permitsNextReading(now())
  }

  @usableFromInline
  mutating func permitsNextReading(_ now: Nanoseconds) -> Bool {
    guard count > 1 else {
      start = now
      nextReading = 2
      return true
    }
    let elapsed = now &- start
    guard elapsed < limit else { return false }
    // As many as have been processed, or as many as are expected to fit into the remaining time.
    let rest = Int(limit &- elapsed) / max(Int(elapsed) / (count &- 1), 1)
    nextReading = count &+ max(1, min(count, rest))
    return true
  }
}
