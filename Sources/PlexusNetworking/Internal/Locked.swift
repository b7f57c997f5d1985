// The only lock of this target, since that of Plexus is not for others, and of LoopbackOrigin, which has a
// link to this file: it is compiled with the benchmarks, too, and depends on nothing.
//
// @unchecked Sendable and the unsafe pointer are here because the value is reachable with the lock
// held only: `withLock` is the one way in, and the pointer never leaves this file.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A value that one thread at a time may touch.
///
/// No code of users is called or released inside ``withLock(_:)``, and no task is resumed there.
@safe
final class Locked<Value: Sendable>: @unchecked Sendable {
  // The C library's lock: the thread sanitizer sees it on every platform.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  init(_ value: Value) {
    self.value = value
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    let status = unsafe pthread_mutex_init(mutex, nil)
    precondition(status == 0, "The system has no memory left for a lock")
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Calls the body with exclusive access to the value.
  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
