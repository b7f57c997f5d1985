extension String {
  /// Returns the text without the first matching suffix, unless nothing else would be left.
  func removingSuffixes(_ suffixes: [String]) -> String {
    for suffix in suffixes where hasSuffix(suffix) && count > suffix.count {
      return String(dropLast(suffix.count))
    }
    return self
  }
}
