// @unchecked Sendable and the unsafe pointer are here because the standard library has no array of
// values that cannot be copied, and an array of objects would cost two atomic operations a look-up.
// The pointer is set once and never leaves this file; what it points to are locks.

/// Several locked states of the same kind, so that tasks that use different keys rarely meet.
@usableFromInline
@safe
struct Stripes<State: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let base: UnsafeMutablePointer<Locked<State>>
  @usableFromInline let count: Int

  /// - Parameters:
  ///   - count: How many; a power of two of at most 16.
  ///   - makeState: Makes the state that each of them begins with.
  init(count: Int, makeState: () -> State) {
    precondition(
      count.nonzeroBitCount == 1 && count <= 16,
      "Stripes come in powers of two up to 16"
    )
    unsafe base = .allocate(capacity: count)
    self.count = count
    for index in 0..<count {
      unsafe (base + index).initialize(to: Locked(makeState()))
    }
  }

  deinit {
    unsafe base.deinitialize(count: count)
    unsafe base.deallocate()
  }

  /// Calls the body with exclusive access to the stripe of a hash, which its uppermost bits choose.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    hash: UInt64,
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let index = Int(truncatingIfNeeded: hash &>> 60) & (count &- 1)
    return unsafe try base[index].withLock(body)
  }

  /// Calls the body with exclusive access to each stripe in turn.
  borrowing func withEachLock(_ body: (inout State) -> Void) {
    for index in 0..<count {
      unsafe base[index].withLock(body)
    }
  }
}
