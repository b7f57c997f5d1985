public import Synchronization

extension BroadcastHub {
  /// Registers a subscriber for all elements sent from now on.
  ///
  /// Can be called under a lock of the caller, which calls ``HubBase/announceCount()`` after unlocking.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: The policy for elements that have not been read.
  ///   - replay: The elements that the subscriber gets before all sent ones, oldest first.
  /// - Returns: The subscription; dropping it ends it.
  @inlinable
  func subscription(
    bufferingPolicy: BufferingPolicy<Element>,
    replaying replay: [Element] = []
  ) -> Subscription<Element> {
    // A subscriber that does not get all elements to be sent cannot share a storage.
    if passedNumber != 0 {
      return subscription(ignoring: 0, bufferingPolicy: bufferingPolicy, replaying: replay)
    }
    switch bufferingPolicy {
    case .unbounded:
      return Subscription(subscriber: logReader(replaying: replay))
    // The window can also keep elements that all have read: a large limit gets a buffer of its own.
    case .bufferingNewest(let limit) where 1...64 ~= limit:
      return Subscription(subscriber: windowReader(limit: limit, replaying: replay))
    default:
      return subscription(ignoring: 0, bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// Registers a subscriber that ignores one of the senders.
  ///
  /// - Parameters:
  ///   - sender: The sender to ignore, or 0.
  ///   - bufferingPolicy: The policy for elements that have not been read.
  ///   - replay: The elements that the subscriber gets before all sent ones, oldest first.
  /// - Returns: The subscription; dropping it ends it.
  @usableFromInline
  func subscription(
    ignoring sender: UInt64,
    bufferingPolicy: BufferingPolicy<Element>,
    replaying replay: [Element] = []
  ) -> Subscription<Element> {
    var limits = SubscriberLimits(BufferLimit(bufferingPolicy))
    limits.ignoredSender = sender
    limits.passedNumber = passedNumber
    var dropped = Delivery<Element>()
    let subscriber = state.withLock { state in
      let isOpen = register(&state)
      let buffer = PrivateBuffer<Element>(id: state.lastID, limits)
      buffer.replayCount = replay.count
      for element in replay { buffer.deliver(element, to: &dropped) }
      if isOpen { Self.readers(&state).insert(buffer) }
      return reader(.buffer, buffer, &state, isOpen: isOpen)
    }
    dropped.deliver()
    return Subscription(subscriber: subscriber)
  }

  /// Creates a subscriber that reads the next element; called under the lock.
  @inlinable
  func reader(
    _ source: Subscriber<Element>.Source,
    _ buffer: PrivateBuffer<Element>?,
    _ state: inout State,
    isOpen: Bool
  ) -> Subscriber<Element> {
    let subscriber = Subscriber(id: state.lastID, hub: self, source: source, buffer: buffer)
    subscriber.position.store(state.sequence, ordering: .relaxed)
    subscriber.isRegistered = isOpen
    if isOpen, let known = state.known { known.insert(subscriber) }
    return subscriber
  }

  /// Registers a reader of the log.
  ///
  /// - Parameters:
  ///   - replay: The elements that it gets before all sent ones, oldest first.
  ///   - isHosted: Whether it can be sent elements of its own.
  /// - Returns: The reader.
  @inlinable
  func logReader(replaying replay: [Element], isHosted: Bool = false) -> Subscriber<Element> {
    state.withLock { state in
      let isOpen = register(&state)
      var chunk: LogBase.Chunk<Element>?
      var buffer: PrivateBuffer<Element>?
      if isOpen {
        state.logReaders &+= 1
        // A chunk that was left over is empty, but elements can have been sent since without the log.
        if let tail = state.tail, LogBase.Chunk<Element>.of(tail).run.end == state.sequence {
          chunk = .of(tail)
        } else {
          chunk = LogBase.Chunk(start: state.sequence)
          state.tail = chunk
          state.tailStart = state.sequence
        }
      }
      if isHosted {
        buffer = PrivateBuffer(id: state.lastID, SubscriberLimits(), besideLog: true)
        // It is open, although it is in no list.
        if isOpen { buffer?.index = 0 }
      }
      let subscriber = reader(.log, buffer, &state, isOpen: isOpen)
      subscriber.chunk = chunk
      subscriber.replay = replay.count > 1 ? replay.reversed() : replay
      return subscriber
    }
  }

  /// Parks a reader that has found no element, or resumes it at once if that has changed.
  ///
  /// - Parameters:
  ///   - subscriber: The reader.
  ///   - task: Its task.
  @inlinable
  func park(_ subscriber: Subscriber<Element>, task: SuspendedTask) {
    var retired: LogBase.Run<Element>.Retired?
    var read: ContiguousArray<Element> = []
    let isParked = state.withLock { state in
      guard !subscriber.isCancelled.load(ordering: .relaxed), !state.isFinished else {
        return false
      }
      if let buffer = subscriber.ownBuffer {
        guard buffer.isBesideLog else { return buffer.park(task) }
        guard buffer.elements.isEmpty else { return false }
      }
      guard state.sequence == subscriber.position.load(ordering: .relaxed) else { return false }
      if let known = state.known { known.insert(subscriber) }
      state.parked.park(subscriber.waiter, task: task)
      state.parkedReaders &+= 1
      // The last reader to park releases the elements that all have read, unless their type is trivial.
      if !_isPOD(Element.self), state.hasOnlyParkedReaders {
        if state.logReaders > 0, let tail = state.tail {
          retired = LogBase.Chunk<Element>.of(tail).retired()
        }
        if state.windowReaders > 0, let others = state.others {
          Self.readers(others).emptyWindow(&read)
        }
      }
      return true
    }
    if !isParked { task.resume() }
    retired?.release()
    withExtendedLifetime(read) {}
  }

  /// Reads a buffer.
  ///
  /// - Parameter buffer: The buffer.
  /// - Returns: Its oldest element, if there is one.
  @inlinable
  func read(_ buffer: PrivateBuffer<Element>) -> Subscriber<Element>.Step {
    state.withLock { state in
      if let element = buffer.popFirst() { return .element(element) }
      return buffer.index < 0 || state.isFinished ? .ended : .empty
    }
  }

  /// Counts the elements that the buffering policy has discarded for a subscriber so far.
  ///
  /// - Parameter subscriber: The subscriber.
  /// - Returns: Their number, including elements that were discarded since it last read.
  func droppedCount(of subscriber: Subscriber<Element>) -> Int {
    state.withLock { state in
      switch subscriber.source {
      case .log: 0
      case .buffer: subscriber.buffer?.droppedCount ?? 0
      case .window(let limit):
        subscriber.droppedFromWindow + overwritten(of: subscriber, at: state.sequence, limit: limit)
      }
    }
  }
}
