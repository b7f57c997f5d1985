import Foundation
import Testing

/// Threads for tests that compute or block, which leave the cooperative pool to all others.
///
/// The pool has a thread for each processor. On a machine with two of them, two exit tests, or two models with a million
/// steps, would hold both: for seconds, nothing else would run.
public final class TestThreads: TaskExecutor {
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

  static let shared = TestThreads(2 * ProcessInfo.processInfo.activeProcessorCount)

  private let jobs = Guarded(Jobs())
  private let change = DispatchSemaphore(value: 0)

  /// Starts a number of threads, which never end.
  public init(_ count: Int) {
    for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
  }

  /// Returns whether a test computes: tests of models and of pure states do little else.
  static func areNeeded(by test: Test) -> Bool {
    ["Model", "State"].contains { test.sourceLocation.fileName.contains($0) }
  }

  public func enqueue(_ job: consuming ExecutorJob) {
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
