/// A type that is not `Equatable`, although some of its values can be compared.
protocol PartlyEquatable {
  /// Returns whether another value of the type is certainly equal.
  func equals(_ other: Self) -> Bool
}

/// Returns a comparison of two values, which are equal only if their type can be compared and says so.
func equality<Value>(of type: Value.Type) -> (Value, Value) -> Bool {
  func comparison<Same>(
    _ type: Same.Type,
    _ areEqual: @escaping (Same, Same) -> Bool
  ) -> (Value, Value) -> Bool {
    { first, second in
      guard let first = first as? Same, let second = second as? Same else { return false }
      return areEqual(first, second)
    }
  }
  func ofEquatable<Same: Equatable>(_ type: Same.Type) -> (Value, Value) -> Bool {
    comparison(type) { $0 == $1 }
  }
  func ofPartlyEquatable<Same: PartlyEquatable>(_ type: Same.Type) -> (Value, Value) -> Bool {
    comparison(type) { $0.equals($1) }
  }
  if let type = type as? any Equatable.Type { return ofEquatable(type) }
  if let type = type as? any PartlyEquatable.Type { return ofPartlyEquatable(type) }
  // The values of a protocol type can be of a type that is `Equatable`.
  return { first, second in
    guard let first = first as? any Equatable else { return false }
    func isEqual<Same: Equatable>(_ first: Same) -> Bool { (second as? Same) == first }
    return isEqual(first)
  }
}
