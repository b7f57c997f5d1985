extension ActionRun {
  /// The runs of an action: at most one is current, and at most one waits.
  ///
  /// Invariants:
  ///
  /// - A run waits only while another one is current.
  /// - Requests during the wait are coalesced into the waiting run, with the newest value.
  struct QueueState<Value: Sendable, Ticket: Sendable>: Sendable {
    /// One run of the action.
    struct Run: Sendable {
      /// A unique number.
      let id: UInt64
      /// The object that tasks use to wait for the end of the run.
      let ticket: Ticket
      /// The argument of the action.
      fileprivate(set) var value: Value
      /// Whether the action has been called.
      fileprivate(set) var hasBegun = false
    }

    /// The run that has begun or begins next.
    private(set) var current: Run?

    /// The run after the current one.
    private(set) var next: Run?

    /// The run that was requested last, unless it has ended.
    var last: Run? { next ?? current }

    /// Requests a run.
    ///
    /// - Returns: Whether the run with the given id has become current and must be started, and the value
    ///   that this one replaces.
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

    /// Marks a run as begun.
    ///
    /// - Returns: The run, unless it has been cancelled.
    mutating func begin(_ id: UInt64) -> Run? {
      guard current?.id == id, current?.hasBegun == false else { return nil }
      current?.hasBegun = true
      return current
    }

    /// Ends a run and makes the next one current.
    ///
    /// - Returns: The run that has ended.
    mutating func end(_ id: UInt64) -> Run? {
      guard let ended = current, ended.id == id, ended.hasBegun else { return nil }
      current = next
      next = nil
      return ended
    }

    /// Cancels the runs that have not begun.
    ///
    /// - Returns: The cancelled runs.
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
}
