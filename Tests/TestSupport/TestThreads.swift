import Foundation

/// The threads of tests that block, which leave the cooperative pool to all others.
///
/// The pool has a thread for each processor. On a machine with two of them, two exit tests would hold both: nothing else
/// would run until one of their processes ends.
final class TestThreads: TaskExecutor {
  /// Jobs in order of arrival.
  private struct Jobs {
    var arrived: [UnownedJob] = []
    var reversed: [UnownedJob] = []

    mutating func removeFirst() -> UnownedJob {
      if reversed.isEmpty {
        reversed = arrived.reversed()
        arrived = []
      }
      return reversed.removeLast()
    }
  }

  static let shared = TestThreads(4)

  private let jobs = Guarded(Jobs())
  private let change = DispatchSemaphore(value: 0)

  private init(_ count: Int) {
    for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.arrived.append(job) }
    change.signal()
  }

  private func run() {
    while true {
      change.wait()
      jobs.withLock { $0.removeFirst() }.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
