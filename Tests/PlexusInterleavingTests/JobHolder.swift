import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Keeps back the jobs that one thread makes ready, and runs them there one by one.
///
/// The runtime exports a function pointer through which every job passes on its way to the global
/// executor, for tools like this one. It is set once and stays. Jobs of other threads pass: tests
/// that run at the same time notice nothing.
final class JobHolder: TaskExecutor, Sendable {
  static let shared = JobHolder()

  private struct State {
    /// What could run now, oldest first.
    var ready: [UnownedJob] = []
    var running: UnownedJob?
    /// What the running job called itself before it was run.
    var runningTask = ""
    /// Whether the running job has asked to be run again.
    var continues = false

    mutating func insert(_ job: UnownedJob) {
      if let running, job.isSameTask(as: running, described: runningTask) {
        continues = true
      } else {
        ready.append(job)
      }
    }

    /// Returns whether the running job has to be run again; if not, none is running.
    mutating func continuesRunning(after count: Int, limit: Int) -> Bool {
      defer { continues = false }
      if continues, count < limit { return true }
      if continues, let running { ready.append(running) }
      running = nil
      return false
    }
  }

  private let turn = PlatformLock(())
  private let state = PlatformLock(State())
  /// The thread whose jobs are kept back, or zero.
  private let controlledThread = Atomic<UInt>(0)
  /// The thread whose turn it is, or zero.
  private let threadInTurn = Atomic<UInt>(0)

  private init() {
    Self.installHook()
  }

  /// Calls the body when no other thread is in a call of this method.
  func takingTurns<Result>(_ body: () throws -> Result) rethrows -> Result {
    precondition(
      threadInTurn.load(ordering: .acquiring) != currentThread,
      "A scenario cannot run scenarios of its own"
    )
    return try turn.withLock { _ in
      threadInTurn.store(currentThread, ordering: .releasing)
      defer { threadInTurn.store(0, ordering: .releasing) }
      return try body()
    }
  }

  /// Keeps back the jobs of the calling thread from now on.
  func startHolding() {
    controlledThread.store(currentThread, ordering: .releasing)
  }

  /// Lets jobs pass again, and forgets those that have not run.
  func stopHolding() {
    controlledThread.store(0, ordering: .releasing)
    state.withLock { $0 = State() }
  }

  /// How many jobs could run now.
  var readyCount: Int { state.withLock { $0.ready.count } }

  /// Runs one of the jobs that could, counted from the oldest.
  ///
  /// A task that calls from one function that belongs to no actor into another asks to be run again
  /// at the boundary, although there is nothing to wait for. In earnest it goes on at once, and so
  /// it does here: it makes no choice.
  ///
  /// - Parameters:
  ///   - index: Which one.
  ///   - limit: How often to run it at most; a job that is not done by then is ready again.
  /// - Returns: How often it has been run.
  func runJob(at index: Int, limit: Int) -> Int {
    let job = state.withLock { state in
      let job = state.ready.remove(at: index)
      state.running = job
      state.runningTask = job.description
      return job
    }
    var count = 0
    repeat {
      job.runSynchronously(on: asUnownedTaskExecutor())
      count += 1
    } while state.withLock({ $0.continuesRunning(after: count, limit: limit) })
    return count
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { $0.insert(job) }
  }

  /// Keeps the job back if the calling thread is the controlled one.
  private func takes(_ job: UnownedJob) -> Bool {
    guard controlledThread.load(ordering: .acquiring) == currentThread else { return false }
    state.withLock { $0.insert(job) }
    return true
  }

  private static func installHook() {
    typealias Enqueue = @convention(thin) (UnownedJob) -> Void
    typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void
    guard let symbol = dlsym(dlopen(nil, RTLD_LAZY), "swift_task_enqueueGlobal_hook") else {
      preconditionFailure("The Swift runtime does not let jobs be kept back")
    }
    symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, original in
      if !JobHolder.shared.takes(job) { original(job) }
    }
  }
}

extension UnownedJob {
  /// Returns whether the job is a task that is being run.
  ///
  /// The place in memory is not enough: the job of an actor is gone when its body begins, and the
  /// next one may be put into the same place, or not, as it happens. Only tasks have a number.
  ///
  /// - Parameters:
  ///   - running: The job that is being run, which may be gone.
  ///   - description: What that job called itself when it was there.
  fileprivate func isSameTask(as running: UnownedJob, described description: String) -> Bool {
    unsafeBitCast(self, to: UInt.self) == unsafeBitCast(running, to: UInt.self)
      && description.contains(where: \.isNumber) && self.description == description
  }
}

/// The number of the calling thread, which is never zero.
private var currentThread: UInt {
  #if canImport(Darwin)
  UInt(bitPattern: pthread_self())
  #else
  UInt(pthread_self())
  #endif
}

/// What a task of a scenario comes to, as far as it does.
final class Outcome: Sendable {
  private let state = PlatformLock<Result<Void, any Error>?>(nil)

  var result: Result<Void, any Error>? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

/// The C library's lock, which the thread sanitizer sees on every platform.
private final class PlatformLock<Value>: @unchecked Sendable {
  // @unchecked Sendable because `value` is touched with `mutex` held only.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  init(_ value: sending Value) {
    self.value = value
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
