// The unsafe casts are here because a hub is split in two: what can be compiled once for all types of
// elements, so that subscribing and unsubscribing cost no look-up of generic metadata, and what
// depends on the type. The generic half alone creates the objects that are kept here, and always with
// its own type of elements.

public import Synchronization

/// The half of a ``BroadcastHub`` that does not depend on the type of its elements.
@usableFromInline
class HubCore: @unchecked Sendable {
  @usableFromInline
  struct State: Sendable {
    /// The sequence number of the next element.
    @usableFromInline var sequence = 0
    @usableFromInline var isFinished = false
    @usableFromInline var subscriberCount = 0
    @usableFromInline var lastID = 0
    @usableFromInline var parked = Waiter.List()
    /// The number of parked readers of the log and of the window.
    @usableFromInline var parkedReaders = 0
    /// The last chunk of the log, while somebody reads the log.
    @usableFromInline var tail: LogLink?
    /// The sequence number of that chunk's first element.
    @usableFromInline var tailStart = 0
    @usableFromInline var logReaders = 0
    @usableFromInline var windowReaders = 0
    /// Those who do not read the log, if there has been one.
    @usableFromInline var others: BoundedReadersBase?
    /// The handlers, if there has been one.
    @usableFromInline var handlers: HandlerTable?
    /// Where the number of subscribers is announced, if anybody has asked for it.
    @usableFromInline var counts: SubscriberCountHub?
    /// The tasks that carry other sequences into the hub, by number.
    @usableFromInline var feeders: [UInt64: SourceTask] = [:]

    @inlinable
    init() {}

    /// Counts a new subscriber and gives it the next place in subscription order.
    ///
    /// - Returns: Whether the hub is open; a finished one has no subscribers.
    @inlinable
    mutating func register() -> Bool {
      lastID &+= 1
      guard !isFinished else { return false }
      subscriberCount &+= 1
      if let counts { counts.record(subscriberCount) }
      return true
    }

    /// Whether every reader of the log and of the window has read everything, and waits.
    @inlinable var hasOnlyParkedReaders: Bool { parkedReaders == logReaders &+ windowReaders }

    /// Takes out the elements that every reader has read, if all readers wait.
    ///
    /// - Returns: The elements, to be released without the lock.
    @usableFromInline
    func takeRead() -> ReadElements {
      var read = ReadElements()
      guard hasOnlyParkedReaders else { return read }
      if logReaders > 0 { read.log = tail?.retire() }
      if windowReaders > 0 { read.window = others?.takeWindow() }
      return read
    }

    /// Removes a reader of the log or of the window from the parked waiters.
    ///
    /// - Returns: Whether it was parked.
    @inlinable
    mutating func unpark(_ reader: Reader) -> Bool {
      guard parked.remove(reader) else { return false }
      parkedReaders &-= 1
      return true
    }

    /// Removes all parked waiters, in order of arrival.
    @inlinable
    mutating func unparkAll() -> ContiguousArray<Waiter.ParkedTask> {
      parkedReaders = 0
      return parked.removeAll()
    }

    /// Counts a subscriber no longer.
    ///
    /// - Returns: Whether it was the last.
    @inlinable
    mutating func unregister() -> Bool {
      subscriberCount &-= 1
      guard !isFinished else { return false }
      if let counts { counts.record(subscriberCount) }
      return subscriberCount == 0
    }
  }

  @usableFromInline let state = Locked(State())
  /// The same as in the state, for those who look without the lock.
  @usableFromInline let isFinished = Atomic<Bool>(false)
  /// Whether the number of subscribers is announced.
  @usableFromInline let isCounted = Atomic<Bool>(false)
  /// Whether what subscribers have not read can be taken back from them.
  @usableFromInline let isResettable: Bool
  /// The sequence number of the first element after the last reset, or -1.
  ///
  /// Nothing before it is given to a subscriber, nor what was to be replayed to one that was there already.
  @usableFromInline let cutoff = Atomic<Int>(-1)
  /// Ends the subscription of a reader of the window or of a buffer.
  ///
  /// A method of the generic half would be compiled for no type: this is compiled for the type of a client.
  @usableFromInline let removeBounded: @Sendable (HubCore, Reader) -> Void
  /// Called outside every lock when the last subscriber has been removed.
  @usableFromInline let onEmpty: (@Sendable () -> Void)?
  /// The coarse clock by which loops give their actor to other tasks; `nil` is the system's.
  @usableFromInline let time: (@Sendable () -> Nanoseconds)?

  @inlinable
  init(
    isResettable: Bool,
    onEmpty: (@Sendable () -> Void)?,
    time: (@Sendable () -> Nanoseconds)?,
    removeBounded: @escaping @Sendable (HubCore, Reader) -> Void
  ) {
    self.isResettable = isResettable
    self.removeBounded = removeBounded
    self.time = time
    self.onEmpty = onEmpty
  }

  /// Ends a subscription: it is cancelled, dropped, or has been read to the end.
  ///
  /// - Parameter reader: The subscriber, registered or not.
  @usableFromInline
  final func remove(_ reader: Reader) {
    guard reader.readsLog else { return removeBounded(self, reader) }
    var garbage: LogLink?
    var read = ReadElements()
    let (isParked, isLast) = state.withLock { state in
      reader.isCancelled.store(true, ordering: .releasing)
      guard reader.isRegistered else { return (false, false) }
      reader.isRegistered = false
      let isParked = state.unpark(reader)
      state.logReaders -= 1
      read = state.takeRead()
      // An empty chunk can serve the next reader; one with elements would keep them alive.
      if state.logReaders == 0, state.tailStart != state.sequence {
        garbage = state.tail
        state.tail = nil
      }
      return (isParked, state.unregister())
    }
    if isParked { reader.resume() }
    announceCount()
    if isLast { onEmpty?() }
    read.release()
    withExtendedLifetime(garbage) {}
  }

