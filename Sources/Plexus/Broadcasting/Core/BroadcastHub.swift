// The unsafe casts exist because a hub is split in two: `HubBase` is compiled once for all types of elements, so that
// subscribing and unsubscribing cost no look-up of generic metadata. Only the generic half, here, creates the objects
// that `HubBase` stores, always with its own type of elements. @unchecked Sendable because Swift requires it of
// subclasses of such a class: the fields here are constants.

internal import Synchronization

/// The multicast core: one order of elements for any number of subscribers.
///
/// A subscriber without a limit is a position in a log of chunks, which stores an element once for all
/// of them, and reads without a lock. Subscribers that buffer a few of the newest elements share one
/// window of them, so that a slow one keeps no other elements alive. Subscribers with other limits, or
/// that ignore a sender, have a buffer each. Sending accesses the log, the window, the buffers, the
/// queues of handlers and the parked readers.
///
/// The owner of a hub can call ``prepare(_:from:_:)`` and ``subscription(bufferingPolicy:replaying:)``
/// under a lock of its own, so that its state and its announcements change together.
/// ``Delivery/deliver()`` does the remaining work, outside every lock.
@usableFromInline
final class BroadcastHub<Element: Sendable>: HubBase, @unchecked Sendable {
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
  ///   - areEqual: The comparison that finds consecutive duplicates, if they are removed for each subscriber.
  @inlinable
  init(
    isResettable: Bool = false,
    onEmpty: (@Sendable () -> Void)? = nil,
    time: (@Sendable () -> Nanoseconds)? = nil,
    areEqual: DuplicateFilter<Element>.AreEqual? = nil
  ) {
    self.areEqual = areEqual
    // Readers of the log read one element at a time if elements can be skipped.
    super.init(isResettable: isResettable || areEqual != nil, onEmpty: onEmpty, time: time) {
      core,
      reader in
      unsafe unsafeDowncast(core, to: BroadcastHub<Element>.self).removeWindowReader(reader)
    }
  }

  @usableFromInline
  override func end() {
    finish()
  }

  override func endReaders() {
    finish(endingHandlers: false)
  }

  override func replace(
    _ reader: Reader,
    with recipe: Handler.Recipe,
    of host: (any Handler.Source)?,
    _ effects: inout HubEffects,
    replaying replay: (_ unread: [AnyBox], _ sequence: Int) -> [AnyBox]
  ) -> Handler.Added {
    let subscriber = subscriber(reader)
    return state.withLock { state in
      // The source can have finished since the registration.
      let isOpen = subscriber.isRegistered && !state.isFinished
      let elements = takeOver(subscriber, &state, &effects)
      let place = Place(id: reader.id, isOpen: isOpen)
      return add(recipe, of: host, at: place, &state, replaying: replay(elements, state.sequence))
    }
  }
}

extension BroadcastHub {
  /// Returns the subscribers that do not read the log with their type of elements.
  @inlinable
  static func readers(_ readers: BufferedReadersBase) -> BufferedReaders<Element> {
    unsafe unsafeDowncast(readers, to: BufferedReaders<Element>.self)
  }

  /// Returns the subscribers that do not read the log, creating their list if needed.
  @inlinable
  static func readers(_ state: inout State) -> BufferedReaders<Element> {
    if let others = state.others { return readers(others) }
    let others = BufferedReaders<Element>()
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
  ///
  /// - Parameter endsHandlers: Whether the handlers end, too; otherwise they still get the elements of the host.
  @usableFromInline
  func finish(endingHandlers endsHandlers: Bool = true) {
    // Where it is not specialized, as in the deinit of a messenger, the rest costs many look-ups of metadata.
    guard !finishWithoutSubscribers() else { return }
    var effects = HubEffects()
    state.withLock { state in
      guard !state.isFinished else { return }
      state.isFinished = true
      isFinished.store(true, ordering: .releasing)
      effects.release(state.tail.take())
      state.unparkAll(&effects)
      for buffer in state.others?.buffers ?? [] { effects.wake(buffer.takeTask()) }
      let (counts, hadSubscribers) = (state.counts, state.subscriberCount > 0)
      let sourceTasks = state.sourceTasks
      state.sourceTasks = [:]
      effects.then { [self] in
        announceCount()
        if endsHandlers { endHandlers() }
        // The final number is part of the end, which needs no room among the others.
        counts?.hub.finish(with: hadSubscribers ? 0 : nil)
        for sourceTask in sourceTasks.values { sourceTask.task?.cancel() }
      }
    }
    effects.perform()
  }

  /// The number of subscribers, handlers included.
  ///
  /// Handlers whose owner has been released are removed first.
  @usableFromInline var subscriberCount: Int {
    removeOrphans()
    return count
  }
}
