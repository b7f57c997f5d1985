// Unsafe because jobs are run by their unowned references, which the runtime keeps alive until they have
// been run once: each is taken out of the queue before.

internal import PlexusSupport

/// A serial executor whose jobs ``forEveryInterleaving(deviations:jobLimit:_:)`` runs in every order.
///
/// The calls that wait for an ordinary actor are run by the actor itself, one after the other, and a scenario
/// sees that as one job. An actor that adopts this executor runs one call at a time, too, but each of them is
/// a job of the scenario: any of those that wait can be the next one, and jobs of other tasks can come in
/// between.
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
/// Swift does not promise in which order an actor runs the calls that wait for it: a call of higher priority
/// comes first, for example. Code that is right in every order does not depend on that.
///
/// Outside a scenario the executor runs its jobs one after the other, in the order in which they arrive, so
/// that an actor of a program can keep it. That is slower than an ordinary actor.
public final class InterleavedExecutor: SerialExecutor {
  private struct State {
    /// The jobs of threads that belong to no scenario, oldest first.
    var jobs: [UnownedJob] = []
    var isDraining = false
  }

  private let state = Locked(State())

  /// Creates an executor for one actor or for several that never run at the same time.
  public init() {}

  /// Runs a job when its turn has come.
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
