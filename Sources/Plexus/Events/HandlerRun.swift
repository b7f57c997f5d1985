internal import Synchronization

/// One call of an asynchronous handler, known to the tasks that it starts.
final class HandlerRun: Sendable {
  /// The call that the current task belongs to.
  @TaskLocal static var current: HandlerRun?

  /// Which channels wait for which others, over all buses of the process.
  private static let waits = Locked(WaitGraphState<UInt64>())

  /// The channel whose event is handled.
  private let channel: UInt64
  /// The place of the handler in subscription order.
  private let handler: Int
  private let hasEnded = Atomic<Bool>(false)

  init(channel: UInt64, handler: Int) {
    self.channel = channel
    self.handler = handler
  }

  /// Returns whether the current task belongs to a call of a handler that has not returned.
  static func isCurrent(channel: UInt64, handler: Int) -> Bool {
    guard let run = current else { return false }
    return run.channel == channel && run.handler == handler
      && !run.hasEnded.load(ordering: .acquiring)
  }

  /// The handler has returned.
  func end() {
    hasEnded.store(true, ordering: .releasing)
  }

  /// Records that the current task waits for an event of a channel, unless that event could not be
  /// handled before the handler has returned that the task belongs to.
  ///
  /// - Parameter target: The channel of the event.
  /// - Returns: The wait, to be ended by the caller; `nil` if it would never end.
  static func wait(for target: UInt64) -> Wait? {
    guard let run = current, !run.hasEnded.load(ordering: .acquiring) else { return Wait() }
    let way = waits.withLock { $0.wait(run.channel, for: target, predecessor: { _ in nil }) }
    return way == nil ? Wait(channels: (run.channel, target)) : nil
  }

  /// A wait that has been recorded.
  struct Wait: Sendable {
    fileprivate var channels: (waiting: UInt64, target: UInt64)?

    func end() {
      guard let (waiting, target) = channels else { return }
      HandlerRun.waits.withLock { $0.stopWaiting(waiting, for: target) }
    }
  }
}
