import Dispatch

/// An actor that calls a closure before each of its jobs.
///
/// An asynchronous function that runs on the actor has a job for each time that it is resumed. What the closure does
/// happens after the work that the function has waited for, and before the function looks at its result.
actor CallerActor {
  private final class Executor: SerialExecutor {
    private let queue = DispatchQueue(label: "caller")
    private let beforeJob: @Sendable () -> Void

    init(_ beforeJob: @escaping @Sendable () -> Void) {
      self.beforeJob = beforeJob
    }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async {
        self.beforeJob()
        job.runSynchronously(on: self.asUnownedSerialExecutor())
      }
    }
  }

  private let executor: Executor

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(beforeJob: @escaping @Sendable () -> Void) {
    executor = Executor(beforeJob)
  }

  /// Runs a closure on the actor.
  func run<Result: Sendable>(
    _ body: @Sendable (isolated CallerActor) async throws -> Result
  ) async rethrows -> Result {
    try await body(self)
  }

  /// Waits on this thread, which is none of a task, for a task.
  static func wait(_ body: @escaping @concurrent @Sendable () async -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      await body()
      done.signal()
    }
    done.wait()
  }
}
