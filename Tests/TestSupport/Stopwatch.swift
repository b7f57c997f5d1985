/// A stopwatch for upper limits: it counts the time in which the tasks of the process proceed.
///
/// On a busy machine, other tests and processes have the processors for most of the time, and whatever is measured takes
/// many times as long. Here, that time counts little: a task sleeps for 10 milliseconds again and again, and each turn
/// counts as 10 milliseconds, however late it comes.
public final class Stopwatch: Sendable {
  private static let step = Duration.milliseconds(10)

  private let task: Task<Void, Never>
  private let turns = Guarded(0)

  /// Starts a stopwatch.
  public init() {
    task = Task.detached { [turns] in
      while (try? await ContinuousClock().sleep(for: Self.step)) != nil {
        turns.withLock { $0 += 1 }
      }
    }
  }

  deinit {
    task.cancel()
  }

  /// The time since the start.
  public var elapsed: Duration { turns.withLock { Self.step * $0 } }
}
