/// The runs of an action: never two at once, and never more than one that waits.
///
/// Invariants:
///
/// - A run waits for its turn only while another one is current.
/// - What is asked for while a run waits is answered by that run, with the newest value.
struct ActionQueueState<Value: Sendable, Ticket: Sendable>: Sendable {
  /// One run of the action.
  struct Run: Sendable {
    /// A number that no other run has.
    let id: UInt64
    /// What those who wait for the end of the run hold.
    let ticket: Ticket
    /// What the action is called with.
    fileprivate(set) var value: Value
    /// Whether the action has been called.
    fileprivate(set) var hasBegun = false
  }

  /// The run that has begun, or will as soon as somebody carries it out.
  private(set) var current: Run?

  /// The run that comes after it.
  private(set) var next: Run?

  /// The last run that anybody has asked for, unless it has ended.
  var last: Run? { next ?? current }

  /// Asks for a run.
  ///
  /// - Returns: Whether the run with the given id is current now, for somebody to carry it out; and
  ///   the value that has given way to this one.
  mutating func add(
    _ value: Value,
    id: UInt64,
    ticket: @autoclosure () -> Ticket
  ) -> (isCurrent: Bool, displaced: Value?) {
    guard current != nil else {
      current = Run(id: id, ticket: ticket(), value: value)
      return (true, nil)
    }
    guard let displaced = next?.value else {
      next = Run(id: id, ticket: ticket(), value: value)
      return (false, nil)
    }
    next?.value = value
    return (false, displaced)
  }

  /// The action is about to be called.
  ///
  /// - Returns: The run, unless it has been cancelled.
  mutating func begin(_ id: UInt64) -> Run? {
    guard current?.id == id, current?.hasBegun == false else { return nil }
    current?.hasBegun = true
    return current
  }

  /// The action has returned.
  ///
  /// - Returns: The run that has ended; its successor is current now.
  mutating func end(_ id: UInt64) -> Run? {
    guard let ended = current, ended.id == id, ended.hasBegun else { return nil }
    current = next
    next = nil
    return ended
  }

  /// Nothing is to begin any more.
  ///
  /// - Returns: The runs that will not take place.
  mutating func cancel() -> [Run] {
    var cancelled: [Run] = []
    if let run = current, !run.hasBegun {
      cancelled.append(run)
      current = nil
    }
    if let run = next { cancelled.append(run) }
    next = nil
    return cancelled
  }
}
