// @unchecked Sendable because Swift asks for it of every subclass of `HandlerQueue.Report`: what changes is guarded by
// a lock.

/// A post that a caller waits for.
final class PostTicket: HandlerQueue.Report, @unchecked Sendable {
  private struct Progress {
    /// How many parts have not ended yet.
    var outstanding = 1
    var notified = 0
    var handled = 0
    var outcome: PostOutcome?
    var waiting: SuspendedTask?
    /// The number of the post, if it is one that has to wait, or 0.
    var number = 0
    /// The number of the event once it is on its way to all subscribers.
    var sequence = Int.max
  }

  private let progress = Locked(Progress())

  /// The number of the post, if it is one that has to wait, or 0; set once.
  var number: Int {
    get { progress.withLock { $0.number } }
    set { progress.withLock { $0.number = newValue } }
  }

  /// Whether the post has ended, or is not waited for any more.
  var hasEnded: Bool { progress.withLock { $0.outcome != nil } }

  /// The number of the event once it is on its way to all subscribers.
  var sequence: Int { progress.withLock { $0.sequence } }

  /// The event is given to all subscribers; called under the lock of the channel.
  ///
  /// - Parameter sequence: The number of the event.
  func fanOut(_ sequence: Int) {
    progress.withLock { $0.sequence = sequence }
  }

  /// Counts one more part that has to end.
  func expectPart() {
    progress.withLock { $0.outstanding += 1 }
  }

  /// A part has ended: the streams, or the handlers of a queue.
  override func end(notified: Int, handled: Int) {
    let waiting = progress.withLock { progress -> SuspendedTask? in
      progress.outstanding -= 1
      progress.notified += notified
      progress.handled += handled
      guard progress.outstanding == 0, progress.outcome == nil else { return nil }
      progress.outcome = PostOutcome(notified: progress.notified, handled: progress.handled)
      return progress.waiting.take()
    }
    waiting?.resume()
  }

  /// The post has ended; called with no lock held.
  func finish(with outcome: PostOutcome) {
    let waiting = progress.withLock { progress -> SuspendedTask? in
      guard progress.outcome == nil else { return nil }
      progress.outcome = outcome
      return progress.waiting.take()
    }
    waiting?.resume()
  }

  /// The caller waits no longer; called with no lock held.
  ///
  /// - Parameter outcome: How far the post has got, if the event is one that is kept.
  func abandon(_ outcome: PostOutcome?) {
    let waiting = progress.withLock { progress -> SuspendedTask? in
      guard progress.outcome == nil else { return nil }
      progress.outcome = PostOutcome(
        notified: outcome?.notified ?? progress.notified,
        handled: outcome?.handled ?? progress.handled,
        isPersisted: outcome?.isPersisted ?? false,
        isIncomplete: true
      )
      return progress.waiting.take()
    }
    waiting?.resume()
  }

  /// Waits until the post has ended or the caller is cancelled, and raises the priority of the handlers to that
  /// of the caller; called once.
  ///
  /// - Parameter channel: The channel of the event.
  /// - Returns: The outcome, which is incomplete if the caller was cancelled.
  func outcome(in channel: EventChannel) async -> PostOutcome {
    if let outcome = progress.withLock({ $0.outcome }) { return outcome }
    return await withTaskCancellationHandler(
      operation: {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
          channel.raise(to: Task.currentPriority)
          return await park()
        }
        return await withTaskPriorityEscalationHandler(
          operation: {
            // A priority that rises from now on calls the handler.
            channel.raise(to: Task.currentPriority)
            return await park()
          },
          onPriorityEscalated: { _, priority in channel.raise(to: priority) }
        )
      },
      onCancel: { channel.abandon(self) },
      isolation: #isolation
    )
  }

  private func park() async -> PostOutcome {
    await SuspendedTask.suspend(isolation: #isolation) { task in
      let isParked = progress.withLock { progress in
        guard progress.outcome == nil else { return false }
        progress.waiting = task
        return true
      }
      if !isParked { task.resume() }
    }
    return progress.withLock { $0.outcome ?? PostOutcome(notified: 0, handled: 0) }
  }
}
