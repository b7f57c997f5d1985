// @unchecked Sendable and the unsafe pointer are confined to this file: the value is accessible only in `withLock`,
// while the lock is held, and the pointer never leaves this file.

#if canImport(Darwin)
package import Darwin
#elseif canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#elseif canImport(Android)
package import Android
#elseif canImport(WASILibc)
package import Synchronization
#endif

/// A value protected by a mutex.
///
/// No user code is called or released inside ``withLock(_:)``, and no task is resumed there.
@safe
package final class Locked<Value: Sendable>: @unchecked Sendable {
  #if canImport(WASILibc)
  @usableFromInline let mutex: Mutex<Value>

  @inlinable
  package init(_ value: Value) {
    mutex = Mutex(value)
  }

  /// A wrapper that carries a result out of the standard library's lock, which would require a proof that the result
  /// is disconnected from the value.
  @usableFromInline
  struct Transfer<Result>: @unchecked Sendable {
    @usableFromInline let value: Result

    @inlinable
    init(value: Result) {
      self.value = value
    }
  }

  /// Calls the body with exclusive access to the value.
  @inlinable
  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try mutex.withLock { value in Transfer(value: try body(&value)) }.value
  }
  #else
  // pthread_mutex_t, because the thread sanitizer supports it on every platform.
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @exclusivity(unchecked) @safe
  @usableFromInline var content: Content

  /// The value, and a byte that gives one without a size an address of its own: the thread sanitizer would take
  /// accesses of the object for accesses of the value.
  @usableFromInline
  struct Content {
    @usableFromInline var value: Value
    @usableFromInline let end: UInt8 = 0

    @inlinable
    init(value: Value) {
      self.value = value
    }
  }

  @inlinable
  package init(_ value: Value) {
    content = Content(value: value)
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    let status = unsafe pthread_mutex_init(mutex, nil)
    precondition(status == 0, "The system could not initialize a mutex")
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Calls the body with exclusive access to the value.
  @inlinable
  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&content.value)
  }
  #endif
}
