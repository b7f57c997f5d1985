/// A timer that can be moved, as a part of a state that a lock guards: it fires once, at the time that was set last.
///
/// One task sleeps while a time is set. A later time leaves it alone: its owner lets it sleep again when it wakes.
@usableFromInline
struct MovableTimer: Sendable {
  /// The time at which the sleeper wakes, which is not after the time that was set.
  private var wake = Duration.zero
  private var sleeper: Sleeper?

  init() {}

  /// Sets the time at which the timer fires, or clears it.
  ///
  /// - Parameters:
  ///   - deadline: The time; `nil` for none.
  ///   - isExact: Whether a sleeper that would wake earlier is replaced, too.
  /// - Returns: The tasks to be cancelled and started with no lock held, if there are any.
  mutating func set(_ deadline: Duration?, isExact: Bool = false) -> Move? {
    guard let deadline else { return clear().map { Move(cancelled: $0) } }
    guard sleeper == nil || deadline < wake || isExact && deadline > wake else { return nil }
    let move = Move(cancelled: sleeper, started: Sleeper(until: deadline))
    (wake, sleeper) = (deadline, move.started)
    return move
  }

  /// Clears the timer.
  ///
  /// - Returns: The sleeper, to be cancelled with no lock held unless it has woken.
  mutating func clear() -> Sleeper? {
    sleeper.take()
  }

  /// Returns whether a sleeper that has woken is the one of the time that was set last.
  func isCurrent(_ sleeper: Sleeper) -> Bool {
    self.sleeper === sleeper
  }

  /// Lets the current sleeper, which has woken, sleep again or end.
  ///
  /// - Parameter deadline: The next time; `nil` clears the timer.
  /// - Returns: The next time.
  mutating func sleep(until deadline: Duration?) -> Duration? {
    if let deadline { wake = deadline } else { sleeper = nil }
    return deadline
  }
}

extension MovableTimer {
  /// The tasks that a move of the timer cancels and starts.
  @usableFromInline
  struct Move: Sendable {
    fileprivate var cancelled: Sleeper?
    fileprivate var started: Sleeper?

    /// Cancels and starts the tasks, with no lock held.
    ///
    /// - Parameters:
    ///   - clock: The clock to sleep on.
    ///   - wake: Called when the task wakes, with `false` if `sleep` threw. It returns the next time to wake, if any.
    ///     It should not retain the object that it wakes, because some clocks ignore cancellation.
    func perform(
      on clock: any ErasedClock,
      _ wake: @escaping @Sendable (Sleeper, _ hasSlept: Bool) -> Duration?
    ) {
      cancelled?.cancel()
      started?.start(on: clock, wake)
    }
  }

  /// A task that sleeps for a timer.
  final class Sleeper: Sendable {
    private let deadline: Duration
    private let task = TaskSlot()

    fileprivate init(until deadline: Duration) {
      self.deadline = deadline
    }

    fileprivate func start(
      on clock: any ErasedClock,
      _ wake: @escaping @Sendable (Sleeper, _ hasSlept: Bool) -> Duration?
    ) {
      task.start {
        Task.detached(priority: Task.currentPriority) { [self] in
          var next: Duration? = deadline
          while let time = next { next = wake(self, await clock.hasSlept(until: time)) }
        }
      }
    }

    func cancel() {
      task.cancel()
    }
  }
}
