/// A type that is not `Equatable`, although some of its values can be compared.
protocol PartlyEquatable {
  /// Returns whether the other value has the same type and is certainly equal.
  func equals(_ other: Any) -> Bool
}

/// Returns whether two values are certainly equal, because their type is `Equatable` and says so.
func areEqual<Value>(_ first: Value, _ second: Value) -> Bool {
  func isEqual<Same: Equatable>(_ first: Same) -> Bool { (second as? Same) == first }
  guard let first = first as? any Equatable else { return false }
  return isEqual(first)
}
