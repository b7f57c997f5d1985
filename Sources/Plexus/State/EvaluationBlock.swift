/// Eight selectors that evaluate a state one after another.
///
/// Closures in constants of an object are called without being retained, which would cost more than most selectors.
@usableFromInline
final class EvaluationBlock<State: Sendable>: Sendable {
  /// Evaluates a state and notifies the subscribers if the value has changed.
  ///
  /// A bare closure would be wrapped again for each generic container that it passes.
  @usableFromInline
  struct Evaluation: Sendable {
    @usableFromInline let body: @Sendable (State) -> Void

    @inlinable
    init(_ body: @escaping @Sendable (State) -> Void) {
      self.body = body
    }

    /// A placeholder for a selector.
    @inlinable static var none: Self { Self { _ in } }
  }

  /// The number of selectors that a block can hold.
  @inlinable static var capacity: Int { 8 }

  @usableFromInline let first: Evaluation
  @usableFromInline let second: Evaluation
  @usableFromInline let third: Evaluation
  @usableFromInline let fourth: Evaluation
  @usableFromInline let fifth: Evaluation
  @usableFromInline let sixth: Evaluation
  @usableFromInline let seventh: Evaluation
  @usableFromInline let eighth: Evaluation

  /// Creates a block.
  ///
  /// - Parameter evaluations: At most ``capacity`` selectors, with gaps.
  @inlinable
  init(_ evaluations: ArraySlice<Evaluation?>) {
    let start = evaluations.startIndex
    let count = evaluations.count
    first = (count > 0 ? evaluations[start] : nil) ?? .none
    second = (count > 1 ? evaluations[start + 1] : nil) ?? .none
    third = (count > 2 ? evaluations[start + 2] : nil) ?? .none
    fourth = (count > 3 ? evaluations[start + 3] : nil) ?? .none
    fifth = (count > 4 ? evaluations[start + 4] : nil) ?? .none
    sixth = (count > 5 ? evaluations[start + 5] : nil) ?? .none
    seventh = (count > 6 ? evaluations[start + 6] : nil) ?? .none
    eighth = (count > 7 ? evaluations[start + 7] : nil) ?? .none
  }

  /// Evaluates a state with every selector.
  @inlinable
  func evaluate(_ state: State) {
    first.body(state)
    second.body(state)
    third.body(state)
    fourth.body(state)
    fifth.body(state)
    sixth.body(state)
    seventh.body(state)
    eighth.body(state)
  }
}
