// Unsafe: the runtime hook is looked up by name and set through a pointer. It is written under a lock,
// normally once, and then points to a function that is never unloaded. The bits of a job are compared
// and never dereferenced.

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
#elseif canImport(WASILibc)
// Nothing of it is used, since scenarios cannot run on WebAssembly.
#endif

/// Holds the jobs that one thread enqueues and runs them on that thread one at a time.
///
/// The runtime exports a function pointer that is called for every job enqueued on the global
/// executor. It is set once and stays set. Jobs of other threads pass through, so tests that run at the
/// same time are not affected.
final class JobHolder: TaskExecutor, Sendable {
  private static let shared = JobHolder()

  /// A job, and its executor if the executor is an ``InterleavedExecutor``.
  private struct ReadyJob {
    let job: UnownedJob
    var executor: InterleavedExecutor?
  }

  private struct State {
    /// The jobs that are ready to run, oldest first.
    var ready: [ReadyJob] = []
    var running: UnownedJob?
    /// The description of the running job, taken before it ran.
    var runningTask = ""
    /// Whether the running job has enqueued itself again.
    var continues = false

    mutating func insert(_ job: UnownedJob) {
      if let running, job.isSameTask(as: running, described: runningTask) {
        continues = true
      } else {
        ready.append(ReadyJob(job: job))
      }
    }

    /// Returns whether the running job has to run again; if not, marks it as no longer running.
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
  /// The thread whose jobs are held, or zero.
  private let controlledThread = Atomic<UInt>(0)
  /// The thread that runs scenarios at present, or zero.
  private let threadInTurn = Atomic<UInt>(0)

  /// Calls the body with exclusive access to the shared holder.
  ///
  /// - Parameter body: A closure that uses the holder.
  /// - Returns: The result of the body.
  /// - Throws: The error of the body, or an ``InterleavingFailure`` if jobs cannot be held.
  static func takingTurns<Result: Sendable>(
    _ body: (JobHolder) throws -> Result
  ) throws -> Result {
    precondition(
      shared.threadInTurn.load(ordering: .acquiring) != currentThread,
      "A scenario cannot run other scenarios"
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

  /// Holds the jobs of the calling thread from now on.
  func startHolding() {
    controlledThread.store(currentThread, ordering: .releasing)
  }

  /// Lets jobs pass again and discards the held jobs.
  func stopHolding() {
    controlledThread.store(0, ordering: .releasing)
    state.withLock { $0 = State() }
  }

  /// The number of jobs that are ready to run.
  var readyCount: Int { state.withLock { $0.ready.count } }

  /// Runs one of the ready jobs.
  ///
  /// A task that crosses from one nonisolated function into another enqueues itself at the boundary although
  /// it has nothing to wait for. The runtime would continue it immediately, so it is run again here without a
  /// choice.
  ///
  /// - Parameters:
  ///   - index: The index of the job, counted from the oldest.
  ///   - limit: The maximum number of times to run it. A job that is not done by then is ready again.
  /// - Returns: The number of times it ran.
  func runJob(at index: Int, limit: Int) -> Int {
    let (job, executor) = state.withLock { state in
      let ready = state.ready.remove(at: index)
      state.running = ready.job
      state.runningTask = ready.job.description
      return (ready.job, ready.executor)
    }
    var count = 0
    repeat {
      // A task that leaves its actor enqueues itself again and continues outside the actor.
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

  /// Holds the job if the calling thread is the controlled one.
  private func takes(_ job: UnownedJob) -> Bool {
    guard controlledThread.load(ordering: .acquiring) == currentThread else { return false }
    state.withLock { $0.insert(job) }
    return true
  }

  /// Holds a job of an actor if the calling thread is the controlled one.
  ///
  /// A task on its way to an actor can be overtaken even if the actor is idle.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - executor: The executor of the actor.
  /// - Returns: Whether the job is held.
  static func takes(_ job: UnownedJob, on executor: InterleavedExecutor) -> Bool {
    guard shared.controlledThread.load(ordering: .acquiring) == currentThread else { return false }
    shared.state.withLock { $0.ready.append(ReadyJob(job: job, executor: executor)) }
    return true
  }

  /// Installs the hook if necessary.
  ///
  /// - Returns: The reason why jobs cannot be held, or `nil` if they can.
  func obstacle() -> String? {
    // False the first time, or if another tool has installed its own hook in the meantime.
    if isAsked { return nil }
    if let sentence = Self.installHook(named: Self.hookName) { return sentence }
    guard isAsked else {
      return """
        Scenarios cannot run here: the Swift runtime does not call \(Self.hookName) for \
        jobs, for example because the global executor has been replaced
        """
    }
    return nil
  }

  /// Whether a job enqueued by the calling thread arrives here.
  private var isAsked: Bool {
    startHolding()
    Task {}
    let isAsked = readyCount > 0
    while readyCount > 0 { _ = runJob(at: 0, limit: 1) }
    stopHolding()
    return isAsked
  }

  private static let hookName = "swift_task_enqueueGlobal_hook"

  /// Installs the hook of the runtime.
  ///
  /// - Parameter name: The symbol name of the hook.
  /// - Returns: The reason why it cannot be installed, or `nil` on success.
  static func installHook(named name: String) -> String? {
    #if canImport(WASILibc)
    return "Scenarios cannot run on WebAssembly: its programs cannot look up \(name)"
    #else
    typealias Enqueue = @convention(thin) (UnownedJob) -> Void
    typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void
    guard let symbol = unsafe dlsym(dlopen(nil, RTLD_LAZY), name) else {
      return """
        Scenarios cannot run here: the Swift runtime does not export \(name), which intercepts \
        jobs. Link the runtime dynamically, or exclude these tests on this platform
        """
    }
    unsafe symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, original in
      if !JobHolder.shared.takes(job) { original(job) }
    }
    return nil
    #endif
  }
}

extension UnownedJob {
  /// Returns whether the job is the given running task.
  ///
  /// The address is not enough: an actor's job is deallocated before its body begins, and the next job can
  /// be allocated at the same address. Only the descriptions of tasks contain a number.
  ///
  /// - Parameters:
  ///   - running: The running job, which may be deallocated.
  ///   - description: The description of the running job, taken before it ran.
  /// - Returns: Whether both are the same task.
  fileprivate func isSameTask(as running: UnownedJob, described description: String) -> Bool {
    unsafe unsafeBitCast(self, to: UInt.self) == unsafeBitCast(running, to: UInt.self)
      && description.contains(where: \.isNumber) && self.description == description
  }
}

/// The identifier of the calling thread, which is never zero.
private var currentThread: UInt {
  #if canImport(Darwin) || canImport(Musl)
  unsafe UInt(bitPattern: pthread_self())
  #elseif canImport(WASILibc)
  1
  #else
  UInt(truncatingIfNeeded: pthread_self())
  #endif
}
