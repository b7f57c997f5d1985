/// A value before and after it changed.
///
/// The old value is `nil` only where there was none: in what a subscriber is told first.
public struct Change<Value: Sendable>: Sendable {
  /// What the value was, exactly one change before.
  public let old: Value?
  /// What the value is.
  public let new: Value

  /// Creates a change.
  ///
  /// - Parameters:
  ///   - old: What the value was; `nil` if there was none.
  ///   - new: What the value is.
  @inlinable
  public init(old: Value?, new: Value) {
    self.old = old
    self.new = new
  }
}

extension Change: Equatable where Value: Equatable {}

extension Change: Hashable where Value: Hashable {}
