// The pointer carries the body of the thread into it: retained here, released there.
//
// @unchecked Sendable because a thread is named by a pointer on some platforms; it is passed to the
// C library and not followed.

#if !os(WASI)
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A thread that runs one function.
package final class LoopThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }

  /// The thread, until a call has waited for its end.
  private let handle: Locked<ThreadHandle?>

  /// Starts a thread.
  package init(_ run: @escaping @Sendable () -> Void) throws(SystemError) {
    let body = unsafe Unmanaged.passRetained(Body(run))
    #if canImport(Darwin) || canImport(Musl)
    var thread: pthread_t?
    #else
    var thread = pthread_t()
    #endif
    // The argument is the result as well, since systems differ in whether either can be `nil`.
    let status = unsafe pthread_create(
      &thread,
      nil,
      { pointer in
        unsafe LoopThread.run(pointer)
        return unsafe pointer
      },
      body.toOpaque()
    )
    guard status == 0 else {
      unsafe body.release()
      throw SystemError(call: "pthread_create", code: status)
    }
    #if canImport(Darwin) || canImport(Musl)
    handle = unsafe Locked(thread.map(ThreadHandle.init))
    #else
    handle = Locked(ThreadHandle(thread: thread))
    #endif
  }

  deinit {
    if let handle = handle.withLock({ $0.take() }) { handle.detach() }
  }

  /// Waits for the end of the thread; any number of threads can wait.
  ///
  /// On the thread itself it returns at once.
  package func join() {
    handle.withLock { handle in
      guard let thread = handle, !thread.isCurrent else { return }
      thread.join()
      handle = nil
    }
  }

  private static func run(_ pointer: UnsafeMutableRawPointer?) {
    guard let pointer = unsafe pointer else { return }
    unsafe Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run()
  }
}

#if canImport(Darwin) || canImport(Musl)
@safe
private struct ThreadHandle: @unchecked Sendable {
  let thread: pthread_t

  var isCurrent: Bool { unsafe pthread_equal(thread, pthread_self()) != 0 }

  func join() { _ = unsafe pthread_join(thread, nil) }

  func detach() { _ = unsafe pthread_detach(thread) }
}
#else
private struct ThreadHandle: Sendable {
  let thread: pthread_t

  var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

  func join() { _ = pthread_join(thread, nil) }

  func detach() { _ = pthread_detach(thread) }
}
#endif
#endif
