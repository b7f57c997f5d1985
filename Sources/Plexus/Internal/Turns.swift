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
@usableFromInline
@safe
final class Turns<Item: Sendable, Value>: @unchecked Sendable {
  @usableFromInline
  struct Line: Sendable {
    @usableFromInline var items = Ring<Item>()
    @usableFromInline var isRunning = false
    @usableFromInline var isClosed = false
    /// Whether somebody has done what is done last.
    @usableFromInline var isOver = false

    @inlinable
    init() {}
  }

  @usableFromInline
  enum Admission: Sendable { case mine, left, refused }

  /// What comes next.
  @usableFromInline
  enum Next: Sendable {
    case item(Item)
    case ending
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
  ///   - perform: How a thing is done, whosever it is.
  /// - Returns: Whether it is or will be done; nothing is once the line is closed.
  @inlinable
  func take(_ item: Item, _ perform: (Item, inout Value) -> Void) -> Bool {
    let admission = line.withLock { line -> Admission in
      guard !line.isClosed else { return .refused }
      guard !line.isRunning else {
        line.items.append(item)
        return .left
      }
      line.isRunning = true
      return .mine
    }
    if admission == .mine {
      perform(item, &value)
      run(perform)
    }
    return admission != .refused
  }

  /// Closes the line: what is in it is done by whoever is at it, and then the ending.
  func close() {
    let isMine = line.withLock { line in
      let isMine = !line.isRunning && !line.isClosed
      line.isClosed = true
      if isMine { line.isRunning = true }
      return isMine
    }
    // Nobody is at it, so there is nothing in it.
    if isMine { run { _, _ in } }
  }

  /// Does what is in the line until there is nothing left.
  @inlinable
  func run(_ perform: (Item, inout Value) -> Void) {
    while true {
      let next = line.withLock { line -> Next in
        if let item = line.items.popFirst() { return .item(item) }
        if line.isClosed, !line.isOver {
          line.isOver = true
          return .ending
        }
        line.isRunning = false
        return .nothing
      }
      switch next {
      case .item(let item): perform(item, &value)
      case .ending: ending(&value)
      case .nothing: return
      }
    }
  }
}
