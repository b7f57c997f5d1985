// Unsafe because the hook of the runtime is a symbol that is looked up by its name and set through a
// pointer: it is written under a lock, once as a rule, and holds a function from then on that is
// always there. The bits of a job are compared and never followed.

internal import PlexusSupport
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// Keeps back the jobs that one thread makes ready, and runs them there one by one.
///
/// The runtime exports a function pointer through which every job passes on its way to the global
/// executor, for tools like this one. It is set once and stays. Jobs of other threads pass: tests
/// that run at the same time notice nothing.
final class JobHolder: TaskExecutor, Sendable {
  private static let shared = JobHolder()

  /// A job, and the actor's executor that it belongs to, if it is one that a scenario knows.
  private struct ReadyJob {
    let job: UnownedJob
    var executor: InterleavedExecutor?
  }

  private struct State {
    /// What could run now, oldest first.
    var ready: [ReadyJob] = []
    var running: UnownedJob?
    /// What the running job called itself before it was run.
    var runningTask = ""
    /// Whether the running job has asked to be run again.
    var continues = false

    mutating func insert(_ job: UnownedJob) {
      if let running, job.isSameTask(as: running, described: runningTask) {
        continues = true
      } else {
        ready.append(ReadyJob(job: job))
      }
    }

    /// Returns whether the running job has to be run again; if not, none is running.
    mutating func continuesRunning(after count: Int, limit: Int) -> Bool {
      defer { continues = false }
      if continues, count < limit { return true }
      if continues, let running { ready.append(ReadyJob(job: running)) }
      running = nil
      return false
    }
  }

  private let turn = Locked(())
  private let state = Locked(State())
  /// The thread whose jobs are kept back, or zero.
  private let controlledThread = Atomic<UInt>(0)
  /// The thread whose turn it is, or zero.
  private let threadInTurn = Atomic<UInt>(0)

  /// Calls the body when no other thread is in a call of this method.
  ///
  /// - Parameter body: What uses the holder.
  /// - Returns: What the body returns.
  /// - Throws: What the body throws, or an ``InterleavingFailure`` if jobs cannot be kept back.
  static func takingTurns<Result: Sendable>(
    _ body: (JobHolder) throws -> Result
  ) throws -> Result {
    precondition(
      shared.threadInTurn.load(ordering: .acquiring) != currentThread,
      "A scenario cannot run scenarios of its own"
    )
    return try shared.turn.withLock { _ in
      shared.threadInTurn.store(currentThread, ordering: .releasing)
      defer { shared.threadInTurn.store(0, ordering: .releasing) }
      if let sentence = shared.obstacle() {
        throw InterleavingFailure(schedule: [], reason: .unsupported(sentence))
      }
      return try body(shared)
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
    let (job, executor) = state.withLock { state in
      let ready = state.ready.remove(at: index)
      state.running = ready.job
      state.runningTask = ready.job.description
      return (ready.job, ready.executor)
    }
    var count = 0
    repeat {
      // A task that leaves its actor asks to be run again, and goes on without the actor.
      if count == 0, let executor {
        unsafe job.runSynchronously(on: executor.asUnownedSerialExecutor())
      } else {
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
      }
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

  /// Keeps a job of an actor back if the calling thread is the controlled one.
  ///
  /// A task that goes to an actor can be overtaken on its way, even if the actor is idle.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - executor: The executor of the actor.
  /// - Returns: Whether it is kept back.
  static func takes(_ job: UnownedJob, on executor: InterleavedExecutor) -> Bool {
    guard shared.controlledThread.load(ordering: .acquiring) == currentThread else { return false }
    shared.state.withLock { $0.ready.append(ReadyJob(job: job, executor: executor)) }
    return true
  }

  /// Sees to it that jobs can be kept back.
  ///
  /// - Returns: Why they cannot, if they cannot.
  func obstacle() -> String? {
    // Not so the first time, or if another tool has set a hook of its own in the meantime.
    if isAsked { return nil }
    if let sentence = Self.installHook(named: Self.hookName) { return sentence }
    guard isAsked else {
      return """
        Scenarios cannot run here: the Swift runtime does not ask \(Self.hookName) what to do with \
        jobs, as with a global executor that has been replaced
        """
    }
    return nil
  }

  /// Whether a job that the calling thread makes ready comes here.
  private var isAsked: Bool {
    startHolding()
    Task {}
    let isAsked = readyCount > 0
    while readyCount > 0 { _ = runJob(at: 0, limit: 1) }
    stopHolding()
    return isAsked
  }

  private static let hookName = "swift_task_enqueueGlobal_hook"

  /// Sets the hook of the runtime.
  ///
  /// - Parameter name: Its name.
  /// - Returns: Why it cannot be set, if it cannot.
  static func installHook(named name: String) -> String? {
    typealias Enqueue = @convention(thin) (UnownedJob) -> Void
    typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void
    guard let symbol = unsafe dlsym(dlopen(nil, RTLD_LAZY), name) else {
      return """
        Scenarios cannot run here: the Swift runtime does not export \(name), with which jobs are held \
        back. Link it dynamically, or leave these tests out on this platform
        """
    }
    unsafe symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, original in
      if !JobHolder.shared.takes(job) { original(job) }
    }
    return nil
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
  /// - Returns: Whether it is.
  fileprivate func isSameTask(as running: UnownedJob, described description: String) -> Bool {
    unsafe unsafeBitCast(self, to: UInt.self) == unsafeBitCast(running, to: UInt.self)
      && description.contains(where: \.isNumber) && self.description == description
  }
}

/// The number of the calling thread, which is never zero.
private var currentThread: UInt {
  #if canImport(Glibc)
  UInt(pthread_self())
  #elseif canImport(Android)
  UInt(bitPattern: Int(pthread_self()))
  #else
  unsafe UInt(bitPattern: pthread_self())
  #endif
}
