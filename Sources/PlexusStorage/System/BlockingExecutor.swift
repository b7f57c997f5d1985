// Unsafe: an executor returns an unowned reference to itself. The actor keeps it alive, and so does every
// job until it has run.

internal import Dispatch

/// A serial executor for blocking calls, outside the cooperative thread pool.
///
/// Each actor that waits for disks and file locks has its own, so slow storage delays only the users of that
/// storage.
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
