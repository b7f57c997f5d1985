internal import PlexusSupport

/// A schedule to try, and the numbers of ready jobs that the run it deviates from recorded.
struct InterleavingBranch {
  let schedule: [Int]
  let knownOptions: ArraySlice<Int>

  /// Returns the schedules that follow the run up to one later choice and then pick another job.
  func deviations(in run: InterleavingRun) -> [InterleavingBranch] {
    var branches: [InterleavingBranch] = []
    var followed = schedule
    for position in schedule.count..<max(schedule.count, run.options.count) {
      for choice in 1..<run.options[position] {
        branches.append(
          InterleavingBranch(
            schedule: followed + [choice],
            knownOptions: run.options[...position]
          )
        )
      }
      followed.append(0)
    }
    return branches
  }
}

/// One run of a scenario.
struct InterleavingRun {
  /// The number of ready jobs at each choice.
  private(set) var options: [Int] = []

  private var fitsSchedule = true
  private var isTooLong = false
  private let result: Result<Void, any Error>?
  private let jobLimit: Int

  /// Runs the scenario on the calling thread, in the order of the schedule.
  init(
    _ scenario: @escaping @Sendable () async throws -> Void,
    schedule: [Int],
    jobLimit: Int,
    holder: JobHolder
  ) {
    let box = OutcomeBox()
    self.jobLimit = jobLimit
    holder.startHolding()
    // Not detached: expectations in the scenario belong to the calling test.
    let task = Task { box.set(await Result.catching(scenario)) }
    var jobs = 0
    while holder.readyCount > 0, jobs < jobLimit {
      var choice = 0
      if holder.readyCount > 1 {
        if options.count < schedule.count { choice = schedule[options.count] }
        options.append(holder.readyCount)
      }
      if !(0..<holder.readyCount ~= choice) {
        fitsSchedule = false
        choice = 0
      }
      jobs += holder.runJob(at: choice, limit: jobLimit - jobs)
    }
    isTooLong = holder.readyCount > 0
    result = box.result
    // Unfinished tasks get a chance to clean up.
    task.cancel()
    jobs = 0
    while holder.readyCount > 0, jobs < jobLimit {
      jobs += holder.runJob(at: 0, limit: jobLimit - jobs)
    }
    holder.stopHolding()
    if options.count < schedule.count { fitsSchedule = false }
  }

  /// Returns the reason why the run failed, if it did.
  ///
  /// - Parameter knownOptions: The numbers of ready jobs that an earlier run recorded for the same choices.
  /// - Returns: The reason, or `nil` if the run succeeded.
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

/// The result of a scenario, once it has one.
private final class OutcomeBox: Sendable {
  private let state = Locked<Result<Void, any Error>?>(nil)

  var result: Result<Void, any Error>? { state.withLock { $0 } }

  func set(_ result: Result<Void, any Error>) {
    state.withLock { $0 = result }
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
