// @unchecked Sendable: required for subclasses of `HandlerQueue.Report` and of `WaitNode`. The state of `Node` is
// immutable. `outcome` is set once, by the thread that has ended the post, before `stage` says so. `waiting` is set
// before `stage` says so, and then taken once, by that thread.

internal import Synchronization

extension EventChannel {
  /// The completion of a post, for the caller that waits for it and for the log of posts.
  class PostCompletion: HandlerQueue.Report, @unchecked Sendable {
    private static let isOpen: UInt8 = 0
    private static let isAwaited: UInt8 = 1
    private static let isOver: UInt8 = 2

    private let stage = Atomic<UInt8>(EventChannel.PostCompletion.isOpen)
    /// Whether a thread has ended the post.
    private let isEnding = Atomic<Bool>(false)
    @exclusivity(unchecked) @safe
    private var outcome = PostOutcome(notified: 0, handled: 0)
    @exclusivity(unchecked) @safe
    private var waiting: SuspendedTask?

    /// The number of parts that have not ended yet: the streams together, and each queue of handlers.
    private let outstanding = Atomic<Int>(0)
    private let notified = Atomic<Int>(0)
    private let handled = Atomic<Int>(0)
    private let queuedNumber = Atomic<Int>(0)
    private let sentSequence = Atomic<Int>(.max)

    init() {
      super.init()
    }

    /// The number of the post if it was queued, or 0; set once.
    final var number: Int {
      get { queuedNumber.load(ordering: .relaxed) }
      set { queuedNumber.store(newValue, ordering: .relaxed) }
    }

    /// Whether the post has ended or its caller was cancelled.
    final var hasEnded: Bool { stage.load(ordering: .acquiring) == Self.isOver }

    /// The outcome, once the post has ended or its caller was cancelled.
    final var result: PostOutcome? { hasEnded ? outcome : nil }

    /// The sequence number of the event once it has been sent to all subscribers.
    final var sequence: Int { sentSequence.load(ordering: .relaxed) }

    /// Appends the post to the log of posts, if it is a record; called under the lock of its channel, whose order the log
    /// then has.
    ///
    /// - Parameters:
    ///   - log: The log.
    ///   - channel: The channel, with the present subscribers.
    ///   - isRetained: Whether the event is retained.
    ///   - delivery: Receives the work that remains, with no lock held.
    func append(
      to log: PostLog,
      by channel: EventChannel,
      isRetained: Bool,
      _ delivery: inout Delivery<EventPost>
    ) {}

    /// Begins the delivery to all subscribers with the part of the streams; called under the lock of the channel.
    ///
    /// - Parameter sequence: The sequence number of the event.
    final override func begin(sequence: Int) {
      sentSequence.store(sequence, ordering: .relaxed)
      outstanding.store(1, ordering: .relaxed)
    }

    /// Adds the part of a queue, which cannot end before the lock is released; called under the lock of the channel.
    final override func addPart() {
      outstanding.add(1, ordering: .relaxed)
    }

    /// Withdraws the part of the streams, since there are none; called under the lock of the channel.
    ///
    /// - Returns: Whether all other parts have ended. The part is then not withdrawn, and ends with no lock held.
    final func withdrawPart() -> Bool {
      guard outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else {
        return false
      }
      outstanding.store(1, ordering: .relaxed)
      return true
    }

    /// Ends a part: the streams, or the handlers of a queue.
    final override func end(notified: Int, handled: Int) {
      // In this order, a cancelled caller never gets more successes than calls.
      self.notified.add(notified, ordering: .relaxed)
      self.handled.add(handled, ordering: .releasing)
      if outstanding.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
        finish(with: progress)
      }
    }

    private var progress: PostOutcome {
      let handled = handled.load(ordering: .acquiring)
      return PostOutcome(notified: notified.load(ordering: .relaxed), handled: handled)
    }

    /// Ends the post; called with no lock held.
    final func finish(with outcome: PostOutcome) {
      guard !isEnding.exchange(true, ordering: .relaxed) else { return }
      self.outcome = outcome
      if stage.exchange(Self.isOver, ordering: .acquiringAndReleasing) == Self.isAwaited {
        waiting.take()?.resume()
      }
    }

    /// Ends the wait of a cancelled caller; called with no lock held.
    ///
    /// - Parameter outcome: The progress of the post if its event is persistent.
    final func abandon(_ outcome: PostOutcome?) {
      let progress = progress
      finish(
        with: PostOutcome(
          notified: outcome?.notified ?? progress.notified,
          handled: outcome?.handled ?? progress.handled,
          isPersisted: outcome?.isPersisted ?? false,
          isIncomplete: true
        )
      )
    }

    /// Waits until the post has ended or the caller is cancelled; called once.
    ///
    /// Raises the priority of the handlers to that of the caller.
    ///
    /// - Parameter channel: The channel of the event.
    /// - Returns: The outcome, which is incomplete if the caller was cancelled.
    @inline(__always)
    final func outcome(in channel: EventChannel) async -> PostOutcome {
      guard !hasEnded else { return outcome }
      if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
        await withTaskPriorityEscalationHandler(
          operation: {
            // Later escalations call `onPriorityEscalated`.
            channel.raise(to: Task.currentPriority)
            await park(leaving: channel)
          },
          onPriorityEscalated: { _, priority in channel.raise(to: priority) }
        )
      } else {
        channel.raise(to: Task.currentPriority)
        await park(leaving: channel)
      }
      // A caller that is resumed before it has suspended needs its own acquire barrier.
      _ = hasEnded
      return outcome
    }

    @inline(__always)
    private func park(leaving channel: EventChannel) async {
      await withTaskCancellationHandler(
        operation: {
          await SuspendedTask.suspend(isolation: #isolation) { task in
            waiting = task
            let (isParked, _) = stage.compareExchange(
              expected: Self.isOpen,
              desired: Self.isAwaited,
              ordering: .acquiringAndReleasing
            )
            if !isParked { task.resume() }
          }
        },
        onCancel: { channel.abandon(self) },
        isolation: #isolation
      )
    }
  }
}

extension EventChannel.PostCompletion {
  /// A post that a fetch or a handler waits for.
  final class Node: WaitNode, @unchecked Sendable {
    private let completion: EventChannel.PostCompletion
    private let channel: EventChannel

    init(_ completion: EventChannel.PostCompletion, in channel: EventChannel) {
      self.completion = completion
      self.channel = channel
      super.init()
    }

    override var isSettled: Bool { completion.hasEnded }

    /// The handler calls that must end first; before the event is posted, all running ones.
    override var others: [WaitNode] {
      channel.runs(upTo: completion.sequence)
    }
  }
}
