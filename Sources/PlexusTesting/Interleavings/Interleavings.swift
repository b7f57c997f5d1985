/// Runs a scenario in every order of its jobs up to a number of deviations from first come, first served;
/// calls that wait for one actor stay in the order of their arrival unless it adopts ``InterleavedExecutor``.
///
/// A job is what a task does between two suspension points. Which of the jobs that are ready runs
/// next is all that can differ between two runs of a scenario whose state is kept by locks and by actors
/// with that executor. A promise that holds in every order holds; a race that a thousand repetitions miss is
/// found at once, and always in the same way:
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
/// The scenario runs many times and makes everything that it uses itself, every time. It fails by
/// throwing; what it expects with `#expect` belongs to the test as usual. An order is tried after
/// those that stray at fewer of the same choices, so that the failure that is reported has no
/// deviation that it does not need. It holds its schedule, with which
/// ``replayInterleaving(_:jobLimit:_:)`` runs the same order again.
///
/// ## What a scenario may use
///
/// Tasks, groups, `async let`, actors, continuations, streams, cancellation, ``ManualClock``, ``Gate``,
/// ``Recorder`` and everything made from these. Where it needs one more place to be interrupted, it
/// calls ``hop()``.
///
/// ## Limits
///
/// - What waits in the queue of one actor is one job: the actor runs it in the order of arrival, without
///   another job in between. Give an actor of the scenario an ``InterleavedExecutor``, and each call that
///   waits for it is a job of its own. For an actor that cannot adopt one, a hop before the call is a place
///   where another task can overtake it.
/// - What leaves the calling thread is not ordered, and looks like a task that never finishes: the
///   main actor, executors of one's own, real clocks, other threads, and `Task.yield()`.
/// - Only the order of jobs is tried. Two threads in the same function at once, which a lock or an
///   atomic has to withstand, are the business of the thread sanitizer.
/// - A scenario must behave alike whenever it runs in the same order: nothing random, and no state
///   that outlives the run. Optimised code releases objects where it likes; run scenarios in debug
///   builds.
/// - The calling thread is occupied until the end. Calls on several threads take turns, so put
///   all of them into one serialized suite; other tests go on in the meantime.
/// - The number of orders grows fast with the tasks and steps of the scenario. Six deviations, the
///   default, have found errors that two had missed; a large scenario has to do with fewer.
///
/// ## Where it works
///
/// The jobs are held back by a hook of the Swift runtime, `swift_task_enqueueGlobal_hook`, that is
/// exported for tools like this and documented nowhere. It is set once and passes on what does not
/// belong to a scenario. Where the runtime does not have it (in a statically linked one, for example)
/// or does not ask it, an ``InterleavingFailure`` with the reason
/// ``InterleavingFailure/Reason/unsupported(_:)`` says so before the scenario runs. It has been tried
/// on Linux with Swift 6.3, and leaves out no platform on purpose.
///
/// - Parameters:
///   - deviations: How often a run may prefer another job to the oldest.
///   - jobLimit: How many jobs a run may take.
///   - scenario: What to run.
/// - Returns: The number of orders, each of which has been tried once.
/// - Throws: ``InterleavingFailure`` for the first order that went wrong.
/// - Precondition: It is not called by a scenario.
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

/// Runs a scenario in one order: that of a failure which
/// ``forEveryInterleaving(deviations:jobLimit:_:)`` has reported.
///
/// The message of a failure says how to call it:
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
///   - schedule: Which job runs next, for each time that there is a choice; zero is the oldest, and
///     after the end of the schedule it is always the oldest.
///   - jobLimit: How many jobs the run may take.
///   - scenario: What to run.
/// - Throws: ``InterleavingFailure`` if it goes wrong, or if the schedule does not fit the scenario.
/// - Precondition: It is not called by a scenario.
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

/// Lets every other job that is ready go first.
///
/// It is one more place where ``forEveryInterleaving(deviations:jobLimit:_:)`` may interrupt a task.
/// Unlike `Task.yield()`, it is a suspension that the scenario knows of.
public func hop() async {
  await Task.detached {}.value
}
