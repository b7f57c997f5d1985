// @unchecked Sendable because Swift requires it of every subclass of `Registration`: nothing in a handler
// changes but the flags that it inherits.

/// The registration of a closure that is called for the elements of a source.
///
/// The closure itself is stored in the queue, which releases it when the handler is removed.
@usableFromInline
final class Handler: Registration, @unchecked Sendable {
  /// The place in subscription order.
  let id: Int
  let queue: HandlerQueue
  /// The number of newest elements that are kept for the handler; `.max` without a limit, or if `accepted` applies it.
  let newest: Int
  /// The accepted elements, if the oldest are kept, or the newest except those of an ignored sender.
  let accepted: Handler.AcceptedElements?
  let limits: SubscriberLimits
  /// Whether the owner has been released, if there is one.
  let isOrphaned: (@Sendable () -> Bool)?
  /// A registration that ends with the handler.
  private let companion: Registration?
  private weak let source: HubBase?
  /// The source, if the handler retains it.
  private let retainedSource: (any Handler.Source)?

  /// Creates a handler.
  ///
  /// - Parameters:
  ///   - id: The place in subscription order.
  ///   - queue: The queue that calls the handler.
  ///   - recipe: The parts of the handler.
  ///   - host: The source that the handler retains instead of the hub, and which must then release its handlers at its
  ///     end: reference counting of an object is slower once there is a weak reference to it.
  ///   - hub: The hub, if there is one.
  @inline(__always)
  init(
    id: Int,
    queue: HandlerQueue,
    recipe: Handler.Recipe,
    host: (any Handler.Source)?,
    hub: HubBase?
  ) {
    self.id = id
    self.queue = queue
    retainedSource = host
    source = host == nil ? hub : nil
    isOrphaned = recipe.isOrphaned
    companion = recipe.companion
    var limits = recipe.limits
    limits.passedNumber = max(limits.passedNumber, hub?.passedNumber ?? 0)
    self.limits = limits
    // Elements that are not for the handler do not count toward the limit, so the others are counted one by one.
    let ignores = limits.ignoredSender != 0 || limits.passedNumber != 0 || limits.countsOwn
    switch limits.buffer {
    case .none:
      (newest, accepted) = (.max, nil)
    case .newest(let count) where !ignores:
      (newest, accepted) = (count, nil)
    case .newest, .oldest:
      (newest, accepted) = (.max, Handler.AcceptedElements(limit: limits.buffer))
    }
  }

  override func remove() {
    if let retainedSource {
      retainedSource.remove(self)
    } else if let source {
      source.remove(self)
    } else {
      queue.remove(self).perform()
    }
    companion?.cancel()
  }

  /// Ends the handler after its last element, because its source has ended.
  func finish() {
    end()
    companion?.cancel()
  }
}

extension Handler {
  /// The result of a call of a handler.
  @usableFromInline
  enum Ending: Sendable {
    case succeeded
    case failed
    /// The handler was removed, or its owner released, before the call.
    case unreached
  }
}

extension Handler {
  /// The type-erased closure of a handler, created once when the handler is registered.
  @usableFromInline
  enum Call: Sendable {
    /// Calls the handler; has to be called on the handler's actor.
    case synchronous(@Sendable (AnyBox) -> Handler.Ending)
    /// Calls the handler, which can suspend.
    case suspending(@Sendable (AnyBox) async -> Handler.Ending)
    /// Calls the handler on the sending thread.
    case direct(any Handler.SenderCalls)
  }
}

extension Handler {
  /// The parts that a handler is made from.
  @usableFromInline
  struct Recipe: Sendable {
    /// The actor that the handler belongs to.
    let isolation: (any Actor)?
    var call: Handler.Call
    @usableFromInline var limits = SubscriberLimits()
    /// Whether the owner has been released, if there is one.
    let isOrphaned: (@Sendable () -> Bool)?
    /// A registration that ends with the handler.
    @usableFromInline var companion: Registration?

