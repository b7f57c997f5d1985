/// An error of a load that cannot start.
@nonexhaustive
public enum LoadError: Error, Hashable, Sendable {
  /// The operation requests its own result, directly or through other loads and fetches, and would wait for itself.
  case recursiveLoad
}

extension LoadError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .recursiveLoad:
      "A load waits for itself: its operation calls load() of its own publisher, directly or through others. "
        + "Fetch the value in the operation instead."
    }
  }
}
