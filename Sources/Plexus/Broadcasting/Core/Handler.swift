// @unchecked Sendable because Swift requires it of every subclass of `Registration`: nothing in a handler
// changes but the flags that it inherits.

extension Handler {
  /// A source that handlers are registered with.
  protocol Source: AnyObject, Sendable {
    /// Removes a handler; called once, with no lock held.
    func remove(_ handler: Handler)
  }

  /// A source that has a hub for each subscription, and one order of all its handlers.
  @usableFromInline
  protocol Host: AnyObject, Sendable {
    /// Registers a handler in place of a subscription that has just been made.
    ///
    /// - Parameters:
    ///   - reader: The subscription, which has not been read.
    ///   - recipe: The parts of the handler, with the limits of the subscription.
    /// - Returns: The handler, which has started; `nil` if it belongs to the hub of the subscription.
    func replace(_ reader: HubCore.Reader, with recipe: Handler.Recipe) -> Handler?
  }
}

/// The registration of a closure that is called for the elements of a source.
///
/// The closure itself is stored in the queue, which releases it when the handler is removed.
@usableFromInline
final class Handler: Registration, @unchecked Sendable {
  /// The place in subscription order.
  let id: Int
  /// The number of the first element that the handler gets.
  let start: Int
  let queue: HandlerQueue
  /// The number of newest elements that are kept for the handler; `.max` if `accepted` applies the limit.
  let newest: Int
  /// The accepted elements, if the oldest are kept, or the newest except those of an ignored sender.
  let accepted: Handler.AcceptedElements?
  /// The sender whose elements the handler does not get, or 0.
  let ignoredSender: UInt64
  /// The tag up to which the handler does not get elements, or 0.
  let passedTag: UInt64
  /// Whether the owner has been released, if there is one.
  let isOrphaned: (@Sendable () -> Bool)?
  /// A registration that ends with the handler.
  private let companion: Registration?
  private weak let source: (any Handler.Source)?
  /// The source, if the handler retains it.
  private let retainedSource: (any Handler.Source)?

  /// Creates a handler.
  ///
  /// - Parameters:
  ///   - id: The place in subscription order.
  ///   - start: The number of the first element that the handler gets.
  ///   - queue: The queue that calls the handler.
  ///   - recipe: The parts of the handler.
  ///   - source: The source.
  ///   - retainsSource: Whether the handler retains the source, which must then release its handlers at its end.
  ///     Reference counting of an object is slower once there is a weak reference to it.
  @inline(__always)
  init(
    id: Int,
    start: Int,
    queue: HandlerQueue,
    recipe: Handler.Recipe,
    source: (any Handler.Source)?,
    retainsSource: Bool = false
  ) {
    self.id = id
    self.start = start
    self.queue = queue
    self.source = retainsSource ? nil : source
    retainedSource = retainsSource ? source : nil
    isOrphaned = recipe.isOrphaned
    companion = recipe.companion
    ignoredSender = recipe.limits.ignoredSender
    passedTag = recipe.limits.passedTag
    // Elements that are not for the handler do not count toward the limit, so the others are counted one by one.
    let ignores = ignoredSender != 0 || passedTag != 0 || recipe.limits.countsOwn
    let countsNewest = ignores && recipe.limits.newest < .max
    newest = countsNewest ? .max : recipe.limits.newest
    accepted =
      countsNewest
      ? Handler.AcceptedElements(limit: recipe.limits.newest, keepsNewest: true)
      : recipe.limits.oldest.map { Handler.AcceptedElements(limit: $0, keepsNewest: false) }
  }

  /// Returns whether the handler gets the elements of a sender, or with a tag in its place.
  func admits(_ sender: UInt64) -> Bool {
    sender == 0 || sender != ignoredSender && sender > passedTag
  }

  override func remove() {
    if let source = retainedSource ?? source {
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

    @inlinable
    init(_ result: HandlerResult) {
      self = result == .handledSuccessfully ? .succeeded : .failed
    }
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
    case direct(any Handler.DirectCalls)
  }
}

extension Handler {
  /// The limits of the elements that are kept for a handler while it is behind.
  @usableFromInline
  struct Limits: Sendable {
    /// The number of newest elements that are kept.
    @usableFromInline var newest = Int.max
    /// The number of elements that are kept, if the oldest are.
    @usableFromInline var oldest: Int?
    /// The sender whose elements the handler does not get, or 0.
    @usableFromInline var ignoredSender: UInt64 = 0
    /// The tag up to which the handler does not get elements, which have it instead of a sender.
    @usableFromInline var passedTag: UInt64 = 0
    /// Whether the queue has elements that are for other handlers only.
    var countsOwn = false

    @inlinable
    init() {}

    /// The limits of a buffering policy.
    @inlinable
    init<Element>(_ bufferingPolicy: BufferingPolicy<Element>) {
      self.init()
      switch bufferingPolicy {
      case .unbounded: break
      case .bufferingNewest(let limit) where limit > 0: newest = limit
      case .bufferingNewest(let limit), .bufferingOldest(let limit): oldest = max(limit, 0)
      @unknown default: break
      }
    }
  }
}

extension Handler {
  /// The parts that a handler is made from.
  @usableFromInline
  struct Recipe: Sendable {
    /// The actor that the handler belongs to.
    let isolation: (any Actor)?
    var call: Handler.Call
    @usableFromInline var limits = Handler.Limits()
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
      limits = Handler.Limits(bufferingPolicy)
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
    var direct: (any Handler.DirectCalls)? {
      if case .direct(let calls) = call { calls } else { nil }
    }
  }
}

extension Handler {
  /// The numbers of the elements that were accepted for a handler and not delivered yet.
  final class AcceptedElements: Sendable {
    let limit: Int
    /// Whether an element beyond the limit replaces the oldest one.
    private let keepsNewest: Bool
    /// In ascending order.
    private let accepted = Locked(Ring<Int>())

    init(limit: Int, keepsNewest: Bool) {
      self.limit = limit
      self.keepsNewest = keepsNewest
    }

    /// Accepts an element if there is room.
    ///
    /// - Parameters:
    ///   - sequence: The number of the element.
    ///   - isAwaited: Whether the handler is idle, so that the element is accepted even with a limit of 0.
    /// - Returns: Whether it was accepted.
    func offer(_ sequence: Int, isAwaited: Bool) -> Bool {
      accepted.withLock { accepted in
        if keepsNewest {
          accepted.append(sequence)
          if accepted.count > limit { _ = accepted.popFirst() }
          return true
        }
        guard accepted.count < max(limit, isAwaited ? 1 : 0) else { return false }
        accepted.append(sequence)
        return true
      }
    }

    /// Whether the next element replaces the oldest one.
    var isFull: Bool {
      keepsNewest && accepted.withLock { $0.count } == limit
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

extension Handler {
  /// A handler that sending threads call, with no lock held.
  @usableFromInline
  protocol DirectCalls: AnyObject, Sendable {
    /// Whether the handler gets the elements, one at a time and in order, rather than notifications.
    var isOrdered: Bool { get }
    /// Delivers an element, or notes that one has passed that is not for the handler.
    func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue)
    /// Notes that an element was sent: instead of the element, or because another thread delivers it.
    func note()
    /// Notes that elements sent before have been taken back.
    func takeBack(in queue: HandlerQueue)
    /// Removes handlers behind this one whose owners have been released.
    func removeOrphans()
    /// Notes that the source has ended.
    func end()
  }
}
