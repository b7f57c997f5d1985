// @unchecked Sendable because Swift asks for it of every subclass of `WaitNode`: what changes is atomic. Unsafe because
// a task can be looked at in no other way: its identity is taken, and nothing else.

internal import Synchronization

/// One call of an asynchronous handler of events, known to the tasks that it starts.
///
/// Those tasks carry it, so that a wait is detected that is one for the handler itself.
final class HandlerRun: WaitNode, @unchecked Sendable {
  /// The call that the current task belongs to.
  @TaskLocal static var current: HandlerRun?

  /// The channel whose event is handled.
  private let channel: UInt64
  /// The place of the handler in subscription order.
  private let handler: Int
  /// The number of the event.
  let sequence: Int
  /// The task that the handler is called in, for comparison.
  private let task = HandlerRun.currentTask
  private let hasEnded = Atomic<Bool>(false)

  init(channel: UInt64, handler: Int, sequence: Int) {
    self.channel = channel
    self.handler = handler
    self.sequence = sequence
    super.init()
  }

  override var isSettled: Bool { hasEnded.load(ordering: .acquiring) }

  /// Returns whether the current task is the one in which a handler is called that has not returned.
  ///
  /// A task that the handler has started is another one: the handler can hang while that goes on.
  static func isCurrent(channel: UInt64, handler: Int) -> Bool {
    guard let run = current else { return false }
    return run.channel == channel && run.handler == handler && run.task == currentTask
      && !run.isSettled
  }

  /// A number that two tasks share only if one of them has ended.
  private static var currentTask: Int? {
    unsafe withUnsafeCurrentTask { unsafe $0?.hashValue }
  }

  /// The handler has returned.
  func end() {
    hasEnded.store(true, ordering: .releasing)
  }
}

extension HandlerQueue.Calls {
  /// Returns the call that is under way, unless it is for an event behind the given one.
  func run(upTo sequence: Int) -> HandlerRun? {
    guard let run = latest as? HandlerRun, !run.isSettled, run.sequence <= sequence else {
      return nil
    }
    return run
  }
}
