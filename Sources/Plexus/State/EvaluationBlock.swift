/// Eight selectors that look at a state one after another.
///
/// What an object holds in constants is called without being retained, which would cost more than most
/// selectors do.
@usableFromInline
final class EvaluationBlock<State: Sendable>: Sendable {
  /// Looks at a state and tells the subscribers if the value has changed.
  ///
  /// A closure by itself would be wrapped once more for each generic container that it passes.
  @usableFromInline
  struct Evaluation: Sendable {
    @usableFromInline let body: @Sendable (State) -> Void

    @inlinable
    init(_ body: @escaping @Sendable (State) -> Void) {
      self.body = body
    }

    /// What takes the place of a selector.
    @inlinable static var none: Self { Self { _ in } }
  }

  /// How many selectors there is room for.
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
  /// - Parameter evaluations: The selectors, no more than ``capacity``, with gaps.
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

  /// Lets every selector look at a state.
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
