// The only lock of the library.
//
// @unchecked Sendable and the unsafe pointers are confined to this file: the value is accessible only in `withLock`,
// while the lock is held, and the pointers never leave this file.

public import Synchronization

#if canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#endif

/// A value protected by a mutex.
///
/// No user code runs inside ``withLock(_:)``: no closure, no resumption and no `deinit` of a stored value.
/// Values to release and closures to call are returned from the body and handled after it.
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
  /// - Parameter body: A closure that accesses the value. It must neither call user code nor release anything that
  ///   could.
  /// - Returns: The result of the body.
  /// - Throws: The error of the body.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try mutex.withLock { (value) throws(Failure) in
      Transfer(value: try body(&value))
    }.value
  }

  /// A wrapper that carries a result out of the standard library's lock.
  ///
  /// Without it, the compiler requires a proof that the result is disconnected from the guarded value, which is
  /// not necessary for a `Sendable` value.
  @usableFromInline
  struct Transfer<Result>: @unchecked Sendable {
    @usableFromInline let value: Result

    @inlinable
    init(value: Result) {
      self.value = value
    }
  }
  #else
  // pthread_mutex_t instead of Synchronization.Mutex: the thread sanitizer supports it, and it is faster on
  // Linux. Both cells are inside the object that contains the lock, as those of a `Mutex` are: a separate allocation
  // would cost more than the lock itself.
  @usableFromInline let mutexCell: _Cell<pthread_mutex_t>
  @usableFromInline let valueCell: _Cell<Value>

  @inlinable
  init(_ value: consuming Value) {
    // All zero, which is `PTHREAD_MUTEX_INITIALIZER`: such a mutex can be moved until it is locked for the first time.
    unsafe mutexCell = _Cell(pthread_mutex_t())
    valueCell = _Cell(value)
  }

  @inlinable
  deinit {
    unsafe pthread_mutex_destroy(mutexCell._address)
  }

  /// Calls the body with exclusive access to the value.
  ///
  /// - Parameter body: A closure that accesses the value. It must neither call user code nor release anything that
  ///   could.
  /// - Returns: The result of the body.
  /// - Throws: The error of the body.
  @inlinable
  borrowing func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutexCell._address)
    defer { unsafe pthread_mutex_unlock(mutexCell._address) }
    return unsafe try body(&valueCell._address.pointee)
  }
  #endif
}
