// @unchecked Sendable and unsafe because the value is written once, by whoever has moved the mark away
// from `empty`, and before the mark says `present` with release semantics; it is read only by those who
// have seen that with acquire semantics, and never changes afterwards.

public import Synchronization

/// A value that is set once, by whoever comes first, and read without a lock from then on.
@usableFromInline
@safe
struct SetOnce<Value: Sendable>: ~Copyable, @unchecked Sendable {
  @inlinable static var empty: UInt8 { 0 }
  @inlinable static var claimed: UInt8 { 1 }
  @inlinable static var present: UInt8 { 2 }

  @usableFromInline let mark = Atomic<UInt8>(SetOnce.empty)
  @usableFromInline let storage: UnsafeMutablePointer<Value>

  init() {
    unsafe storage = .allocate(capacity: 1)
  }

  @inlinable
  deinit {
    if mark.load(ordering: .acquiring) == Self.present { unsafe storage.deinitialize(count: 1) }
    unsafe storage.deallocate()
  }

  /// The value, if it has been set.
  @inlinable var value: Value? {
    guard mark.load(ordering: .acquiring) == Self.present else { return nil }
    return unsafe storage.pointee
  }

  /// Sets the value, unless somebody has come first.
  ///
  /// - Parameter value: The value.
  /// - Returns: Whether this call has set it.
  borrowing func set(_ value: Value) -> Bool {
    let (isFirst, _) = mark.compareExchange(
      expected: Self.empty,
      desired: Self.claimed,
      ordering: .acquiring
    )
    guard isFirst else { return false }
    unsafe storage.initialize(to: value)
    mark.store(Self.present, ordering: .releasing)
    return true
  }
}
