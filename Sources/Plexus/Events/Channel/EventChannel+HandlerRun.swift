// @unchecked Sendable: required for subclasses of `WaitNode`; the mutable state is atomic. Unsafe: the identity of
// the current task is only available through an unsafe call.

internal import Synchronization

extension EventChannel {
  /// One call of an asynchronous event handler.
  ///
  /// The tasks that the handler starts carry it as a task-local value, to detect waits for the handler itself.
  final class HandlerRun: WaitNode, @unchecked Sendable {
    /// The call that the current task belongs to.
    @TaskLocal static var current: EventChannel.HandlerRun?

    /// The id of the channel whose event is handled.
    private let channel: UInt64
    /// The place of the handler in subscription order.
    private let handler: Int
    /// The sequence number of the event.
    let sequence: Int
    /// The identity of the task that runs the handler.
    private let task = EventChannel.HandlerRun.currentTask
    private let hasEnded = Atomic<Bool>(false)

    init(channel: UInt64, handler: Int, sequence: Int) {
      self.channel = channel
      self.handler = handler
      self.sequence = sequence
      super.init()
    }

    override var isSettled: Bool { hasEnded.load(ordering: .acquiring) }

    /// Returns whether the current task runs a call of the handler that has not returned.
    ///
    /// Tasks started by the handler do not count: the handler can hang while they continue.
    static func isCurrent(channel: UInt64, handler: Int) -> Bool {
      guard let run = current else { return false }
      return run.channel == channel && run.handler == handler && run.task == currentTask
        && !run.isSettled
    }

    /// The identity of the current task, which is unique among running tasks.
    private static var currentTask: Int? {
      unsafe withUnsafeCurrentTask { unsafe $0?.hashValue }
    }

    /// Calls the handler in a task that carries the run.
    ///
    /// - Parameters:
    ///   - body: The closure of the handler.
    ///   - box: The event.
    ///   - registration: The registration of the handler.
    ///   - isolation: The actor of the handler.
    /// - Returns: The result of the call.
    func call(
      _ body: @Sendable (AnyBox) async -> Handler.Ending,
      with box: AnyBox,
      of registration: Registration,
      isolation: isolated (any Actor)?
    ) async -> Handler.Ending {
      await WaitScope.local.withValue(self) {
        // A closure that does not capture the actor runs outside of it.
        _ = isolation
        return await HandlerRun.$current.withValue(self) {
          _ = isolation
          // Binding a task-local value can leave the actor, where the handler can have been cancelled meanwhile.
          return registration.isCancelled ? .unreached : await body(box)
        }
      }
    }

    /// Marks the call as ended.
    func end() {
      hasEnded.store(true, ordering: .releasing)
    }
  }
}

extension HandlerQueue.Calls {
  /// Returns the running call, unless it is for an event after the given one.
  func run(upTo sequence: Int) -> EventChannel.HandlerRun? {
    guard let run = latest as? EventChannel.HandlerRun, !run.isSettled, run.sequence <= sequence
    else {
      return nil
    }
    return run
  }
}
