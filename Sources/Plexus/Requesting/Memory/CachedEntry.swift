/// The value of a key, and the state of the key.
@usableFromInline
struct CachedEntry<Value: Sendable>: Sendable {
  @usableFromInline var value: Value?
  @usableFromInline var state = EntryState()

  @inlinable
  init() {}
}
