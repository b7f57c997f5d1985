/// A type whose values can be compared in some cases, though it is not `Equatable`.
protocol PartlyEquatable {
  /// Whether another value is of the same type and certainly equal.
  func equals(_ other: Any) -> Bool
}

/// Returns whether two values are certainly equal, because their type is `Equatable` and says so.
func areEqual<Value>(_ first: Value, _ second: Value) -> Bool {
  func isEqual<Same: Equatable>(_ first: Same) -> Bool { (second as? Same) == first }
  guard let first = first as? any Equatable else { return false }
  return isEqual(first)
}
