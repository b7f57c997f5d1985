// The lock of the testing library, which shares no code with the library that it tests.
//
// @unchecked Sendable and the unsafe pointers are here, and only here, because the value is
// reachable with the lock held only: `withLock` is the one way in, and the pointers never leave
// this file.

#if canImport(Darwin)
import Synchronization
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A value that one thread at a time may touch.
///
/// Nothing that belongs to a test runs inside ``withLock(_:)``: continuations are taken out and
/// resumed afterwards.
@safe
struct Locked<Value: Sendable>: ~Copyable, @unchecked Sendable {
  #if canImport(Darwin)
  private let mutex: Mutex<Value>

  init(_ value: Value) {
    mutex = Mutex(value)
  }

  /// Calls the body with exclusive access to the value.
  borrowing func withLock<Result: Sendable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try mutex.withLock { (value) throws(Failure) in try body(&value) }
  }
  #else
  // The C library's lock rather than the standard library's: the thread sanitizer sees it.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let value: UnsafeMutablePointer<Value>

  init(_ value: Value) {
    unsafe self.value = .allocate(capacity: 1)
    unsafe self.value.initialize(to: value)
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    let status = unsafe pthread_mutex_init(mutex, nil)
    precondition(status == 0, "The system has no memory left for a lock")
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
  }

  /// Calls the body with exclusive access to the value.
  borrowing func withLock<Result: Sendable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe try body(&value.pointee)
  }
  #endif
}