    @usableFromInline
    init(
      isolation: (any Actor)?,
      isOrphaned: (@Sendable () -> Bool)? = nil,
      _ call: Handler.Call
    ) {
      self.isolation = isolation
      self.isOrphaned = isOrphaned
      self.call = call
    }

    /// The parts of a handler with limits.
    @inlinable
    init<Element>(
      isolation: (any Actor)?,
      _ bufferingPolicy: BufferingPolicy<Element>,
      isOrphaned: (@Sendable () -> Bool)? = nil,
      _ call: Handler.Call
    ) {
      self.init(isolation: isolation, isOrphaned: isOrphaned, call)
      limits.buffer = BufferLimit(bufferingPolicy)
    }

    /// Whether the handler can suspend, and has a queue of its own.
    var suspends: Bool {
      if case .suspending = call { true } else { false }
    }

    /// Whether the handler shares a queue with the other synchronous handlers of its actor.
    var isShared: Bool {
      if case .synchronous = call { true } else { false }
    }

    /// The closure, if sending threads call it.
    var direct: (any Handler.SenderCalls)? {
      if case .direct(let calls) = call { calls } else { nil }
    }
  }
}

extension Handler {
  /// The numbers of the elements that were accepted for a handler and not delivered yet.
  final class AcceptedElements: Sendable {
    let limit: BufferLimit
    /// In ascending order.
    private let accepted = Locked(Ring<Int>())

    init(limit: BufferLimit) {
      self.limit = limit
    }

    /// Accepts an element if there is room.
    ///
    /// - Parameters:
    ///   - sequence: The number of the element.
    ///   - isAwaited: Whether the handler is idle, so that the element is accepted even with a limit of 0.
    /// - Returns: Whether it was accepted.
    func offer(_ sequence: Int, isAwaited: Bool) -> Bool {
      accepted.withLock { accepted in
        switch limit.drop(beyond: accepted.count, isAwaited: isAwaited) {
        case .arriving: return false
        case .oldest: _ = accepted.popFirst()
        case .nothing: break
        }
        accepted.append(sequence)
        return true
      }
    }

    /// Whether the next element replaces the oldest one.
    var isFull: Bool {
      accepted.withLock { limit.drop(beyond: $0.count, isAwaited: false) } == .oldest
    }

    /// Looks up an element.
    ///
    /// - Parameter sequence: The number of the element.
    /// - Returns: Whether it was accepted and is still to be delivered.
    func contains(_ sequence: Int) -> Bool {
      accepted.withLock { accepted in
        var (lower, upper) = (0, accepted.count)
        while lower < upper {
          let middle = (lower + upper) / 2
          if (accepted[middle] ?? .max) < sequence { lower = middle + 1 } else { upper = middle }
        }
        return lower < accepted.count && accepted[lower] == sequence
      }
    }

    /// Removes the elements before a number, which are no longer handled.
    ///
    /// - Returns: Whether there were any, and no others.
    func discard(before sequence: Int) -> Bool {
      accepted.withLock { accepted in
        let count = accepted.count
        Self.discard(before: sequence, from: &accepted)
        return count > 0 && accepted.isEmpty
      }
    }

    private static func discard(before sequence: Int, from accepted: inout Ring<Int>) {
      while accepted.count > 0, let first = accepted[0], first < sequence {
        _ = accepted.popFirst()
      }
    }

    /// Takes out an element if it was accepted; called once for each, in order.
    ///
    /// - Parameter sequence: The number of the element.
    /// - Returns: Whether there was room when it was sent.
    func take(_ sequence: Int) -> Bool {
      accepted.withLock { accepted in
        // The numbers of elements that were discarded from the queue are still here.
        Self.discard(before: sequence, from: &accepted)
        guard accepted.count > 0, accepted[0] == sequence else { return false }
        return accepted.popFirst() != nil
      }
    }
  }
}
