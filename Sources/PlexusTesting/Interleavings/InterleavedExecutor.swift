// Unsafe: jobs are run through unowned references. The runtime keeps a job alive until it has run once,
// and each job is removed from the queue before it runs.

internal import PlexusSupport

/// A serial executor whose jobs ``forEveryInterleaving(deviations:jobLimit:_:)`` runs in every order.
///
/// A default actor runs its pending calls itself, one after the other, and a scenario sees them as one job.
/// An actor that adopts this executor also runs one call at a time, but each call is a separate job of the
/// scenario: any pending call can run next, and jobs of other tasks can run in between.
///
/// ```swift
/// actor Account {
///   private let executor = InterleavedExecutor()
///   private(set) var entries: [String] = []
///
///   nonisolated var unownedExecutor: UnownedSerialExecutor {
///     executor.asUnownedSerialExecutor()
///   }
///
///   func book(_ entry: String) { entries.append(entry) }
/// }
/// ```
///
/// Swift does not guarantee the order in which an actor runs its pending calls; a call of higher priority
/// runs first, for example. Code that is correct in every order does not depend on it.
///
/// Outside a scenario, the executor runs its jobs serially in the order in which they are enqueued, so an
/// actor can keep it in production. It is slower than a default actor.
public final class InterleavedExecutor: SerialExecutor {
  private struct State {
    /// The jobs enqueued by threads outside a scenario, oldest first.
    var jobs: [UnownedJob] = []
    var isDraining = false
  }

  private let state = Locked(State())

  /// Creates an executor for one actor, or for several that must not run at the same time.
  public init() {}

  /// Enqueues a job.
  ///
  /// - Parameter job: The job.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if JobHolder.takes(job, on: self) { return }
    let isFirst = state.withLock { state in
      state.jobs.append(job)
      defer { state.isDraining = true }
      return !state.isDraining
    }
    if isFirst { Task.detached { self.drain() } }
  }

  private func drain() {
    while let job = nextJob() {
      unsafe job.runSynchronously(on: asUnownedSerialExecutor())
    }
  }

  private func nextJob() -> UnownedJob? {
    state.withLock { state in
      guard !state.jobs.isEmpty else {
        state.isDraining = false
        return nil
      }
      return state.jobs.removeFirst()
    }
  }
}
