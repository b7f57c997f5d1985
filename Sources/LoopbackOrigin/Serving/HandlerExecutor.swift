// Unsafe: an executor returns an unowned reference to itself. Every job keeps it alive until it has run.

internal import Dispatch

/// The executor of the handlers of a connection, outside the cooperative thread pool.
///
/// The origin answers although all threads of the pool are blocked, for example by processes that wait for its answer.
final class HandlerExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "origin.handlers")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
