// @unchecked Sendable because `value` belongs to the thread that has set `isRunning` under the lock, up
// to the moment when it resets it under the lock: no other thread accesses it. That needs no run-time check
// for exclusive access either.

#if canImport(Darwin)
public import Darwin
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#endif

/// A queue that the calling threads drain themselves, and a value that only the draining thread accesses.
///
/// A caller that finds the queue idle processes its own item at once, and then items that other threads have
/// added meanwhile, as many as its allowance permits. A caller that finds the queue busy, because of another
/// thread or of itself further up the stack, adds its item and returns. No caller waits, no item is nested in
/// another one, and no lock is held while an item is processed.
///
/// A caller that has used up its allowance hands the rest over: the next caller inherits it, and a task
/// processes it if there is none. What an item adds on the thread that processes it is not limited: without
/// other threads everything is processed when the caller returns.
@usableFromInline
@safe
final class DrainQueue<Item: Sendable, Value>: @unchecked Sendable {
  @usableFromInline
  struct Entry: Sendable {
    @usableFromInline let item: Item
    /// Whether it was added by an item before it, on the thread that drains the queue.
    @usableFromInline let isNested: Bool

    @inlinable
    init(item: Item, isNested: Bool) {
      self.item = item
      self.isNested = isNested
    }
  }

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var entries = Ring<Entry>()
    @usableFromInline var isRunning = false
    /// The thread that drains the queue, while one does.
    @usableFromInline var thread = ThreadID()
    /// Whether a task has been started that processes what was handed over: there is one whenever the queue
    /// holds items and is idle.
    @usableFromInline var isCovered = false
    @usableFromInline var isClosed = false
    /// Whether the ending has run.
    @usableFromInline var isOver = false

    @inlinable
    init() {}
  }

  /// `inherited` is a queue that another caller has handed over.
  @usableFromInline
  enum Admission: Sendable { case idle, inherited, busy, refused }

  /// What the draining thread does next.
  @usableFromInline
  enum Step: Sendable {
    case entry(Entry)
    case ending
    case handOver
    case nothing
  }

  @usableFromInline let state = Locked(State())
  @usableFromInline let ending: @Sendable (inout Value) -> Void
  /// The clock that limits how long a caller processes the items of others; `nil` is the system's.
  @usableFromInline let time: (@Sendable () -> Nanoseconds)?
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value

  /// Creates an empty queue.
  ///
  /// - Parameters:
  ///   - value: What only the draining thread accesses.
  ///   - time: The clock that limits how long a caller processes the items of others; `nil` is the system's.
  ///   - ending: What runs last, after ``close()``.
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

  /// Processes an item, or leaves it to the draining thread.
  ///
  /// - Parameters:
  ///   - item: The item.
  ///   - handOver: Called when the allowance is used up and no task is on its way: it starts one that calls
  ///     ``resume(_:)`` until that returns `false`.
  ///   - perform: Processes an item, of this or another caller.
  /// - Returns: Whether the item is or will be processed; `false` once the queue is closed.
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
      // A caller that finds what another one has handed over does little of it: the next calls do the same.
      if drain(DrainAllowance(limit: 25_000), perform) { handOver() }
      return true
    }
    if drain(DrainAllowance(), perform) { handOver() }
    return true
  }

  /// Processes what was handed over, unless another caller has inherited it.
  ///
  /// - Parameter perform: Processes an item.
  /// - Returns: Whether there is more, and this has to be called once more.
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

  /// Closes the queue: the items in it are still processed, and then the ending runs.
  func close() {
    let isIdle = state.withLock { state in
      // What was handed over is processed by the task, and the ending after it.
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
  ///   - allowance: How many items of other callers are processed.
  ///   - perform: Processes an item.
  /// - Returns: Whether items are left for which no task is on its way.
  @inlinable
  func drain(
    _ allowance: consuming DrainAllowance,
    _ perform: (Item, inout Value) -> Void
  ) -> Bool {
    while true {
      // The clock is a user's in tests, and read without the lock.
      let mayGoOn = allowance.permitsNext(at: now)
      let step = state.withLock { state -> Step in
        if !mayGoOn, !state.entries.isEmpty, state.entries[0]?.isNested == false {
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

/// The identity of a thread, as long as it runs.
@usableFromInline
struct ThreadID: Hashable, Sendable {
  /// Zero is no thread.
  @usableFromInline let rawValue: UInt

  /// Creates the identity of no thread.
  @inlinable
  init() {
    rawValue = 0
  }

  @inlinable
  init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The thread that calls.
  @inlinable static var current: ThreadID {
    #if canImport(Glibc)
    ThreadID(rawValue: UInt(pthread_self()))
    #elseif canImport(Android)
    ThreadID(rawValue: UInt(bitPattern: Int(pthread_self())))
    #else
    unsafe ThreadID(rawValue: UInt(bitPattern: pthread_self()))
    #endif
  }
}

/// How many items of others a caller processes: for a time, a millisecond as a rule, and 1,024 at most.
///
/// The clock is read rarely: after the first item, and then after twice as many each time, unless the items
/// take so long that the millisecond would be exceeded by far.
@usableFromInline
struct DrainAllowance: Sendable {
  @usableFromInline static var most: Int { 1_024 }

  @usableFromInline let limit: Nanoseconds

  /// The number of items so far.
  @usableFromInline var count = 0
  /// The number of items at which the clock is read next.
  @usableFromInline var nextReading = 0
  @usableFromInline var start: Nanoseconds = 0

  @inlinable
  init(limit: Nanoseconds = 1_000_000) {
    self.limit = limit
  }

  /// Decides about the next item.
  ///
  /// - Parameter now: Reads the clock.
  /// - Returns: Whether the caller may process it.
  @inlinable
  mutating func permitsNext(at now: () -> Nanoseconds) -> Bool {
    // Nothing was taken over so far: most callers find no items of others.
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
    // As many as have been processed, or as many as the rest of the time suffices for.
    let rest = Int(limit &- elapsed) / max(Int(elapsed) / (count &- 1), 1)
    nextReading = count &+ max(1, min(count, rest))
    return true
  }
}
