/// A value before and after a change.
///
/// The old value is `nil` only in the first element of a subscriber.
public struct Change<Value: Sendable>: Sendable {
  /// The value exactly one change before.
  public let old: Value?
  /// The new value.
  public let new: Value

  /// Creates a change.
  ///
  /// - Parameters:
  ///   - old: The old value; `nil` if there was none.
  ///   - new: The new value.
  @inlinable
  public init(old: Value?, new: Value) {
    self.old = old
    self.new = new
  }
}

extension Change: Equatable where Value: Equatable {}

extension Change: Hashable where Value: Hashable {}
