// The only lock of the library.
//
// @unchecked Sendable and the unsafe pointer are confined to this file: the value is accessible only in `withLock`,
// while the lock is held, and the storage never leaves this file.

#if canImport(Darwin)
public import Synchronization
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#elseif canImport(WASILibc)
public import Synchronization
#endif

/// A value protected by a mutex.
///
/// No user code runs inside ``withLock(_:)``: no closure, no resumption and no `deinit` of a stored value. Only `==`
/// of keys does, where a table needs it.
/// Values to release and closures to call are returned from the body and handled after it.
@usableFromInline
@safe
struct Locked<Value: Sendable>: ~Copyable, @unchecked Sendable {
  #if canImport(Darwin) || canImport(WASILibc)
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
  // Linux.
  /// The mutex, followed by the value.
  @usableFromInline let storage: UnsafeMutableRawPointer

  @inlinable static var valueOffset: Int {
    let mask = MemoryLayout<Value>.alignment &- 1
    // Only the mutex of Glibc is a type with pointers.
    #if canImport(Glibc)
    let size = unsafe MemoryLayout<pthread_mutex_t>.size
    #else
    let size = MemoryLayout<pthread_mutex_t>.size
    #endif
    return (size &+ mask) & ~mask
  }

  @inlinable var mutex: UnsafeMutablePointer<pthread_mutex_t> {
    unsafe storage.assumingMemoryBound(to: pthread_mutex_t.self)
  }

  @inlinable var value: UnsafeMutablePointer<Value> {
    unsafe (storage + Self.valueOffset).assumingMemoryBound(to: Value.self)
  }

  @inlinable
  @inline(__always)
  init(_ value: consuming Value) {
    // The stride, since a value without a size needs an address of its own, too.
    let size = Self.valueOffset &+ MemoryLayout<Value>.stride
    unsafe storage = .allocatePlain(byteCount: size, alignment: MemoryLayout<Value>.alignment)
    // `initialize` moves the value; `initializeMemory` would copy it.
    unsafe (storage + Self.valueOffset).bindMemory(to: Value.self, capacity: 1).initialize(
      to: value
    )
    // As `PTHREAD_MUTEX_INITIALIZER`, whose bytes are zero.
    unsafe storage.initializeMemory(as: pthread_mutex_t.self, to: pthread_mutex_t())
  }

  @inlinable
  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe value.deinitialize(count: 1)
    unsafe storage.deallocatePlain(alignment: MemoryLayout<Value>.alignment)
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
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe try body(&value.pointee)
  }
  #endif

  /// Calls the body with exclusive access to the value, and releases what it takes out with no lock held.
  ///
  /// - Parameter body: A closure that accesses the value, and returns what it has taken out of it.
  @inlinable
  borrowing func release<Garbage>(_ body: (inout Value) -> Garbage) {
    withExtendedLifetime(withLock(body)) {}
  }
}
