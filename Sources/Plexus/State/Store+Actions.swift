/// An action that a store has reduced: see ``Store/actions(bufferingPolicy:)``.
///
/// ## Topics
///
/// ### Details
/// - ``action``
/// - ``before``
/// - ``after``
/// - ``number``
///
/// ### Creating a record
/// - ``init(action:before:after:number:)``
public struct ActionRecord<State: Sendable, Action: Sendable>: Sendable {
  /// The action, as it reached the reducer.
  public let action: Action
  /// The state before the action.
  public let before: State
  /// The state after the action.
  public let after: State
  /// The number of the action since the store has had readers, beginning with 1: a gap shows how many the buffering policy
  /// has dropped.
  public let number: Int

  /// Creates a record, for example for a test.
  ///
  /// - Parameters:
  ///   - action: The action.
  ///   - before: The state before the action.
  ///   - after: The state after the action.
  ///   - number: The number of the action.
  @inlinable
  public init(action: Action, before: State, after: State, number: Int = 1) {
    self.action = action
    self.before = before
    self.after = after
    self.number = number
  }
}

extension ActionRecord: Equatable where State: Equatable, Action: Equatable {}
extension ActionRecord: Hashable where State: Hashable, Action: Hashable {}

extension Store {
  /// Returns a stream of the actions from now on, each with the states before and after it, for example for a log.
  ///
  /// An action is recorded when it has been reduced and its state published. Middleware can pass on another action than
  /// the dispatched one, or none: the log has the actions that reached the reducer, in that order, and each state before is
  /// the state after the preceding action. Actions that are dispatched before this call can be among them if the store is
  /// busy. Without drops by the buffering policy, there is no gap.
  ///
  /// While there is no reader, an action costs no more than a look whether there is one. Records keep their states alive
  /// until they are read or dropped.
  ///
  /// ```swift
  /// let store = Store<Int, Int>(0) { state, action in state += action }
  /// let actions = store.actions()
  /// store.dispatch(2)
  /// for await record in actions {
  ///   print(record.before, record.action, record.after)  // Prints "0 2 2"
  ///   break
  /// }
  /// ```
  ///
  /// - Parameter bufferingPolicy: The policy for records that the reader has not read yet: by default, a slow reader misses
  ///   the oldest ones.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or after the actions
  ///   that were dispatched before the store was released.
  public nonisolated func actions(
    bufferingPolicy: BufferingPolicy<ActionRecord<State, Action>> = .bufferingNewest(100)
  ) -> AsyncStream<ActionRecord<State, Action>> {
    engine.actions(bufferingPolicy: bufferingPolicy)
  }
}
