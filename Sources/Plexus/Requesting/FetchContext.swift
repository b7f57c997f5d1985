/// What a fetch may want to know about the value that it renews.
public struct FetchContext<Value: Sendable>: Sendable {
  /// The value that there was when the fetch began, fresh or stale.
  public let previousValue: Value?
  /// What came with that value to ask the origin whether it has changed, such as an entity tag.
  public let validator: String?
  /// The number of this attempt: 1, 2, ...
  public let attempt: Int

  /// Creates a context, for instance to call a fetch from a test.
  ///
  /// - Parameters:
  ///   - previousValue: The value that there is.
  ///   - validator: What came with that value.
  ///   - attempt: The number of the attempt.
  public init(previousValue: Value?, validator: String? = nil, attempt: Int = 1) {
    self.previousValue = previousValue
    self.validator = validator
    self.attempt = attempt
  }
}
