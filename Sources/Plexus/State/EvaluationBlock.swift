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
    static var none: Self { Self { _ in } }
  }

  /// How many selectors there is room for.
  static var capacity: Int { 8 }

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
  /// - Parameter evaluation: Returns the selector at an index, less than ``capacity``, if there is one.
  init(_ evaluation: (Int) -> Evaluation?) {
    first = evaluation(0) ?? .none
    second = evaluation(1) ?? .none
    third = evaluation(2) ?? .none
    fourth = evaluation(3) ?? .none
    fifth = evaluation(4) ?? .none
    sixth = evaluation(5) ?? .none
    seventh = evaluation(6) ?? .none
    eighth = evaluation(7) ?? .none
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
