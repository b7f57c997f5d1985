/// An order of jobs in which a scenario went wrong, and how.
public struct InterleavingFailure: Error {
  /// What went wrong.
  public enum Reason: Sendable {
    /// The scenario threw.
    case threw(any Error)
    /// Nothing is left to run, and the scenario has not returned.
    case neverFinished
    /// The scenario still had jobs to run after so many.
    case tooManyJobs(Int)
    /// The schedule asks for a choice that there is not, or the choices were others before.
    case notRepeatable
    /// Jobs cannot be held back here; the sentence says why.
    case unsupported(String)
  }

  /// Which of the jobs that were ready ran next: one number for each time that there was a choice.
  ///
  /// Zero is the oldest job. A schedule that has come to its end goes on with zeros.
  public let schedule: [Int]

  /// What went wrong.
  public let reason: Reason

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - schedule: The order in which it went wrong.
  ///   - reason: What went wrong.
  public init(schedule: [Int], reason: Reason) {
    self.schedule = schedule
    self.reason = reason
  }
}

extension InterleavingFailure: CustomStringConvertible {
  /// What went wrong, and how to run the same order again.
  public var description: String {
    let what =
      switch reason {
      case .threw(let error): "\(error)"
      case .neverFinished: "some task never finished, or it left the harness"
      case .tooManyJobs(let count): "it is still not done after \(count) jobs"
      case .notRepeatable: "it does not behave alike in the same order, or this is not its schedule"
      case .unsupported(let sentence): sentence
      }
    if case .unsupported = reason { return what }
    return "\(what); replayInterleaving(\(schedule)) { … } runs this order again"
  }
}
