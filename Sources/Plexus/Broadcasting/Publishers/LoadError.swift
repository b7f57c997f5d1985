/// An error of a load that cannot start or end.
@nonexhaustive
public enum LoadError: Error, Hashable, Sendable {
  /// The operation requests its own result, directly or through other loads and fetches, and would wait for itself.
  case recursiveLoad
  /// A page gives the cursor of a page that is already in the list, so that the list would never end.
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
      "A list returns to a page that it already has: the cursor before or after a page is that of a loaded one. "
        + "Return nil at the ends of the list, and a different cursor for each page."
    }
  }
}
