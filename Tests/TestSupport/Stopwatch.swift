/// A stopwatch for upper limits: it counts the time in which the tasks of the process proceed.
///
/// On a busy machine, other tests and processes have the processors for most of the time, and whatever is measured takes
/// many times as long. Here, that time counts little: a task sleeps for 10 milliseconds again and again, and a turn that
/// comes late counts as 20 milliseconds at most. While the machine has nothing else to do, it is the real time.
public final class Stopwatch: Sendable {
  private static let step = Duration.milliseconds(10)

  private let task: Task<Void, Never>
  private let time = Guarded(Duration.zero)

  /// Starts a stopwatch.
  public init() {
    task = Task.detached { [time] in
      var last = ContinuousClock.now
      while (try? await ContinuousClock().sleep(for: Self.step)) != nil {
        let now = ContinuousClock.now
        time.withLock { $0 += min(last.duration(to: now), Self.step * 2) }
        last = now
      }
    }
  }

  deinit {
    task.cancel()
  }

  /// The time since the start.
  public var elapsed: Duration { time.withLock { $0 } }
}
