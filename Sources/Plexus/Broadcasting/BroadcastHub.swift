public import Synchronization

/// The multicast core: one order of elements for any number of subscribers.
///
/// An element is stored once, in a log of chunks, however many subscribers walk along it; sending
/// touches only the subscribers that are parked. A subscriber without a limit is a position in the
/// log and reads without a lock. Subscribers that want the newest elements only share one window of
/// them, so that a slow one keeps nothing alive. The few that need more (their own limit from the
/// old end, a sender that they ignore) have a mailbox each.
///
/// Whoever owns a hub may call ``prepare(_:from:)`` and ``subscription(bufferingPolicy:replaying:)``
/// under a lock of its own, so that its state and what it announces change together. What is left to
/// do is carried out by ``Delivery/deliver()``, outside every lock.
@usableFromInline
final class BroadcastHub<Element: Sendable>: Sendable {
  @usableFromInline
  struct State: Sendable {
    /// The sequence number of the next element.
    @usableFromInline var sequence = 0
    @usableFromInline var isFinished = false
    @usableFromInline var subscriberCount = 0
    @usableFromInline var lastID = 0
    @usableFromInline var parked = ParkedWaiters()

    /// The last chunk of the log; kept while somebody reads the log.
    @usableFromInline var tail: LogChunk<Element>?
    @usableFromInline var logReaders = 0

    /// The newest elements, as many as the most demanding reader of the window wants.
    @usableFromInline var window = Ring<Element>()
    @usableFromInline var windowLimits = WindowLimits()

    @usableFromInline var mailboxes: ContiguousArray<Mailbox<Element>> = []
    @usableFromInline var groups: ContiguousArray<HandlerGroup<Element>> = []
    /// The handlers that live as long as an owner, by id.
    @usableFromInline var owned: [Int: OwnedHandler] = [:]

    @inlinable
    init() {}

    /// Whether anybody reads something else than the log.
    @inlinable var hasOtherReaders: Bool {
      windowLimits.largest > 0 || !mailboxes.isEmpty || !groups.isEmpty
    }
  }

  @usableFromInline let state = Locked(State())
  /// The same as in the state, for those who look without the lock.
  @usableFromInline let isFinished = Atomic<Bool>(false)
  /// Called outside every lock when the last subscriber has gone.
  @usableFromInline let onEmpty: (@Sendable () -> Void)?

  @usableFromInline
  init(onEmpty: (@Sendable () -> Void)? = nil) {
    self.onEmpty = onEmpty
  }

  /// Sends an element to all subscribers.
  ///
  /// - Parameters:
  ///   - element: What to send.
  ///   - sender: Who sends it; mailboxes may ignore it. 0 is nobody.
  @inlinable
  func send(_ element: Element, from sender: UInt64 = 0) {
    prepare(element, from: sender).deliver()
  }

  /// Appends an element for all subscribers without resuming anybody yet.
  ///
  /// - Parameters:
  ///   - element: What to append.
  ///   - sender: Who sends it; mailboxes may ignore it. 0 is nobody.
  /// - Returns: What remains to be done once the caller holds no lock.
  @inlinable
  func prepare(_ element: Element, from sender: UInt64 = 0) -> Delivery<Element> {
    state.withLock { state in
      var delivery = Delivery<Element>()
      guard state.subscriberCount > 0, !state.isFinished else { return delivery }
      if state.logReaders > 0, let tail = state.tail, let follower = tail.append(element) {
        delivery.filled = tail
        state.tail = follower
      }
      if state.hasOtherReaders { state.append(element, from: sender, to: &delivery) }
      state.sequence &+= 1
      if !state.parked.isEmpty {
        if delivery.woken.isEmpty {
          delivery.woken = state.parked.removeAll()
        } else {
          delivery.woken += state.parked.removeAll()
          delivery.woken.sort { $0.id < $1.id }
        }
      }
      return delivery
    }
  }

  /// Ends every stream after what has been sent; called with no lock held.
  @usableFromInline
  func finish() {
    let (delivery, garbage) = state.withLock { state in
      var delivery = Delivery<Element>()
      var garbage = Garbage()
      guard !state.isFinished else { return (delivery, garbage) }
      state.isFinished = true
      isFinished.store(true, ordering: .releasing)
      delivery.filled = state.tail
      state.tail = nil
      delivery.woken = state.parked.removeAll()
      for mailbox in state.mailboxes {
        if let reader = mailbox.parkedReader { delivery.woken.append(reader) }
        mailbox.parkedReader = nil
      }
      garbage.groups = state.groups.filter(\.queue.isEmpty)
      garbage.entries = garbage.groups.map { $0.takeEntries() }
      state.groups = []
      garbage.owned = state.owned
      state.owned = [:]
      return (delivery, garbage)
    }
    delivery.deliver()
    withExtendedLifetime(garbage) {}
  }

  /// The number of subscribers, handlers included.
  ///
  /// Handlers whose owner has gone are removed first.
  @usableFromInline var subscriberCount: Int {
    removeOrphans()
    return state.withLock { $0.isFinished ? 0 : $0.subscriberCount }
  }

  /// What was taken out under the lock, to be released without it.
  struct Garbage {
    var groups: [HandlerGroup<Element>] = []
    var entries: [ContiguousArray<HandlerEntry<Element>>] = []
    var owned: [Int: OwnedHandler] = [:]
  }
}

extension BroadcastHub.State {
  /// Appends an element for those who do not read the log.
  @usableFromInline
  mutating func append(
    _ element: Element,
    from sender: UInt64,
    to delivery: inout Delivery<Element>
  ) {
    if windowLimits.largest > 0 {
      window.append(element)
      if window.count > windowLimits.largest, let old = window.popFirst() {
        delivery.displaced.append(old)
      }
    }
    for mailbox in mailboxes {
      if let lost = mailbox.deliver(element, from: sender) { delivery.displaced.append(lost) }
      if let reader = mailbox.takeReader() { delivery.woken.append(reader) }
    }
    for group in groups { group.enqueue(element, sequence: sequence) }
  }
}

/// How many of the newest elements the readers of the window want.
@usableFromInline
struct WindowLimits: Sendable {
  /// The most that a reader wants; 0 without readers.
  @usableFromInline private(set) var largest = 0
  private var counts: [Int: Int] = [:]

  @usableFromInline
  init() {}

  mutating func insert(_ limit: Int) {
    counts[limit, default: 0] += 1
    largest = max(largest, limit)
  }

  mutating func remove(_ limit: Int) {
    counts[limit, default: 0] -= 1
    guard counts[limit] == 0 else { return }
    counts[limit] = nil
    if limit == largest { largest = counts.keys.max() ?? 0 }
  }
}
