/// An executor that runs its jobs when the test says so, and tells when one has arrived.
final class SteppedExecutor: SerialExecutor, Sendable {
  private let jobs = Guarded<[UnownedJob]>([])
  private let arrivals = Log<Void>()
  private let onEnqueue: @Sendable () -> Void

  init(onEnqueue: @escaping @Sendable () -> Void = {}) {
    self.onEnqueue = onEnqueue
  }

  func enqueue(_ job: consuming ExecutorJob) {
    onEnqueue()
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    arrivals.append(())
  }

  /// Waits until as many jobs have ever arrived.
  func arrived(_ count: Int) async {
    await arrivals.first(count)
  }

  /// Runs the jobs that are there and those that they bring along.
  ///
  /// - Returns: How many have run.
  @discardableResult
  func run() -> Int {
    var count = 0
    while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      job.runSynchronously(on: asUnownedSerialExecutor())
      count += 1
    }
    return count
  }
}

/// An actor that stands still until the test lets it go on.
actor SteppedActor {
  nonisolated let executor: SteppedExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  init(onEnqueue: @escaping @Sendable () -> Void = {}) {
    executor = SteppedExecutor(onEnqueue: onEnqueue)
  }
}
