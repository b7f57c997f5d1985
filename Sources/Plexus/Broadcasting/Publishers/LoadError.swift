/// An error of a load that cannot start.
@nonexhaustive
public enum LoadError: Error, Hashable, Sendable {
  /// The operation requests its own result, directly or through other loads and fetches, and would wait for itself.
  case recursiveLoad
  /// The cursor after a page, or before it, is that of a page that the list has already.
  case repeatedCursor
}

extension LoadError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .recursiveLoad:
      "A load waits for itself: its operation calls load() of its own publisher, directly or through others. "
        + "Fetch the value in the operation instead."
    case .repeatedCursor:
      "A page is followed by one that the list has already. Return nil as the cursor of the last page, and another "
        + "cursor for each page."
    }
  }
}