  /// Finishes a hub without subscribers, which leaves nothing to be done.
  ///
  /// - Returns: Whether that was all; if not, nothing has changed.
  @usableFromInline
  final func finishWithoutSubscribers() -> Bool {
    var garbage: LogLink?
    let isDone = state.withLock { state in
      guard state.subscriberCount == 0, state.others == nil, state.counts == nil,
        state.feeders.isEmpty, state.parked.isEmpty
      else { return state.isFinished }
      state.isFinished = true
      isFinished.store(true, ordering: .releasing)
      garbage = state.tail.take()
      return true
    }
    withExtendedLifetime(garbage) {}
    return isDone
  }

  /// Wakes those who wait for the number of subscribers to change; called with no lock held, after
  /// whatever may have changed it.
  @inlinable
  final func announceCount() {
    if isCounted.load(ordering: .relaxed) { wakeCounters() }
  }

  /// Ends every stream after what has been sent; called with no lock held.
  @usableFromInline
  func end() {}

  /// Removes the handlers whose owners have been released.
  @usableFromInline
  func removeOrphans() {
    // The owners are looked at without the lock: loading a weak reference can make this the last one to
    // hold the object.
    let (owned, direct) = state.withLock { state in
      (state.handlers?.owned ?? [], state.handlers?.direct ?? [])
    }
    for handler in owned where handler.isOrphaned?() == true { handler.cancel() }
    // What is derived from this source leaves with the last of its own handlers.
    for queue in direct { queue.direct?.removeOrphans() }
  }
}

extension HubCore {
  /// The reading of the coarse clock.
  @usableFromInline
  final func coarseTime() -> Nanoseconds {
    time?() ?? coarseNanoseconds()
  }
}

/// A subscriber, as far as it does not depend on the type of its elements.
@usableFromInline
class Reader: Waiter, @unchecked Sendable {
  @usableFromInline let core: HubCore
  /// Whether it walks along the shared log.
  @usableFromInline let readsLog: Bool
  /// Whether it is counted; guarded by the lock of the hub.
  @exclusivity(unchecked) @safe
  @usableFromInline var isRegistered = false

  @inlinable
  init(id: Int, core: HubCore, readsLog: Bool) {
    self.core = core
    self.readsLog = readsLog
    super.init(id: id)
  }

  deinit {
    core.remove(self)
  }
}

/// The multicast core: one order of elements for any number of subscribers.
///
/// An element is stored once, in a log of chunks, however many subscribers walk along it; sending
/// touches only the subscribers that are parked. A subscriber without a limit is a position in the
/// log and reads without a lock. Subscribers that want the newest elements only share one window of
/// them, so that a slow one keeps nothing alive. The few that need more (their own limit from the
/// old end, a sender that they ignore) have a buffer each.
///
/// Whoever owns a hub may call ``prepare(_:from:)`` and ``subscription(bufferingPolicy:replaying:)``
/// under a lock of its own, so that its state and what it announces change together. What is left to
/// do is carried out by ``Delivery/deliver()``, outside every lock.
@usableFromInline
final class BroadcastHub<Element: Sendable>: HubCore, @unchecked Sendable {
  /// Compares elements, if no subscriber is to get one that equals the one that it got last.
  ///
  /// The owner sends no element that equals the one sent before it.
  @usableFromInline let areEqual: DuplicateFilter<Element>.AreEqual?

  /// Creates a hub without subscribers.
  ///
  /// - Parameters:
  ///   - isResettable: Whether ``prepareReset(_:)`` is used, which costs readers of the log their runs.
  ///   - onEmpty: Called outside every lock when the last subscriber has been removed.
  ///   - time: The coarse clock by which loops give their actor to other tasks; `nil` is the system's.
  ///   - areEqual: Compares elements, if no subscriber is to get one that equals the one that it got last.
  @inlinable
  init(
    isResettable: Bool = false,
    onEmpty: (@Sendable () -> Void)? = nil,
    time: (@Sendable () -> Nanoseconds)? = nil,
    areEqual: DuplicateFilter<Element>.AreEqual? = nil
  ) {
    self.areEqual = areEqual
    // Readers of the log look at each element by itself where some have to be skipped.
    super.init(
      isResettable: isResettable || areEqual != nil,
      onEmpty: onEmpty,
      time: time
    ) { core, reader in
      unsafe unsafeDowncast(core, to: BroadcastHub<Element>.self).removeBoundedReader(reader)
    }
  }

  @usableFromInline
  override func end() {
    finish()
  }
}

extension BroadcastHub {
  /// Returns those who do not read the log as what they are, readers of elements of its type.
  @inlinable
  func readers(_ readers: BoundedReadersBase) -> BoundedReaders<Element> {
    unsafe unsafeDowncast(readers, to: BoundedReaders<Element>.self)
  }

  /// Returns those who do not read the log, of whom there may be the first one now.
  @inlinable
  func readers(_ state: inout State) -> BoundedReaders<Element> {
    if let others = state.others { return readers(others) }
    let others = BoundedReaders<Element>()
    state.others = others
    return others
  }

  /// Returns a subscriber of this hub as what it is, a reader of elements of its type.
  @inlinable
  func subscriber(_ reader: Reader) -> Subscriber<Element> {
    unsafe unsafeDowncast(reader, to: Subscriber<Element>.self)
  }
}
