// @unchecked Sendable because Swift requires it of classes with subclasses: mutable fields are atomic or guarded by the
// lock of the hub.

public import Synchronization

/// The half of a ``BroadcastHub`` that does not depend on the type of its elements.
@usableFromInline
class HubBase: @unchecked Sendable {
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
    @usableFromInline var tail: LogBase?
    /// The sequence number of that chunk's first element.
    @usableFromInline var tailStart = 0
    @usableFromInline var logReaders = 0
    @usableFromInline var windowReaders = 0
    /// The subscribers that do not read the log, created with the first of them.
    @usableFromInline var others: BufferedReadersBase?
    /// The handlers, created with the first of them.
    @usableFromInline var handlers: HandlerTable?
    /// The hub that announces the number of subscribers, created with its first subscriber.
    @usableFromInline var counts: CountHub?
    /// The tasks that forward other sequences to the hub, by number.
    @usableFromInline var sourceTasks: [UInt64: SourceTask] = [:]
    /// The element that is part of the end, outside all limits, if there is one.
    @usableFromInline var last: AnyBox?
    /// Appends the elements of a host for readers, once there was one.
    @usableFromInline var put: Put?
    /// The readers of the log and of the window that are known, once a snapshot was taken.
    @usableFromInline var known: KnownReaders?

    @inlinable
    init() {}

    /// Whether every reader of the log and of the window has read all elements and is parked.
    @inlinable var hasOnlyParkedReaders: Bool { parkedReaders == logReaders &+ windowReaders }

    /// Removes a registered reader of the log or of a buffer; it still counts as a subscriber.
    ///
    /// - Parameters:
    ///   - reader: The reader.
    ///   - effects: Receives its task and what is no longer to be read.
    @usableFromInline
    mutating func remove(_ reader: Reader, _ effects: inout HubEffects) {
      reader.isRegistered = false
      if let known { known.remove(reader) }
      if reader.readsLog {
        unpark(reader.waiter, &effects)
        logReaders -= 1
        takeRead(&effects)
        // An empty chunk can serve the next reader; one with elements would keep them alive.
        if logReaders == 0, tailStart != sequence { effects.release(tail.take()) }
      }
      guard let buffer = reader.buffer else { return }
      effects.wake(buffer.takeTask())
      if buffer.isBesideLog { buffer.index = -1 } else { others?.remove(buffer) }
      buffer.removeAll(&effects)
    }

    /// Takes out the elements that every reader has read, if all readers are parked.
    @usableFromInline
    func takeRead(_ effects: inout HubEffects) {
      // With an empty chunk and without a window, nothing is kept that has been read.
      guard hasOnlyParkedReaders, windowReaders > 0 || tailStart != sequence else { return }
      if logReaders > 0, let log = tail?.retire() { effects.add { $0.read.append(log) } }
      if windowReaders > 0, let window = others?.takeWindow() {
        effects.add { $0.read.append(window) }
      }
    }

    /// Removes a reader of the log or of the window from the parked waiters.
    @inlinable
    mutating func unpark(_ reader: Waiter, _ effects: inout HubEffects) {
      guard parked.remove(reader) else { return }
      parkedReaders &-= 1
      effects.wake(reader.takeTask())
    }

