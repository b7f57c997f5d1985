// Unsafe code: an executor hands out an unowned reference to itself. The actor that stands on it keeps it
// alive, and every job keeps it alive until it has run.

internal import Dispatch

/// A thread's worth of blocking calls, away from the threads on which tasks run.
///
/// An actor that waits for disks and locks has an executor of its own, so that slow storage holds up
/// nobody but those who use that storage.
final class BlockingExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "plexus.storage")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    unsafe UnownedSerialExecutor(ordinary: self)
  }
}
