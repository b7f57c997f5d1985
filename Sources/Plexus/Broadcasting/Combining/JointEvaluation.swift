/// The elements of a combination for one state after the other.
final class JointEvaluation: Sendable {
  private struct State: Sendable {
    var results: [JointPlan.StepResult] = []
    /// The round of the last element.
    var round = Int.min
  }

  private let work: JointPlan.Work
  private let state = Locked(State())

  init(_ work: JointPlan.Work) {
    self.work = work
  }

  /// Returns the element for the next state; called for one state at a time, in order.
  ///
  /// - Returns: The element; `nil` if no source of the combination has sent one since the state before.
  func next<Element: Sendable>(_ new: JointState) -> Element? {
    // The steps call user code, so they run without the lock.
    let former = state.withLock { $0.results }
    let results = work.results(for: new, after: former)
    let element = work.element(of: results)
    let isNew = state.withLock { state in
      state.results = results
      defer { state.round = element.changed }
      return element.changed > state.round
    }
    withExtendedLifetime(former) {}
    return isNew ? Box<Element>.element(of: element.box) : nil
  }
}