    /// Removes all parked waiters.
    @inlinable
    mutating func unparkAll(_ effects: inout HubEffects) {
      guard !parked.isEmpty else { return }
      parkedReaders = 0
      effects.wake(parked.removeAll())
    }
  }

  @usableFromInline let state = Locked(State())
  /// A copy of the flag in the state that is read without the lock.
  @usableFromInline let isFinished = Atomic<Bool>(false)
  /// Whether there is a subscriber, for a look without the lock; changed under it.
  @usableFromInline let hasSubscribers = Atomic<Bool>(false)
  /// Whether the number of subscribers is announced.
  @usableFromInline let isCounted = Atomic<Bool>(false)
  /// Whether the elements of the host wait there, behind others; changed under its lock.
  final let isHeld = Atomic<Bool>(false)
  /// Whether unread elements can be taken back from subscribers.
  @usableFromInline let isResettable: Bool
  /// The sequence number of the first element after the last reset, or -1.
  ///
  /// Elements before it are no longer delivered, nor are replays that were pending at the reset.
  @usableFromInline let cutoff = Atomic<Int>(-1)
  /// The ``SubscriberLimits/passedNumber`` of new subscribers, or 0; only set for hubs of views and of events, under the
  /// lock of their owner.
  @exclusivity(unchecked) @safe
  @usableFromInline final var passedNumber: UInt64 = 0
  /// The stage of which this is the hub, if it is that of a view; set before the hub is used.
  @exclusivity(unchecked) @safe
  @usableFromInline final weak var stage: (any DerivedStage)?
  /// Ends the subscription of a reader of the window.
  ///
  /// An overridden method would not be specialized; a closure is compiled for the client's type of elements.
  @usableFromInline let removeFromWindow: @Sendable (HubBase, Reader) -> Void
  /// Called outside every lock when the last subscriber has been removed.
  @usableFromInline let onEmpty: (@Sendable () -> Void)?
  /// The coarse clock by which loops yield their actor to other tasks; `nil` is the system's.
  @usableFromInline let time: (@Sendable () -> Nanoseconds)?

  @inlinable
  init(
    isResettable: Bool = false,
    onEmpty: (@Sendable () -> Void)? = nil,
    time: (@Sendable () -> Nanoseconds)? = nil,
    removeFromWindow: @escaping @Sendable (HubBase, Reader) -> Void = { _, _ in }
  ) {
    self.isResettable = isResettable
    self.removeFromWindow = removeFromWindow
    self.time = time
    self.onEmpty = onEmpty
  }

  /// Counts a new subscriber and gives it the next place in subscription order; called under the lock.
  ///
  /// - Returns: Whether the hub is open; a finished one has no subscribers.
  @inlinable
  final func register(_ state: inout State) -> Bool {
    state.lastID &+= 1
    guard !state.isFinished else { return false }
    state.subscriberCount &+= 1
    hasSubscribers.store(true, ordering: .relaxed)
    if let counts = state.counts { counts.record(state.subscriberCount) }
    return true
  }

  /// Decrements the number of subscribers; called under the lock.
  ///
  /// - Returns: Whether it was the last.
  @inlinable
  final func unregister(_ state: inout State) -> Bool {
    state.subscriberCount &-= 1
    hasSubscribers.store(state.subscriberCount > 0, ordering: .relaxed)
    guard !state.isFinished else { return false }
    if let counts = state.counts { counts.record(state.subscriberCount) }
    return state.subscriberCount == 0
  }

  /// Ends a subscription: it is cancelled, dropped, or has been read to the end.
  ///
  /// - Parameter reader: The subscriber, registered or not.
  @usableFromInline
  final func remove(_ reader: Reader) {
    defer { if let companion = reader.companion { companion.cancel() } }
    guard !reader.readsWindow else { return removeFromWindow(self, reader) }
    var effects = HubEffects()
    let isLast = state.withLock { state -> Bool? in
      reader.isCancelled.store(true, ordering: .releasing)
      guard reader.isRegistered else { return nil }
      state.remove(reader, &effects)
      return unregister(&state)
    }
    guard let isLast else { return }
    // First the task of the reader, which can subscribe again.
    effects.perform()
    announceCount()
    if isLast { onEmpty?() }
    reader.host?.leave(reader.id)
  }

  /// Finishes the hub if it has no subscribers, which leaves no other work.
  ///
  /// - Returns: Whether the hub is finished; if not, nothing has changed.
  @usableFromInline
  final func finishWithoutSubscribers() -> Bool {
    var garbage: LogBase?
    let isDone = state.withLock { state in
      guard state.subscriberCount == 0, state.others == nil, state.counts == nil,
        state.sourceTasks.isEmpty, state.parked.isEmpty
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

  /// Ends every stream after the elements sent so far, but no handler; called with no lock held.
  func endReaders() {}

  /// Registers a handler in place of a subscriber that has not been read yet.
  ///
  /// - Parameters:
  ///   - reader: The subscriber.
  ///   - recipe: The parts of the handler.
  ///   - host: The source that the handler retains, if that is not the hub.
  ///   - effects: Receives what the subscriber leaves behind.
  ///   - replay: Returns the elements that the handler gets first, given the unread ones of the subscriber and
  ///     the sequence number of the next element.
  /// - Returns: The handler, to be started with no lock held.
  func replace(
    _ reader: Reader,
    with recipe: Handler.Recipe,
    of host: (any Handler.Source)?,
    _ effects: inout HubEffects,
    replaying replay: (_ unread: [AnyBox], _ sequence: Int) -> [AnyBox]
  ) -> Handler.Added {
    add(recipe, of: host)
  }

  /// Removes the handlers whose owners have been released.
  @usableFromInline
  func removeOrphans() {
    // Owners are checked without the lock: a loaded weak reference can become the last strong one, whose
    // release runs the owner's deinitializer.
    let (owned, direct) = state.withLock { state in
      (state.handlers?.owned ?? [], state.handlers?.direct ?? [])
    }
    for handler in owned where handler.isOrphaned?() == true {
      handler.cancel()
      // Another thread can have cancelled it, and be about to remove it.
      remove(handler)
    }
    // A derived source unsubscribes from this one with the last of its own handlers.
    for queue in direct { queue.direct?.removeOrphans() }
  }
}

extension HubBase {
  /// The number of subscribers, handlers included; 0 once the hub has finished.
  final var count: Int {
    state.withLock { $0.isFinished ? 0 : $0.subscriberCount }
  }

  /// Returns the time of the coarse clock.
  @usableFromInline
  final func coarseTime() -> Nanoseconds {
    time?() ?? coarseNanoseconds()
  }
}

extension HubBase {
  /// The part of a ``Subscriber`` that does not depend on the type of its elements.
  @usableFromInline
  class Reader: Waiter, @unchecked Sendable {
    @usableFromInline let core: HubBase
    /// Whether it reads the shared log.
    @usableFromInline let readsLog: Bool
    /// The buffer that it reads, beside the log if it reads that, too.
    @usableFromInline let buffer: Buffer?
    /// Whether it is counted; guarded by the lock of the hub.
    @exclusivity(unchecked) @safe
    @usableFromInline var isRegistered = false
    /// A registration that ends with this subscription; set before another thread can access the reader.
    @exclusivity(unchecked) @safe
    @usableFromInline var companion: Registration?
    /// The source that registers handlers in place of the reader, if it is not the hub; set as the companion is.
    ///
    /// A weak reference of the hub would make each retain of the source slower.
    @exclusivity(unchecked) @safe
    @usableFromInline var host: (any Handler.Host)?

    @inlinable
    init(id: Int, core: HubBase, readsLog: Bool, buffer: Buffer?) {
      self.core = core
      self.readsLog = readsLog
      self.buffer = buffer
      super.init(id: id)
    }

    deinit {
      core.remove(self)
    }

    /// Whether it reads the shared window.
    @inlinable final var readsWindow: Bool { !readsLog && buffer == nil }

    /// The waiter that is parked for it.
    @inlinable final var waiter: Waiter { buffer ?? self }
  }
}
