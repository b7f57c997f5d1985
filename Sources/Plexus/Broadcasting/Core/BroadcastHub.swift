// The unsafe casts exist because a hub is split in two: `HubCore` is compiled once for all types of elements, so that
// subscribing and unsubscribing cost no look-up of generic metadata. Only the generic half, here, creates the objects
// that `HubCore` stores, always with its own type of elements. @unchecked Sendable because Swift requires it of
// subclasses of such a class: the fields here are constants.

public import Synchronization

/// The multicast core: one order of elements for any number of subscribers.
///
/// A subscriber without a limit is a position in a log of chunks, which stores an element once for all
/// of them, and reads without a lock. Subscribers that buffer a few of the newest elements share one
/// window of them, so that a slow one keeps no other elements alive. Subscribers with other limits, or
/// that ignore a sender, have a buffer each. Sending accesses the log, the window, the buffers, the
/// queues of handlers and the parked readers.
///
/// The owner of a hub can call ``prepare(_:from:)`` and ``subscription(bufferingPolicy:replaying:)``
/// under a lock of its own, so that its state and its announcements change together.
/// ``Delivery/deliver()`` does the remaining work, outside every lock.
@usableFromInline
final class BroadcastHub<Element: Sendable>: HubCore, @unchecked Sendable {
  /// The comparison that finds consecutive duplicates, if they are removed for each subscriber.
  ///
  /// The owner sends no element that equals the one sent before it.
  @usableFromInline let areEqual: DuplicateFilter<Element>.AreEqual?

  /// Creates a hub without subscribers.
  ///
  /// - Parameters:
  ///   - isResettable: Whether elements can be taken back, so that readers of the log read them one at a time.
  ///   - onEmpty: Called outside every lock when the last subscriber has been removed.
  ///   - time: The coarse clock by which loops yield their actor to other tasks; `nil` is the system's.
  ///   - host: The source that registers the handlers of this hub, if it has a hub for each subscription.
  ///   - areEqual: The comparison that finds consecutive duplicates, if they are removed for each subscriber.
  @inlinable
  init(
    isResettable: Bool = false,
    onEmpty: (@Sendable () -> Void)? = nil,
    time: (@Sendable () -> Nanoseconds)? = nil,
    host: (any Handler.Host)? = nil,
    areEqual: DuplicateFilter<Element>.AreEqual? = nil
  ) {
    self.areEqual = areEqual
    // Readers of the log read one element at a time if elements can be skipped.
    super.init(
      isResettable: isResettable || areEqual != nil,
      onEmpty: onEmpty,
      time: time,
      host: host
    ) { core, reader in
      unsafe unsafeDowncast(core, to: BroadcastHub<Element>.self).removeBoundedReader(reader)
    }
  }

  @usableFromInline
  override func end() {
    finish()
  }

  override func serve(_ recipe: Handler.Recipe, inPlaceOf reader: Reader) -> Handler {
    start(replace(subscriber(reader), with: recipe))
  }

  override func takeUnread(of reader: Reader) -> [AnyBox] {
    let subscriber = subscriber(reader)
    var garbage = Replaced()
    defer { garbage.release() }
    return state.withLock { state in
      if subscriber.isRegistered { _ = state.unregister() }
      return takeOver(subscriber, &state, &garbage)
    }
  }
}

extension BroadcastHub {
  /// Returns the subscribers that do not read the log with their type of elements.
  @inlinable
  func readers(_ readers: BoundedBuffersBase) -> BoundedBuffers<Element> {
    unsafe unsafeDowncast(readers, to: BoundedBuffers<Element>.self)
  }

  /// Returns the subscribers that do not read the log, creating their list if needed.
  @inlinable
  func readers(_ state: inout State) -> BoundedBuffers<Element> {
    if let others = state.others { return readers(others) }
    let others = BoundedBuffers<Element>()
    state.others = others
    return others
  }

  /// Returns a subscriber of this hub with its type of elements.
  @inlinable
  func subscriber(_ reader: Reader) -> Subscriber<Element> {
    unsafe unsafeDowncast(reader, to: Subscriber<Element>.self)
  }
}

extension BroadcastHub {
  /// Sends an element to all subscribers.
  ///
  /// - Parameters:
  ///   - element: The element to send.
  ///   - sender: The sender, which subscribers can ignore, or 0.
  @inlinable
  func send(_ element: Element, from sender: UInt64 = 0) {
    if let delivery = prepare(element, from: sender) { delivery.deliver() }
  }

