import Synchronization
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Runs a closure on another thread, and records an issue if a lock of this thread blocks it.
///
/// This thread waits for the other one. A lock that is held is thus noticed whether it is recursive or not, and nothing
/// hangs. After the first issue, later closures are not run.
func withoutLocks(_ body: @escaping @Sendable () -> Void) {
  guard !Attempt.hasFailed.load(ordering: .relaxed) else { return }
  let attempt = Attempt()
  detachThread {
    body()
    attempt.finish()
  }
  // A limit that even a busy machine does not reach.
  guard !attempt.isFinished(after: 600) else { return }
  Attempt.hasFailed.store(true, ordering: .relaxed)
  Issue.record("Something of the user's runs under a lock")
}

/// The work of another thread.
private final class Attempt: @unchecked Sendable {
  static let hasFailed = Atomic(false)

  // The lock of the C library, whose order the thread sanitizer can see.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var isFinished = false

  init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  func finish() {
    pthread_mutex_lock(mutex)
    isFinished = true
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  /// Waits for the end, for at most a number of seconds.
  func isFinished(after seconds: Int) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    // Second by second, because the clock can be set meanwhile.
    for _ in 0..<seconds where !isFinished {
      var deadline = timespec()
      clock_gettime(CLOCK_REALTIME, &deadline)
      deadline.tv_sec += 1
      pthread_cond_timedwait(condition, mutex, &deadline)
    }
    return isFinished
  }
}

/// Runs a closure on its own thread, which belongs to no task, and waits for its end.
func onOwnThread(_ body: @escaping () -> Void) {
  if let thread = startThread(body) { pthread_join(thread, nil) }
}

private func detachThread(_ body: @escaping () -> Void) {
  if let thread = startThread(body) { pthread_detach(thread) }
}

private func startThread(_ body: @escaping () -> Void) -> pthread_t? {
  final class Box {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
  let box = Unmanaged.passRetained(Box(body)).toOpaque()
  #if canImport(Darwin)
  var thread: pthread_t?
  func run(_ box: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    Unmanaged<Box>.fromOpaque(box).takeRetainedValue().body()
    return nil
  }
  #else
  var thread = pthread_t()
  func run(_ box: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let box { Unmanaged<Box>.fromOpaque(box).takeRetainedValue().body() }
    return nil
  }
  #endif
  let status = pthread_create(&thread, nil, { run($0) }, box)
  precondition(status == 0, "The system has no thread left")
  return thread
}
