// @unchecked Sendable because Swift requires it of every subclass of `Outcome`: the value never changes.

/// An outcome with a value.
@usableFromInline
final class ValueOutcome<Value: Sendable>: Outcome, @unchecked Sendable {
  @usableFromInline let value: Value

  @inlinable
  init(_ value: Value, _ kind: Kind = .value) {
    self.value = value
    super.init(kind)
  }
}
