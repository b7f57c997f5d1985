public import Synchronization

// Sending: under the lock an element gets its number, and with it its place in the one order of all readers and handlers.
// An element that a handler sends follows the one that it handles.

extension BroadcastHub {
  /// Sends an element to all subscribers.
  ///
  /// - Parameters:
  ///   - element: The element to send.
  ///   - sender: The sender, which subscribers can ignore, or 0.
  @inlinable
  func send(_ element: Element, from sender: UInt64 = 0) {
    guard hasSubscribers.load(ordering: .relaxed) else { return }
    var delivery = Delivery<Element>()
    state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return }
      append(element, from: sender, &state, &delivery)
    }
    delivery.deliver()
  }

  /// Appends an element for all subscribers without resuming tasks yet.
  ///
  /// - Parameters:
  ///   - element: The element to append.
  ///   - sender: The sender, which subscribers can ignore, or 0.
  ///   - delivery: Receives the work that remains once the caller holds no lock.
  /// - Returns: Whether there are subscribers.
  @inlinable
  @discardableResult
  func prepare(
    _ element: Element,
    from sender: UInt64 = 0,
    _ delivery: inout Delivery<Element>
  ) -> Bool {
    guard hasSubscribers.load(ordering: .relaxed) else { return false }
    return state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return false }
      append(element, from: sender, &state, &delivery)
      return true
    }
  }

  /// Takes back unread elements, and appends one in their place, without resuming tasks yet.
  ///
  /// A subscriber that looks for its next element after this call does not get one from before it.
  ///
  /// - Parameters:
  ///   - element: The element to append.
  ///   - delivery: Receives the work that remains once the caller holds no lock.
  @inlinable
  func prepareReset(_ element: Element, _ delivery: inout Delivery<Element>) {
    guard hasSubscribers.load(ordering: .relaxed) else { return }
    state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return }
      cutoff.store(state.sequence, ordering: .releasing)
      if let others = state.others { Self.readers(others).takeUnread(&delivery) }
      state.handlers?.takeBack(before: state.sequence, &delivery.effects)
      append(element, from: 0, &state, &delivery)
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
      if let others = state.others {
        Self.readers(others).takeUnread(&unread, upTo: last)
      }
      if let handlers = state.handlers {
        handlers.takeBack(before: end, keeping: last.map { Box($0) }, &unread.effects)
        unread.effects.add { $0.queues = handlers.direct }
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
    _ state: inout State,
    _ delivery: inout Delivery<Element>
  ) {
    Self.appendForReaders(element, from: sender, &state, &delivery)
    if let handlers = state.handlers {
      let item = HandlerQueue.Item(
        box: Box(element),
        sequence: state.sequence,
        sender: sender
      )
      handlers.enqueue(item, &delivery.effects)
    }
    state.sequence &+= 1
    state.unparkAll(&delivery.effects)
  }

  /// Appends an element to the log, the window and the buffers, under the lock.
  @inlinable
  @inline(__always)
  static func appendForReaders(
    _ element: Element,
    from sender: UInt64,
    _ state: inout State,
    _ delivery: inout Delivery<Element>
  ) {
    if state.logReaders > 0, let tail = state.tail {
      if let follower = LogBase.Chunk<Element>.of(tail).append(element) {
        delivery.effects.released = tail
        state.tail = follower
        state.tailStart = follower.run.start
      }
    }
    if let others = state.others { readers(others).append(element, from: sender, to: &delivery) }
  }
}
