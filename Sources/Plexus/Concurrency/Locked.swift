// The only lock of the library.
//
// @unchecked Sendable and the unsafe pointer are here, and only here, because the value is reachable
// with the lock held only: `withLock` is the one way in, and the storage never leaves this file.

#if canImport(Darwin)
public import Synchronization
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#endif

/// A value that one thread at a time may touch.
///
/// Nothing that belongs to a user runs inside ``withLock(_:)``: no closure, no resumption, and no
/// `deinit` of something that was stored. Whatever has to be released or called is returned from
/// the body and released or called afterwards.
@usableFromInline
@safe
struct Locked<Value: Sendable>: ~Copyable, @unchecked Sendable {
  #if canImport(Darwin)
  @usableFromInline let mutex: Mutex<Value>

  @inlinable
  init(_ value: Value) {
    mutex = Mutex(value)
  }

  /// Calls the body with exclusive access to the value.
  ///
  /// - Parameter body: What to do with the value. It must neither call user code nor release
  ///   anything that could.
  /// - Returns: What the body returns.
  /// - Throws: What the body throws.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try mutex.withLock { (value) throws(Failure) in
      Transfer(value: try body(&value))
    }.value
  }

  /// Carries a result out of the standard library's lock.
  ///
  /// That would otherwise ask for a proof that the result shares nothing with the guarded value, which
  /// it may: the value is `Sendable`.
  @usableFromInline
  struct Transfer<Result>: @unchecked Sendable {
    @usableFromInline let value: Result

    @inlinable
    init(value: Result) {
      self.value = value
    }
  }
  #else
  // The C library's lock rather than the standard library's: the thread sanitizer sees through it,
  // and it is the faster of the two on Linux.
  @usableFromInline
  @safe
  struct Storage: @unchecked Sendable {
    @usableFromInline var mutex: pthread_mutex_t
    @usableFromInline var value: Value

    @inlinable
    init(value: Value) {
      unsafe mutex = pthread_mutex_t()
      self.value = value
    }
  }

  @usableFromInline let storage: UnsafeMutablePointer<Storage>

  /// The lock itself, the first field of the storage.
  @inlinable var mutex: UnsafeMutablePointer<pthread_mutex_t> {
    unsafe UnsafeMutableRawPointer(storage).assumingMemoryBound(to: pthread_mutex_t.self)
  }

  @inlinable
  init(_ value: Value) {
    unsafe storage = .allocate(capacity: 1)
    unsafe storage.initialize(to: Storage(value: value))
    let status = unsafe pthread_mutex_init(mutex, nil)
    precondition(status == 0, "The system has no memory left for a lock")
  }

  @inlinable
  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe storage.deinitialize(count: 1)
    unsafe storage.deallocate()
  }

  /// Calls the body with exclusive access to the value.
  ///
  /// - Parameter body: What to do with the value. It must neither call user code nor release
  ///   anything that could.
  /// - Returns: What the body returns.
  /// - Throws: What the body throws.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe try body(&storage.pointee.value)
  }
  #endif
}
