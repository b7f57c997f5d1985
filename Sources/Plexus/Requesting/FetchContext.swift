/// The previous value and the attempt of a fetch.
public struct FetchContext<Value: Sendable>: Sendable {
  /// The value at the start of the fetch, fresh or stale.
  public let previousValue: Value?
  /// The validator of that value, such as an entity tag, by which the origin determines whether the value has changed.
  public let validator: String?
  /// The number of this attempt, from 1 on.
  public let attempt: Int

  /// Creates a context, for example to call a fetch from a test.
  ///
  /// - Parameters:
  ///   - previousValue: The previous value.
  ///   - validator: The validator of that value.
  ///   - attempt: The number of the attempt.
  public init(previousValue: Value?, validator: String? = nil, attempt: Int = 1) {
    self.previousValue = previousValue
    self.validator = validator
    self.attempt = attempt
  }
}
