// @unchecked Sendable and the unsafe pointer are here because the standard library has no array of
// noncopyable values, and an array of objects would cost two atomic operations a look-up. The pointer
// is set once and points to locks.

/// The shards of a cache, each behind a lock of its own, so that tasks that use different keys rarely contend.
@usableFromInline
@safe
struct Shards<Shard: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let base: UnsafeMutablePointer<Locked<Shard>>
  @usableFromInline let count: Int

  /// - Parameters:
  ///   - count: The number of shards; a power of two of at most 16.
  ///   - makeShard: A closure that returns a new shard.
  @inlinable
  init(count: Int, makeShard: () -> Shard) {
    precondition(
      count.nonzeroBitCount == 1 && count <= 16,
      "The number of shards has to be a power of two up to 16"
    )
    unsafe base = .allocate(capacity: count)
    self.count = count
    for index in 0..<count {
      unsafe (base + index).initialize(to: Locked(makeShard()))
    }
  }

  @inlinable
  deinit {
    unsafe base.deinitialize(count: count)
    unsafe base.deallocate()
  }

  /// Calls the body with exclusive access to the shard of a hash, which its uppermost bits choose.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    hash: UInt64,
    _ body: (inout Shard) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let index = Int(truncatingIfNeeded: hash &>> 60) & (count &- 1)
    return unsafe try base[index].withLock(body)
  }

  /// Calls the body with each shard in turn, and holds all locks until the last call has returned: no other task
  /// sees the change of one shard without the changes of the others.
  @inlinable
  borrowing func withAllLocks(_ body: (inout Shard) -> Void) {
    unsafe Self.withLocks(base, count, body)
  }

  /// Takes the locks in the same order in every call, so that two tasks cannot deadlock.
  @inlinable
  static func withLocks(
    _ base: UnsafeMutablePointer<Locked<Shard>>,
    _ count: Int,
    _ body: (inout Shard) -> Void
  ) {
    guard count > 0 else { return }
    unsafe base.pointee.withLock { shard in
      body(&shard)
      unsafe withLocks(base + 1, count - 1, body)
    }
  }

  /// Calls the body with exclusive access to each shard in turn.
  @inlinable
  borrowing func withEachLock(_ body: (inout Shard) -> Void) {
    for index in 0..<count {
      unsafe base[index].withLock(body)
    }
  }
}
