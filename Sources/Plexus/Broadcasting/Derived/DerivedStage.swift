/// A stage of transforms between a state and its subscribers.
@usableFromInline
protocol DerivedStage: AnyObject, Sendable {
  /// Whether the subscribers have been sent all that was sent to this stage and to those before it.
  var isUpToDate: Bool { get }

  /// Returns elements, made from those of the source, that a new subscriber of this stage or of one after it gets
  /// first.
  func replay<Input: Sendable, Value: Sendable>(
    of source: () -> Replay<Input>?,
    distance: Int?,
    _ transform: @Sendable (Input) -> Value?
  ) -> Replay<Value>?
}
