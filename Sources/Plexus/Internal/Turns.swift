// @unchecked Sendable because `value` belongs to the thread that has set `isRunning` under the lock, up
// to the moment when it resets it under the lock: nobody else looks at it. That needs no run-time check
// for exclusive access either.

/// Things that are done one after another, by whichever thread comes first, and a value that only they
/// touch.
///
/// Whoever comes while nobody is at it does its own thing at once, and after it what others have left
/// meanwhile. Whoever comes while somebody is at it, be it another thread or itself further up the
/// stack, leaves its thing in the line and goes on. Nobody waits, nothing is nested, and no lock is held
/// while something is done.
///
/// Whoever wants to get on may do so after so many things. The next to come inherits the turn with what is
/// left, and a task sees to it in case that nobody comes.
@usableFromInline
@safe
final class Turns<Item: Sendable, Value>: @unchecked Sendable {
  @usableFromInline
  struct Line: Sendable {
    @usableFromInline var items = Ring<Item>()
    @usableFromInline var isRunning = false
    /// Whether a task is on its way that sees to what was handed over: there is one whenever something is
    /// in the line and nobody is at it.
    @usableFromInline var isCovered = false
    @usableFromInline var isClosed = false
    /// Whether somebody has done what is done last.
    @usableFromInline var isOver = false

    @inlinable
    init() {}
  }

  /// `inherited` is a turn behind what another one has handed over.
  @usableFromInline
  enum Admission: Sendable { case mine, inherited, left, refused }

  /// What comes next.
  @usableFromInline
  enum Next: Sendable {
    case item(Item)
    case ending
    case handOver
    case nothing
  }

  @usableFromInline let line = Locked(Line())
  @usableFromInline let ending: @Sendable (inout Value) -> Void
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value

  /// Creates an empty line.
  ///
  /// - Parameters:
  ///   - value: What is touched by those whose turn it is only.
  ///   - ending: What is done last, after ``close()``.
  @inlinable
  init(_ value: sending Value, ending: @escaping @Sendable (inout Value) -> Void) {
    self.value = value
    self.ending = ending
  }

  /// Does a thing now, or leaves it to whoever is at it.
  ///
  /// - Parameters:
  ///   - item: The thing.
  ///   - limit: How many things that others have left to do besides.
  ///   - handOver: What starts the task that calls ``resume(atMost:_:)``, if there is more.
  ///   - perform: How a thing is done, whosever it is.
  /// - Returns: Whether it is or will be done; nothing is once the line is closed.
  @inlinable
  func take(
    _ item: Item,
    atMost limit: Int = .max,
    handOver: () -> Void = {},
    _ perform: (Item, inout Value) -> Void
  ) -> Bool {
    let admission = line.withLock { line -> Admission in
      guard !line.isClosed else { return .refused }
      guard !line.isRunning, line.items.isEmpty else {
        line.items.append(item)
        defer { line.isRunning = true }
        return line.isRunning ? .left : .inherited
      }
      line.isRunning = true
      return .mine
    }
    switch admission {
    case .left: return true
    case .refused: return false
    case .mine: perform(item, &value)
    case .inherited: break
    }
    if run(atMost: limit, perform) { handOver() }
    return true
  }

  /// Goes on with what was handed over, unless somebody has begun to.
  ///
  /// - Parameters:
  ///   - limit: How many things to do.
  ///   - perform: How a thing is done, whosever it is.
  /// - Returns: Whether there is more, and this has to be called once more.
  @inlinable
  func resume(atMost limit: Int, _ perform: (Item, inout Value) -> Void) -> Bool {
    let isMine = line.withLock { line in
      line.isCovered = false
      let isMine = !line.isRunning && !line.items.isEmpty
      if isMine { line.isRunning = true }
      return isMine
    }
    return isMine && run(atMost: limit, perform)
  }

  /// Closes the line: what is in it is done by whoever is at it, and then the ending.
  func close() {
    let isMine = line.withLock { line in
      // What was handed over is seen to by the task, and the ending after it.
      let isMine = !line.isRunning && !line.isClosed && line.items.isEmpty
      line.isClosed = true
      if isMine { line.isRunning = true }
      return isMine
    }
    // Nobody is at it, and there is nothing in it.
    if isMine { _ = run { _, _ in } }
  }

  /// Does what is in the line until there is nothing left, or as much as it may.
  ///
  /// - Returns: Whether something is left that no task is going to see to.
  @inlinable
  func run(atMost limit: Int = .max, _ perform: (Item, inout Value) -> Void) -> Bool {
    var count = 0
    while true {
      let next = line.withLock { line -> Next in
        if count == limit, !line.items.isEmpty {
          line.isRunning = false
          defer { line.isCovered = true }
          return line.isCovered ? .nothing : .handOver
        }
        if let item = line.items.popFirst() { return .item(item) }
        if line.isClosed, !line.isOver {
          line.isOver = true
          return .ending
        }
        line.isRunning = false
        return .nothing
      }
      switch next {
      case .item(let item):
        perform(item, &value)
        count += 1
      case .ending: ending(&value)
      case .handOver: return true
      case .nothing: return false
      }
    }
  }
}
