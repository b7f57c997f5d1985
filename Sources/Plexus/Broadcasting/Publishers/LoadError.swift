/// The reasons why a load of a publisher cannot begin.
@nonexhaustive
public enum LoadError: Error, Hashable, Sendable {
  /// The operation of a load asks, directly or by way of other loads and fetches, for what it is loading
  /// itself, and would wait for itself for ever.
  case recursiveLoad
}

extension LoadError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .recursiveLoad:
      "A load waits for itself: its operation calls load() of the publisher it loads for, directly or "
        + "by way of others. Fetch the value in the operation instead."
    }
  }
}
