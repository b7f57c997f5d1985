/// An executor that runs its jobs when the test says so, and tells when one has arrived.
final class SteppedExecutor: SerialExecutor, Sendable {
  private let jobs = Guarded<[UnownedJob]>([])
  private let arrivals = Log<Void>()
  private let finished = Guarded(0)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    arrivals.append(())
  }

  /// Waits for a job and runs it, with those that are there already and those that they bring along.
  ///
  /// A task that is resumed arrives by way of the global executor, hence the wait.
  func step() async {
    await arrivals.first(finished.withLock { $0 } + 1)
    onOwnThread {
      while let job = self.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
        job.runSynchronously(on: self.asUnownedSerialExecutor())
        self.finished.withLock { $0 += 1 }
      }
    }
  }
}

/// An actor that stands still until the test lets it go on.
actor SteppedActor {
  nonisolated let executor = SteppedExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }}
