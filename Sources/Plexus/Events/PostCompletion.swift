// @unchecked Sendable: required for subclasses of `HandlerQueue.Report`; a lock protects the mutable state.

/// The completion of a post, for the caller that waits for it.
final class PostCompletion: HandlerQueue.Report, @unchecked Sendable {
  private struct Progress {
    /// The number of parts that have not ended yet: the streams together, and each queue of handlers.
    var outstanding = 0
    var notified = 0
    var handled = 0
    var outcome: PostOutcome?
    var waiting: SuspendedTask?
    /// The number of the post if it was queued, or 0.
    var number = 0
    /// The sequence number of the event once it has been sent to all subscribers.
    var sequence = Int.max
  }

  private let progress = Locked(Progress())

  /// The number of the post if it was queued, or 0; set once.
  var number: Int {
    get { progress.withLock { $0.number } }
    set { progress.withLock { $0.number = newValue } }
  }

  /// Whether the post has ended or its caller was cancelled.
  var hasEnded: Bool { progress.withLock { $0.outcome != nil } }

  /// The sequence number of the event once it has been sent to all subscribers.
  var sequence: Int { progress.withLock { $0.sequence } }

  /// Begins the delivery to all subscribers; called under the lock of the channel.
  ///
  /// - Parameters:
  ///   - sequence: The sequence number of the event.
  ///   - parts: The number of parts that must end, at least one.
  func fanOut(_ sequence: Int, parts: Int) {
    progress.withLock { progress in
      progress.sequence = sequence
      progress.outstanding = parts
    }
  }

  /// Ends a part: the streams, or the handlers of a queue.
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

  /// Ends the post; called with no lock held.
  func finish(with outcome: PostOutcome) {
    let waiting = progress.withLock { progress -> SuspendedTask? in
      guard progress.outcome == nil else { return nil }
      progress.outcome = outcome
      return progress.waiting.take()
    }
    waiting?.resume()
  }

  /// Ends the wait of a cancelled caller; called with no lock held.
  ///
  /// - Parameter outcome: The progress of the post if its event is persistent.
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

  /// Waits until the post has ended or the caller is cancelled; called once.
  ///
  /// Raises the priority of the handlers to that of the caller.
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
            // Later escalations call `onPriorityEscalated`.
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
