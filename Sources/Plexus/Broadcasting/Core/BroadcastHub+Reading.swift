public import Synchronization

extension BroadcastHub {
  /// Registers a subscriber for all elements sent from now on.
  ///
  /// Can be called under a lock of the caller, which calls ``HubCore/announceCount()`` after unlocking.
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
    if passedTag != 0 {
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
    limits.passedTag = passedTag
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
      var chunk: LogLink.Chunk<Element>?
      var buffer: PrivateBuffer<Element>?
      if isOpen {
        state.logReaders &+= 1
        // A chunk that was left over is empty, but elements can have been sent since without the log.
        if let tail = state.tail, LogLink.Chunk<Element>.of(tail).run.end == state.sequence {
          chunk = .of(tail)
        } else {
          chunk = LogLink.Chunk(start: state.sequence)
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

  @inlinable
  func windowReader(limit: Int, replaying replay: [Element]) -> Subscriber<Element> {
    let kept = replay.count > 1 ? Array(replay.suffix(limit).reversed()) : replay
    return state.withLock { state in
      let isOpen = register(&state)
      if isOpen {
        state.windowReaders &+= 1
        Self.readers(&state).windowLimits.insert(limit)
      }
      let subscriber = reader(.window(limit), nil, &state, isOpen: isOpen)
      subscriber.replay = kept
      subscriber.droppedCount = replay.count - kept.count
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
    var retired: LogLink.Run<Element>.Retired?
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
      state.parked.park(subscriber.waiter, task: task)
      state.parkedReaders &+= 1
      // The last reader to park releases the elements that all have read, unless their type is trivial.
      if !_isPOD(Element.self), state.hasOnlyParkedReaders {
        if state.logReaders > 0, let tail = state.tail {
          retired = LogLink.Chunk<Element>.of(tail).retired()
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

  /// Reads the window; called by the task that has claimed the reader's position.
  ///
  /// - Parameters:
  ///   - subscriber: The reader.
  ///   - limit: The number of newest elements that are kept for it.
  /// - Returns: The oldest of them that it has not read.
  @inlinable
  func readWindow(_ subscriber: Subscriber<Element>, limit: Int) -> Subscriber<Element>.Step {
    var overwritten: [Element] = []
    defer { withExtendedLifetime(overwritten) {} }
    return state.withLock { state in
      guard subscriber.isRegistered, let others = state.others else {
        // The hub had finished before the registration: only replayed elements are left.
        return subscriber.replay.popLast().map { .element($0) } ?? .ended
      }
      var sequence = subscriber.position.load(ordering: .relaxed)
      if sequence <= cutoff.load(ordering: .relaxed) {
        overwritten = skipUnread(of: subscriber, limit: limit)
        sequence = subscriber.position.load(ordering: .relaxed)
      }
      let unread = state.sequence &- sequence
      if !subscriber.replay.isEmpty {
        // Replayed elements are older than all sent ones, and are dropped first.
        let room = max(limit &- unread, 0)
        if subscriber.replay.count > room {
          subscriber.droppedCount += subscriber.replay.count - room
          overwritten = subscriber.replay
          subscriber.replay.removeSubrange(room...)
        }
        if let element = subscriber.replay.popLast() { return .element(element) }
      }
      if unread > limit {
        subscriber.droppedCount += unread - limit
        sequence = state.sequence &- limit
      }
      let window = Self.readers(others)
      let offset = window.window.count &- (state.sequence &- sequence)
      guard sequence < state.sequence, let element = window.window[offset] else {
        return state.isFinished ? .ended : .empty
      }
      subscriber.position.store(sequence &+ 1, ordering: .relaxed)
      return .element(element)
    }
  }

  /// Skips the elements before a reset that a reader of the window has not read.
  ///
  /// - Returns: The rest of its replay, to be released without the lock.
  @usableFromInline
  func skipUnread(of subscriber: Subscriber<Element>, limit: Int) -> [Element] {
    let cutoff = cutoff.load(ordering: .relaxed)
    subscriber.droppedCount += overwrittenCount(of: subscriber, at: cutoff, limit: limit)
    if subscriber.position.load(ordering: .relaxed) < cutoff {
      subscriber.position.store(cutoff, ordering: .relaxed)
    }
    defer { subscriber.replay = [] }
    return subscriber.replay
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
        subscriber.droppedCount + overwritten(of: subscriber, at: state.sequence, limit: limit)
      }
    }
  }

  /// Returns the number of elements that a reader of the window has lost since it last read.
  @inlinable
  func overwritten(
    of subscriber: Subscriber<Element>,
    at sequence: Int,
    limit: Int
  ) -> Int {
    guard subscriber.isRegistered else { return 0 }
    let cutoff = cutoff.load(ordering: .relaxed)
    guard subscriber.position.load(ordering: .relaxed) <= cutoff else {
      return overwrittenCount(of: subscriber, at: sequence, limit: limit)
    }
    // Elements that a reset has taken back were not discarded by the policy.
    return overwrittenCount(of: subscriber, at: cutoff, limit: limit)
      + max(sequence - cutoff - limit, 0)
  }

  /// Returns the number of elements before a number that a reader of the window has lost since it last read.
  @inlinable
  func overwrittenCount(
    of subscriber: Subscriber<Element>,
    at sequence: Int,
    limit: Int
  ) -> Int {
    let unread = max(sequence - subscriber.position.load(ordering: .relaxed), 0)
    let room = max(limit - unread, 0)
    return max(unread - limit, 0) + max(subscriber.replay.count - room, 0)
  }

  /// Counts the elements that a reader of the window has lost, before it is removed.
  ///
  /// - Returns: The rest of its replay, to be released without the lock.
  @inlinable
  func countOverwritten(of reader: Reader, at sequence: Int, limit: Int) -> [Element] {
    let subscriber = subscriber(reader)
    subscriber.droppedCount += overwritten(of: subscriber, at: sequence, limit: limit)
    defer { subscriber.replay = [] }
    return subscriber.replay
  }
}
