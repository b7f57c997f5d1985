/// A value on its way to callers: one object, however many of them there are.
@usableFromInline
final class Answer<Value: Sendable>: Sendable {
  @usableFromInline let value: Value
  let source: Response<Value>.Source
  let storedAt: Nanoseconds
  let isStale: Bool
  let error: (any Error)?

  init(
    value: Value,
    source: Response<Value>.Source,
    storedAt: Nanoseconds,
    isStale: Bool = false,
    error: (any Error)? = nil
  ) {
    self.value = value
    self.source = source
    self.storedAt = storedAt
    self.isStale = isStale
    self.error = error
  }

  /// Makes the answer that a copy is.
  init(
    _ copy: StoredCopy<Value>,
    source: Response<Value>.Source,
    isStale: Bool,
    error: (any Error)? = nil
  ) {
    value = copy.value
    storedAt = copy.storedAt
    self.source = source
    self.isStale = isStale
    self.error = error
  }
}
