/// Runs a scenario in every order of its jobs, up to a number of deviations from first in, first out.
///
/// A job is the work that a task does between two suspension points. Two runs of a scenario can differ only
/// in which ready job runs next, provided that all state is protected by locks or by actors that adopt
/// ``InterleavedExecutor``. Calls that wait for any other actor keep their order of arrival. A race
/// that a thousand repetitions miss is found deterministically:
///
/// ```swift
/// actor Account {
///   private(set) var balance = 0
///
///   func deposit() async {
///     let before = balance
///     await hop()  // stands for any call that waits
///     balance = before + 1
///   }
/// }
///
/// struct LostUpdate: Error {}
///
/// // Throws: the second deposit may read the balance before the first has written it.
/// try forEveryInterleaving {
///   let account = Account()
///   async let first: Void = account.deposit()
///   async let second: Void = account.deposit()
///   _ = await (first, second)
///   guard await account.balance == 2 else { throw LostUpdate() }
/// }
/// ```
///
/// The scenario runs many times and must create all its state in each run. It fails by throwing; `#expect`
/// in a scenario belongs to the test as usual. Orders with fewer deviations at the same choices
/// are tried first, so the reported failure contains no unnecessary deviation. It contains its
/// schedule, which ``replayInterleaving(_:jobLimit:_:)`` runs again.
///
/// ## Supported constructs
///
/// Tasks, task groups, `async let`, actors, continuations, streams, cancellation, ``ManualClock``, ``Gate``,
/// ``Recorder`` and everything built from them. Call ``hop()`` to add a point at which a task can be
/// interrupted.
///
/// ## Limits
///
/// - The pending calls of a default actor are one job: the actor runs them in order of arrival, without
///   another job in between. Give an actor an ``InterleavedExecutor`` to make each pending call a separate
///   job. For an actor that cannot adopt one, add a hop before the call, where another task can overtake.
/// - Work that leaves the calling thread is not ordered and looks like a task that never finishes: the main
///   actor, custom executors, real clocks, other threads and `Task.yield()`.
/// - Only the order of jobs is tested. Use the thread sanitizer for code in which two threads run at the
///   same time, such as code that relies on locks and atomics.
/// - A scenario must be deterministic for a given order: no randomness, and no state that outlives the run.
///   Optimized code releases objects at unspecified points; run scenarios in debug builds.
/// - The calling thread is blocked until all orders have run. Concurrent calls take turns, so put all of
///   them into one serialized suite; other tests continue in the meantime.
/// - The number of orders grows fast with the number of tasks and steps. Six deviations, the default, have
///   found errors that two missed; use fewer for a large scenario.
///
/// ## Availability
///
/// Jobs are intercepted by a hook of the Swift runtime, `swift_task_enqueueGlobal_hook`, which is exported
/// for such tools but not documented. The hook is installed once and forwards the jobs that belong to no
/// scenario. If the runtime does not export the hook (in a statically linked executable, for example) or
/// does not call it, the function throws an ``InterleavingFailure`` with the reason
/// ``InterleavingFailure/Reason/unsupported(_:)`` before the scenario runs. Tested on Linux
/// with Swift 6.3; no platform is excluded.
///
/// - Parameters:
///   - deviations: The number of times that a run can pick a job other than the oldest.
///   - jobLimit: The maximum number of jobs in a run.
///   - scenario: The scenario to run.
/// - Returns: The number of orders, each of which ran once.
/// - Throws: ``InterleavingFailure`` for the first order that failed.
/// - Precondition: The caller is not a scenario.
@discardableResult
public func forEveryInterleaving(
  deviations: Int = 6,
  jobLimit: Int = 10_000,
  _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void
) throws -> Int {
  try JobHolder.takingTurns { holder in
    var frontier = [InterleavingBranch(schedule: [], knownOptions: [])]
    var count = 0
    while let branch = frontier.popLast() {
      let run = InterleavingRun(
        scenario,
        schedule: branch.schedule,
        jobLimit: jobLimit,
        holder: holder
      )
      count += 1
      if let reason = run.failure(knownOptions: branch.knownOptions) {
        throw InterleavingFailure(schedule: branch.schedule, reason: reason)
      }
      if branch.schedule.count(where: { $0 != 0 }) < deviations {
        frontier += branch.deviations(in: run)
      }
    }
    return count
  }
}

/// Runs a scenario in one order, such as that of a reported failure.
///
/// The description of an ``InterleavingFailure`` contains the call:
///
/// ```swift
/// // Of the two tasks that are ready, the second one runs first.
/// try replayInterleaving([1]) {
///   let gate = Gate()
///   let waiter = Task { try await gate.wait() }
///   let opener = Task { gate.open() }
///   try await waiter.value
///   await opener.value
/// }
/// ```
///
/// - Parameters:
///   - schedule: The index of the job to run next, for each point at which several are ready. Zero is the
///     oldest job, which also runs after the end of the schedule.
///   - jobLimit: The maximum number of jobs in the run.
///   - scenario: The scenario to run.
/// - Throws: ``InterleavingFailure`` if the scenario fails or the schedule does not fit it.
/// - Precondition: The caller is not a scenario.
public func replayInterleaving(
  _ schedule: [Int],
  jobLimit: Int = 10_000,
  _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void
) throws {
  try JobHolder.takingTurns { holder in
    let run = InterleavingRun(scenario, schedule: schedule, jobLimit: jobLimit, holder: holder)
    if let reason = run.failure(knownOptions: []) {
      throw InterleavingFailure(schedule: schedule, reason: reason)
    }
  }
}

/// Suspends the task until the jobs that are ready have run, unless a scenario chooses another order.
///
/// A hop adds a point at which ``forEveryInterleaving(deviations:jobLimit:_:)`` can interrupt a task.
/// Unlike `Task.yield()`, it is visible to the scenario.
public func hop() async {
  await Task.detached {}.value
}
