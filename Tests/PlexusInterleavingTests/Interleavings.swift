// Runs a scenario under every order in which its jobs could run.
//
// A job is what a task does between two suspension points. Actors keep jobs from overlapping, so
// the order of jobs is all that can differ between two runs of a scenario, and a promise that holds
// in every order holds.
//
// A job also ends where a task goes to an actor or comes back. It stands in the queue of the actor from
// then on: `hop()` before the call where another task could overtake it.
//
// What a scenario may use: tasks, groups, `async let`, actors, continuations, streams, cancellation,
// `ManualClock` and everything made from these; `hop()`, and never the yield of a task, where it needs one
// more place to be interrupted. What leaves the harness is not ordered and looks like a task that
// never finishes: the main actor, real clocks and other threads. A scenario must behave alike
// whenever it runs in the same order: nothing random, and no state that outlives the run.

/// Which of the jobs that are ready runs next: one number for each time that there was a choice.
///
/// Zero is the oldest job. A schedule that has come to its end goes on with zeros.
typealias Schedule = [Int]

/// A schedule under which a scenario went wrong, and how.
struct InterleavingFailure: Error {
  enum Reason {
    /// The scenario threw.
    case threw(any Error)
    /// Nothing is left to run here, and the scenario has not returned.
    case neverFinished
    /// The scenario still had jobs to run after so many.
    case tooManyJobs(Int)
    /// The schedule asks for a choice that there is not, or the choices were others before.
    case notRepeatable
  }

  let schedule: Schedule
  let reason: Reason
}

extension InterleavingFailure: CustomStringConvertible {
  var description: String {
    let what =
      switch reason {
      case .threw(let error): "\(error)"
      case .neverFinished: "some task never finished, or it left the harness"
      case .tooManyJobs(let count): "it is still not done after \(count) jobs"
      case .notRepeatable: "it does not behave alike in the same order, or this is not its schedule"
      }
    return "\(what); replayInterleaving(\(schedule)) { … } runs this order again"
  }
}

/// Runs a scenario in first-come-first-served order, and in every order that strays from it at most
/// so many times.
///
/// The scenario fails by throwing. An order is tried after those that stray at fewer of the same
/// choices, so that the failure that is reported has no deviation that it does not need.
///
/// - Parameters:
///   - deviations: How often a run may prefer another job to the oldest.
///   - jobLimit: How many jobs a run may take.
///   - scenario: What to run.
/// - Returns: The number of orders, each of which has been tried once.
/// - Throws: ``InterleavingFailure`` for the first order that went wrong.
@discardableResult
func forEveryInterleaving(
  deviations: Int = 6,
  jobLimit: Int = 10_000,
  _ scenario: @escaping @Sendable () async throws -> Void
) throws -> Int {
  try JobHolder.shared.takingTurns {
    var frontier = [Branch(schedule: [], knownOptions: [])]
    var count = 0
    while let branch = frontier.popLast() {
      let run = Run(scenario, schedule: branch.schedule, jobLimit: jobLimit)
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

/// Runs a scenario in one order: that of a failure which ``forEveryInterleaving(deviations:jobLimit:_:)``
/// has reported.
///
/// - Parameters:
///   - schedule: The order.
///   - jobLimit: How many jobs the run may take.
///   - scenario: What to run.
/// - Throws: ``InterleavingFailure`` if it goes wrong.
func replayInterleaving(
  _ schedule: Schedule,
  jobLimit: Int = 10_000,
  _ scenario: @escaping @Sendable () async throws -> Void
) throws {
  try JobHolder.shared.takingTurns {
    let run = Run(scenario, schedule: schedule, jobLimit: jobLimit)
    if let reason = run.failure(knownOptions: []) {
      throw InterleavingFailure(schedule: schedule, reason: reason)
    }
  }
}

/// Lets every other job that is ready go first.
func hop() async {
  await Task.detached {}.value
}

/// An order to be tried, and how many jobs were ready at each choice of the run that it strays from.
private struct Branch {
  let schedule: Schedule
  let knownOptions: ArraySlice<Int>

  /// The orders that do as the run did up to some choice of its own and then take another job.
  func deviations(in run: Run) -> [Branch] {
    var branches: [Branch] = []
    var followed = schedule
    for position in schedule.count..<max(schedule.count, run.options.count) {
      for choice in 1..<run.options[position] {
        branches.append(
          Branch(schedule: followed + [choice], knownOptions: run.options[...position])
        )
      }
      followed.append(0)
    }
    return branches
  }
}

/// One run of a scenario.
private struct Run {
  /// How many jobs were ready, at each time that there was a choice.
  private(set) var options: [Int] = []

  private var fitsSchedule = true
  private var isTooLong = false
  private let result: Result<Void, any Error>?
  private let jobLimit: Int

  /// Runs the scenario on the calling thread, in the order of the schedule.
  init(
    _ scenario: @escaping @Sendable () async throws -> Void,
    schedule: Schedule,
    jobLimit: Int
  ) {
    let holder = JobHolder.shared
    let outcome = Outcome()
    self.jobLimit = jobLimit
    holder.startHolding()
    // Not detached: what the scenario expects belongs to the test that runs it.
    let task = Task { outcome.result = await Result.catching(scenario) }
    var jobs = 0
    while holder.readyCount > 0, jobs < jobLimit {
      var choice = 0
      if holder.readyCount > 1 {
        if options.count < schedule.count { choice = schedule[options.count] }
        options.append(holder.readyCount)
      }
      if choice >= holder.readyCount {
        fitsSchedule = false
        choice = 0
      }
      jobs += holder.runJob(at: choice, limit: jobLimit - jobs)
    }
    isTooLong = holder.readyCount > 0
    result = outcome.result
    // What has not come to an end gets an opportunity to clean up.
    task.cancel()
    while holder.readyCount > 0, jobs < 2 * jobLimit {
      jobs += holder.runJob(at: 0, limit: 2 * jobLimit - jobs)
    }
    holder.stopHolding()
    if options.count < schedule.count { fitsSchedule = false }
  }

  /// How the run went wrong, if it did.
  ///
  /// - Parameter knownOptions: The choices that there must have been, as far as they are known.
  func failure(knownOptions: ArraySlice<Int>) -> InterleavingFailure.Reason? {
    if isTooLong { return .tooManyJobs(jobLimit) }
    guard fitsSchedule, options.starts(with: knownOptions) else { return .notRepeatable }
    switch result {
    case .success: return nil
    case .failure(let error): return .threw(error)
    case nil: return .neverFinished
    }
  }
}

extension Result where Success == Void, Failure == any Error {
  fileprivate static func catching(_ body: () async throws -> Void) async -> Self {
    do {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }
}
