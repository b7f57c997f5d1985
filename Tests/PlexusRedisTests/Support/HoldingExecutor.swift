import Foundation
import TestSupport

/// An executor that can hold its jobs back.
final class HoldingExecutor: TaskExecutor {
  private struct State {
    var isHeld = false
    var jobs: [UnownedJob] = []
  }

  private let state = Guarded(State())

  /// The number of jobs that are held back.
  var heldCount: Int { state.withLock { $0.jobs.count } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isHeld = state.withLock { state in
      if state.isHeld { state.jobs.append(job) }
      return state.isHeld
    }
    if !isHeld { run(job) }
  }

  private func run(_ job: UnownedJob) {
    DispatchQueue.global().async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  /// Holds back the jobs from now on.
  func hold() {
    state.withLock { $0.isHeld = true }
  }

  /// Runs the jobs that were held back, and later ones at once.
  func release() {
    let jobs = state.withLock { state in
      defer { state = State() }
      return state.jobs
    }
    for job in jobs { run(job) }
  }
}
