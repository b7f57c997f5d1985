// Unsafe: an executor returns an unowned reference to itself. Every job keeps it alive until it has run.

internal import Dispatch

/// The executor of the handlers of a connection, or of other work of a server, outside the cooperative thread pool.
///
/// The origin answers although all threads of the pool are blocked, for example by processes that wait for its answer.
package final class HandlerExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "origin.handlers")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
