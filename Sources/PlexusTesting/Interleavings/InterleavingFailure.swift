/// An error that describes an order of jobs in which a scenario failed.
public struct InterleavingFailure: Error {
  /// The reason why a scenario failed.
  public enum Reason: Sendable {
    /// The scenario threw an error.
    case threw(any Error)
    /// No job is left to run, and the scenario has not returned.
    case neverFinished
    /// The scenario had jobs left after this number of jobs.
    case tooManyJobs(Int)
    /// The schedule does not fit the scenario, or the scenario did not repeat its earlier choices.
    case notRepeatable
    /// Jobs cannot be intercepted on this platform; the associated string explains the reason.
    case unsupported(String)
  }

  /// The choices among ready jobs: one index for each point at which several jobs were ready.
  ///
  /// Zero is the oldest job. After the end of the schedule, the oldest job runs.
  public let schedule: [Int]

  /// The reason for the failure.
  public let reason: Reason

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - schedule: The choices that led to the failure.
  ///   - reason: The reason for the failure.
  public init(schedule: [Int], reason: Reason) {
    self.schedule = schedule
    self.reason = reason
  }
}

extension InterleavingFailure: CustomStringConvertible {
  /// The reason for the failure, and the call that repeats the order.
  public var description: String {
    let what =
      switch reason {
      case .threw(let error): "\(error)"
      case .neverFinished: "some task never finished or left the calling thread"
      case .tooManyJobs(let count): "it is still not done after \(count) jobs"
      case .notRepeatable: "it is not deterministic, or this is not its schedule"
      case .unsupported(let sentence): sentence
      }
    if case .unsupported = reason { return what }
    return "\(what); repeat this order with replayInterleaving(\(schedule)) { … }"
  }
}