  /// Appends an element for all subscribers without resuming tasks yet.
  ///
  /// - Parameters:
  ///   - element: The element to append.
  ///   - sender: The sender, which subscribers can ignore, or 0.
  /// - Returns: The work that remains once the caller holds no lock; `nil` without subscribers.
  @inlinable
  func prepare(_ element: Element, from sender: UInt64 = 0) -> Delivery<Element>? {
    state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return nil }
      var delivery = Delivery<Element>()
      append(element, from: sender, to: &state, &delivery)
      return delivery
    }
  }

  /// Takes back unread elements, and appends one in their place, without resuming tasks yet.
  ///
  /// A subscriber that looks for its next element after this call does not get one from before it.
  ///
  /// - Parameter element: The element to append.
  /// - Returns: The work that remains once the caller holds no lock; `nil` without subscribers.
  @inlinable
  func prepareReset(_ element: Element) -> Delivery<Element>? {
    state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return nil }
      var delivery = Delivery<Element>()
      cutoff.store(state.sequence, ordering: .releasing)
      if let others = state.others { readers(others).takeUnread(&delivery.displaced) }
      state.handlers?.takeBack(before: state.sequence, &delivery.handlers)
      append(element, from: 0, to: &state, &delivery)
      return delivery
    }
  }

  /// Takes back unread elements, up to the last one.
  ///
  /// - Parameter last: The element that was appended last, which stays; `nil` if none stays.
  /// - Returns: The work that remains once the caller holds no lock.
  @usableFromInline
  func takeUnread(upTo last: Element?) -> Delivery<Element> {
    state.withLock { state in
      var unread = Delivery<Element>()
      let end = last == nil ? state.sequence : state.sequence - 1
      guard state.subscriberCount > 0, !state.isFinished, end >= 0 else { return unread }
      cutoff.store(end, ordering: .releasing)
      if let others = state.others { readers(others).takeUnread(&unread.displaced, upTo: last) }
      if let handlers = state.handlers {
        handlers.takeBack(before: end, keeping: last.map { Box($0) }, &unread.handlers)
        unread.handlers?.queues = handlers.direct
      }
      return unread
    }
  }

  /// Appends an element under the lock.
  @inlinable
  @inline(__always)
  func append(
    _ element: Element,
    from sender: UInt64,
    to state: inout State,
    _ delivery: inout Delivery<Element>
  ) {
    if state.logReaders > 0, let tail = state.tail {
      if let follower = LogLink.Chunk<Element>.of(tail).append(element) {
        delivery.filled = tail
        state.tail = follower
        state.tailStart = follower.run.start
      }
    }
    if let others = state.others {
      readers(others).append(element, from: sender, to: &delivery)
    }
    if let handlers = state.handlers {
      handlers.enqueue(
        Box(element),
        sequence: state.sequence,
        last: state.lastID,
        from: sender,
        &delivery.woken,
        &delivery.handlers
      )
    }
    state.sequence &+= 1
    if !state.parked.isEmpty {
      if delivery.woken.isEmpty {
        delivery.woken = state.unparkAll()
      } else {
        delivery.woken += state.unparkAll()
        delivery.woken.sort { $0.id < $1.id }
      }
    }
  }

  /// Ends every stream after the elements sent so far and a last one; called with no lock held.
  ///
  /// The last element is part of the end: no buffering policy drops it, and later subscribers get it, too.
  ///
  /// - Parameter last: The last element, if there is one.
  func finish(with last: Element?) {
    let box = last.map { Box($0) }
    state.withLock { if !$0.isFinished { $0.last = box } }
    finish()
  }

  /// Ends every stream after the elements sent so far; called with no lock held.
  @usableFromInline
  func finish() {
    // Where it is not specialized, as in the deinit of a messenger, the rest costs many look-ups of metadata.
    guard !finishWithoutSubscribers() else { return }
    let (delivery, garbage) = state.withLock { state in
      var delivery = Delivery<Element>()
      var garbage = Garbage()
      guard !state.isFinished else { return (delivery, garbage) }
      state.isFinished = true
      isFinished.store(true, ordering: .releasing)
      garbage.counts = state.counts
      garbage.hadSubscribers = state.subscriberCount > 0
      garbage.feeders = state.feeders
      state.feeders = [:]
      delivery.filled = state.tail
      state.tail = nil
      garbage.handlers = state.handlers.take()
      garbage.last = state.last
      delivery.woken = state.unparkAll()
      guard let others = state.others.map(readers) else { return (delivery, garbage) }
      for buffer in others.buffers {
        if let task = buffer.parkedReader?.takeTask() { delivery.woken.append(task) }
        buffer.parkedReader = nil
      }
      delivery.woken.sort { $0.id < $1.id }
      return (delivery, garbage)
    }
    delivery.deliver()
    announceCount()
    garbage.handlers?.close(with: garbage.last)
    // The final number is part of the end, which needs no room among the others.
    garbage.counts?.hub.finish(with: garbage.hadSubscribers ? 0 : nil)
    for sourceTask in garbage.feeders.values { sourceTask.task?.cancel() }
    withExtendedLifetime(garbage) {}
  }

  /// Ends the subscription of a subscriber that reads the window or a buffer.
  ///
  /// - Parameter reader: The subscriber, registered or not.
  @inlinable
  func removeBoundedReader(_ reader: Reader) {
    var unread: Ring<Element>?
    var displaced: ContiguousArray<Element> = []
    var overwritten: [Element] = []
    var read = ReadElements()
    let (parked, isLast) = state.withLock { state in
      reader.isCancelled.store(true, ordering: .releasing)
      guard reader.isRegistered else { return (Waiter?.none, false) }
      var parked: Waiter?
      let others = readers(&state)
      switch subscriber(reader).source {
      case .log:
        break
      case .window(let limit):
        if state.unpark(reader) { parked = reader }
        state.windowReaders -= 1
        overwritten = noteOverwritten(of: reader, at: state.sequence, limit: limit)
        others.windowLimits.remove(limit)
        displaced = others.trimWindow()
        read = state.takeRead()
      case .buffer(let buffer):
        parked = buffer.parkedReader
        buffer.parkedReader = nil
        unread = buffer.elements
        buffer.elements = Ring()
        others.remove(buffer)
      }
      reader.isRegistered = false
      return (parked, state.unregister())
    }
    parked?.resume()
    announceCount()
    if isLast { onEmpty?() }
    read.release()
    withExtendedLifetime((unread, displaced, overwritten)) {}
  }

  /// The number of subscribers, handlers included.
  ///
  /// Handlers whose owner has been released are removed first.
  @usableFromInline var subscriberCount: Int {
    removeOrphans()
    return state.withLock { $0.isFinished ? 0 : $0.subscriberCount }
  }

  /// The objects that were taken out under the lock, to be released without it.
  private struct Garbage {
    var handlers: HandlerTable?
    var last: AnyBox?
    var hadSubscribers = false
    var counts: CountHub?
    var feeders: [UInt64: SourceTask] = [:]
  }
}
