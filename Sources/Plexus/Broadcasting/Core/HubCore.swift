// @unchecked Sendable because Swift requires it of classes with subclasses: mutable fields are atomic or guarded by the
// lock of the hub.

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
    /// The last chunk of the log; without readers of the log an empty one, or `nil`.
    @usableFromInline var tail: LogLink?
    /// The sequence number of that chunk's first element.
    @usableFromInline var tailStart = 0
    @usableFromInline var logReaders = 0
    @usableFromInline var windowReaders = 0
    /// The subscribers that do not read the log, created with the first of them.
    @usableFromInline var others: BoundedBuffersBase?
    /// The handlers, created with the first of them.
    @usableFromInline var handlers: HandlerTable?
    /// The hub that announces the number of subscribers, created with its first subscriber.
    @usableFromInline var counts: CountHub?
    /// The tasks that forward other sequences to the hub, by number.
    @usableFromInline var feeders: [UInt64: SourceTask] = [:]
    /// The element that is part of the end, outside all limits, if there is one.
    @usableFromInline var last: AnyBox?

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

    /// Whether every reader of the log and of the window has read all elements and is parked.
    @inlinable var hasOnlyParkedReaders: Bool { parkedReaders == logReaders &+ windowReaders }

    /// Takes out the elements that every reader has read, if all readers are parked.
    ///
    /// - Returns: The elements, to be released without the lock.
    @usableFromInline
    func takeRead() -> ReadElements {
      var read = ReadElements()
      // With an empty chunk and without a window, nothing is kept that has been read.
      guard hasOnlyParkedReaders, windowReaders > 0 || tailStart != sequence else { return read }
      if logReaders > 0, let log = tail?.retire() { read.parts.append(log) }
      if windowReaders > 0, let window = others?.takeWindow() { read.parts.append(window) }
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

    /// Decrements the number of subscribers.
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
  /// A copy of the flag in the state that is read without the lock.
  @usableFromInline let isFinished = Atomic<Bool>(false)
  /// Whether the number of subscribers is announced.
  @usableFromInline let isCounted = Atomic<Bool>(false)
  /// Whether unread elements can be taken back from subscribers.
  @usableFromInline let isResettable: Bool
  /// The sequence number of the first element after the last reset, or -1.
  ///
  /// Elements before it are no longer delivered, nor are replays that were pending at the reset.
  @usableFromInline let cutoff = Atomic<Int>(-1)
  /// The tag up to which new subscribers ignore elements, or 0; only set for hubs of views, under their lock.
  @exclusivity(unchecked) @safe
  @usableFromInline final var passedTag: UInt64 = 0
  /// The stage of which this is the hub, if it is that of a view; set before the hub is used.
  @exclusivity(unchecked) @safe
  @usableFromInline final weak var stage: (any DerivedStage)?
  /// Ends the subscription of a reader of the window or of a buffer.
  ///
  /// An overridden method would not be specialized; a closure is compiled for the client's type of elements.
  @usableFromInline let removeBounded: @Sendable (HubCore, Reader) -> Void
  /// Called outside every lock when the last subscriber has been removed.
  @usableFromInline let onEmpty: (@Sendable () -> Void)?
  /// The coarse clock by which loops yield their actor to other tasks; `nil` is the system's.
  @usableFromInline let time: (@Sendable () -> Nanoseconds)?
  /// The source that registers the handlers of this hub, if it has a hub for each subscription.
  @usableFromInline let host: (any Handler.Host)?

  @inlinable
  init(
    isResettable: Bool,
    onEmpty: (@Sendable () -> Void)?,
    time: (@Sendable () -> Nanoseconds)?,
    host: (any Handler.Host)?,
    removeBounded: @escaping @Sendable (HubCore, Reader) -> Void
  ) {
    self.isResettable = isResettable
    self.removeBounded = removeBounded
    self.time = time
    self.host = host
    self.onEmpty = onEmpty
  }

  /// Ends a subscription: it is cancelled, dropped, or has been read to the end.
  ///
  /// - Parameter reader: The subscriber, registered or not.
  @usableFromInline
  final func remove(_ reader: Reader) {
    defer { if let companion = reader.companion { companion.cancel() } }
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

  /// Finishes the hub if it has no subscribers, which leaves no other work.
  ///
  /// - Returns: Whether the hub is finished; if not, nothing has changed.
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

  /// Resumes the tasks that wait for the number of subscribers; called with no lock held, after an
  /// operation that can have changed it.
  @inlinable
  final func announceCount() {
    if isCounted.load(ordering: .relaxed) { wakeCounters() }
  }

  /// Ends every stream after the elements sent so far; called with no lock held.
  @usableFromInline
  func end() {}

  /// Registers a handler in place of a subscriber that has not been read yet, and starts it.
  func serve(_ recipe: Handler.Recipe, inPlaceOf reader: Reader) -> Handler {
    start(add(recipe))
  }

  /// Ends a subscription that has not been read yet, without calling `onEmpty`.
  ///
  /// - Returns: The elements that it would have read.
  func takeUnread(of reader: Reader) -> [AnyBox] { [] }

  /// Removes the handlers whose owners have been released.
  @usableFromInline
  func removeOrphans() {
    // Owners are checked without the lock: a loaded weak reference can become the last strong one, whose
    // release runs the owner's deinitializer.
    let (owned, direct) = state.withLock { state in
      (state.handlers?.owned ?? [], state.handlers?.direct ?? [])
    }
    for handler in owned where handler.isOrphaned?() == true { handler.cancel() }
    // A derived source unsubscribes from this one with the last of its own handlers.
    for queue in direct { queue.direct?.removeOrphans() }
  }
}

extension HubCore {
  /// Returns the time of the coarse clock.
  @usableFromInline
  final func coarseTime() -> Nanoseconds {
    time?() ?? coarseNanoseconds()
  }
}

extension HubCore {
  /// The elements of a hub that every reader has read.
  @usableFromInline
  struct ReadElements: Sendable {
    /// Those of the log and of the window.
    ///
    /// Usually there are none, and an empty array costs less than optionals of a protocol type.
    @usableFromInline var parts: ContiguousArray<any LogLink.Retired> = []

    @inlinable
    init() {}

    /// Releases the elements; called once, with no lock held.
    @usableFromInline
    func release() {
      for part in parts { part.release() }
    }
  }
}
