internal import PlexusSupport

/// An order to be tried, and how many jobs were ready at each choice of the run that it strays from.
struct InterleavingBranch {
  let schedule: [Int]
  let knownOptions: ArraySlice<Int>

  /// The orders that do as the run did up to some choice of its own and then take another job.
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
  /// How many jobs were ready, at each time that there was a choice.
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
    // Not detached: what the scenario expects belongs to the test that runs it.
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
    // What has not come to an end gets an opportunity to clean up.
    task.cancel()
    jobs = 0
    while holder.readyCount > 0, jobs < jobLimit {
      jobs += holder.runJob(at: 0, limit: jobLimit - jobs)
    }
    holder.stopHolding()
    if options.count < schedule.count { fitsSchedule = false }
  }

  /// How the run went wrong, if it did.
  ///
  /// - Parameter knownOptions: The choices that there must have been, as far as they are known.
  /// - Returns: What went wrong, or `nil`.
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

/// What a scenario comes to, as far as it does.
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
