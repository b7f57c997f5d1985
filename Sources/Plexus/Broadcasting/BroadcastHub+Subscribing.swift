internal import Synchronization

extension BroadcastHub {
  /// Registers a subscriber, from now on and without a gap.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: How much is kept for a slow reader.
  ///   - replay: What the subscriber gets before everything sent from now on, oldest first.
  /// - Returns: The subscription; dropping it ends it.
  @inlinable
  func subscription(
    bufferingPolicy: BufferingPolicy<Element>,
    replaying replay: [Element] = []
  ) -> Subscription<Element> {
    switch bufferingPolicy {
    case .unbounded:
      return Subscription(subscriber: logReader(replaying: replay))
    case .bufferingNewest(let limit) where limit > 0:
      return Subscription(subscriber: windowReader(limit: limit, replaying: replay))
    case .bufferingNewest(let limit):
      return mailboxSubscription(overflow: .dropsOldest(beyond: max(limit, 0)), replaying: replay)
    case .bufferingOldest(let limit):
      return mailboxSubscription(overflow: .dropsNewest(beyond: max(limit, 0)), replaying: replay)
    @unknown default:
      return Subscription(subscriber: logReader(replaying: replay))
    }
  }

  /// Registers a subscriber that does not hear one of the senders.
  ///
  /// - Parameters:
  ///   - sender: Who is not heard.
  ///   - bufferingPolicy: How much is kept for a slow reader.
  /// - Returns: The subscription; dropping it ends it.
  func subscription(
    ignoring sender: UInt64,
    bufferingPolicy: BufferingPolicy<Element>
  ) -> Subscription<Element> {
    let overflow: Mailbox<Element>.Overflow =
      switch bufferingPolicy {
      case .unbounded: .none
      case .bufferingNewest(let limit): .dropsOldest(beyond: max(limit, 0))
      case .bufferingOldest(let limit): .dropsNewest(beyond: max(limit, 0))
      @unknown default: .none
      }
    return mailboxSubscription(overflow: overflow, ignoring: sender)
  }

  @inlinable
  func logReader(replaying replay: [Element]) -> Subscriber<Element> {
    state.withLock { state in
      let isOpen = state.register()
      if isOpen {
        state.logReaders &+= 1
        if state.tail == nil { state.tail = LogChunk(start: state.sequence) }
      }
      let subscriber = Subscriber(
        id: state.lastID,
        hub: self,
        source: .log,
        position: state.sequence,
        chunk: state.tail,
        replay: replay.count > 1 ? replay.reversed() : replay
      )
      subscriber.isRegistered = isOpen
      return subscriber
    }
  }

  @usableFromInline
  func windowReader(limit: Int, replaying replay: [Element]) -> Subscriber<Element> {
    let kept = Array(replay.suffix(limit).reversed())
    return state.withLock { state in
      let isOpen = state.register()
      if isOpen { state.windowLimits.insert(limit) }
      let subscriber = Subscriber(
        id: state.lastID,
        hub: self,
        source: .window(limit),
        position: state.sequence,
        chunk: nil,
        replay: kept
      )
      subscriber.droppedCount = replay.count - kept.count
      subscriber.isRegistered = isOpen
      return subscriber
    }
  }

  @usableFromInline
  func mailboxSubscription(
    overflow: Mailbox<Element>.Overflow,
    ignoring sender: UInt64 = 0,
    replaying replay: [Element] = []
  ) -> Subscription<Element> {
    let mailbox = Mailbox<Element>(overflow: overflow, ignoredSender: sender)
    for element in replay { _ = mailbox.deliver(element, from: 0) }
    let subscriber = state.withLock { state in
      let isOpen = state.register()
      if isOpen {
        mailbox.slot = state.mailboxes.count
        state.mailboxes.append(mailbox)
      }
      let subscriber = Subscriber(
        id: state.lastID,
        hub: self,
        source: .mailbox(mailbox),
        position: state.sequence,
        chunk: nil,
        replay: []
      )
      subscriber.isRegistered = isOpen
      return subscriber
    }
    return Subscription(subscriber: subscriber)
  }

  /// Ends a subscription: it is cancelled, dropped, or has been read to the end.
  ///
  /// - Parameter subscriber: The subscriber, registered or not.
  @usableFromInline
  func remove(_ subscriber: Subscriber<Element>) {
    let removal = state.withLock { $0.remove(subscriber) }
    removal.parked?.resume()
    if removal.isLast { onEmpty?() }
  }

  /// Parks a reader that has found nothing, or resumes it at once if that has changed.
  ///
  /// - Parameters:
  ///   - subscriber: The reader.
  ///   - task: Its task.
  @usableFromInline
  func park(_ subscriber: Subscriber<Element>, task: SuspendedTask) {
    let isParked = state.withLock { state in
      guard !subscriber.isCancelled, !state.isFinished else { return false }
      switch subscriber.source {
      case .log:
        guard let chunk = subscriber.chunk,
          chunk.end == subscriber.position.load(ordering: .relaxed)
        else { return false }
        state.parked.park(subscriber, task: task)
      case .window:
        guard state.sequence == subscriber.position.load(ordering: .relaxed) else { return false }
        state.parked.park(subscriber, task: task)
      case .mailbox(let mailbox):
        guard mailbox.buffer.isEmpty else { return false }
        subscriber.task = task
        mailbox.parkedReader = subscriber
      }
      return true
    }
    if !isParked { task.resume() }
  }

  /// Reads the window; called by the task that has claimed the reader's position.
  ///
  /// - Parameters:
  ///   - subscriber: The reader.
  ///   - limit: How many of the newest elements it wants.
  /// - Returns: The oldest of them that it has not read.
  @usableFromInline
  func readWindow(_ subscriber: Subscriber<Element>, limit: Int) -> Subscriber<Element>.Step {
    var overwritten: ArraySlice<Element> = []
    defer { withExtendedLifetime(overwritten) {} }
    return state.withLock { state in
      var sequence = subscriber.position.load(ordering: .relaxed)
      let unread = state.sequence - sequence
      // What was replayed is older than everything sent, and gives way to it.
      let room = max(limit - unread, 0)
      if subscriber.replay.count > room {
        subscriber.droppedCount += subscriber.replay.count - room
        overwritten = subscriber.replay[room...]
        subscriber.replay.removeSubrange(room...)
      }
      if let element = subscriber.replay.popLast() { return .element(element) }
      if unread > limit {
        subscriber.droppedCount += unread - limit
        sequence = state.sequence - limit
      }
      let offset = state.window.count - (state.sequence - sequence)
      guard sequence < state.sequence, let element = state.window[offset] else {
        return subscriber.isCancelled || state.isFinished ? .ended : .empty
      }
      subscriber.position.store(sequence + 1, ordering: .relaxed)
      return .element(element)
    }
  }

  /// Reads a mailbox.
  ///
  /// - Parameter mailbox: Whose oldest element to take.
  /// - Returns: The element, if there is one.
  @usableFromInline
  func read(_ mailbox: Mailbox<Element>) -> Subscriber<Element>.Step {
    state.withLock { state in
      if let element = mailbox.buffer.popFirst() { return .element(element) }
      return mailbox.slot < 0 || state.isFinished ? .ended : .empty
    }
  }

  /// How many elements the buffering policy has cost a subscriber so far.
  ///
  /// - Parameter subscriber: The subscriber.
  func droppedCount(of subscriber: Subscriber<Element>) -> Int {
    state.withLock { state in
      switch subscriber.source {
      case .log: 0
      case .mailbox(let mailbox): mailbox.droppedCount
      case .window(let limit):
        subscriber.droppedCount + state.overwritten(of: subscriber, limit: limit)
      }
    }
  }
}

extension BroadcastHub.State {
  /// What removing a subscriber leaves to be done without the lock.
  struct Removal {
    var parked: Waiter?
    var isLast = false
    var garbage: (LogChunk<Element>?, Ring<Element>?, ContiguousArray<Element>) = (nil, nil, [])
  }

  /// Counts a new subscriber and gives it the next place in subscription order.
  ///
  /// - Returns: Whether the hub is open; a finished one has no subscribers.
  @inlinable
  mutating func register() -> Bool {
    lastID &+= 1
    guard !isFinished else { return false }
    subscriberCount &+= 1
    return true
  }

  mutating func unregister() -> Bool {
    subscriberCount -= 1
    return subscriberCount == 0 && !isFinished
  }

  mutating func remove(_ subscriber: Subscriber<Element>) -> Removal {
    var removal = Removal()
    subscriber.isCancelled = true
    guard subscriber.isRegistered else { return removal }
    subscriber.isRegistered = false
    switch subscriber.source {
    case .log:
      if parked.remove(subscriber) { removal.parked = subscriber }
      logReaders -= 1
      // An empty chunk can serve the next reader; one with elements would keep them alive.
      if logReaders == 0, let chunk = tail, chunk.end > chunk.start {
        removal.garbage.0 = chunk
        tail = nil
      }
    case .window(let limit):
      if parked.remove(subscriber) { removal.parked = subscriber }
      windowLimits.remove(limit)
      if windowLimits.largest == 0 {
        removal.garbage.1 = window
        window = Ring()
      } else if window.count > windowLimits.largest {
        let excess = window.count - windowLimits.largest
        removal.garbage.2 = window.popFirst(atMost: excess)
      }
    case .mailbox(let mailbox):
      removal.parked = mailbox.parkedReader
      mailbox.parkedReader = nil
      removal.garbage.1 = mailbox.buffer
      mailbox.buffer = Ring()
      if mailbox.slot >= 0, mailbox.slot < mailboxes.count {
        let last = mailboxes.removeLast()
        if last !== mailbox {
          mailboxes[mailbox.slot] = last
          last.slot = mailbox.slot
        }
      }
      mailbox.slot = -1
    }
    removal.isLast = unregister()
    return removal
  }

  /// How many elements a reader of the window has lost since it last read.
  func overwritten(of subscriber: Subscriber<Element>, limit: Int) -> Int {
    let unread = sequence - subscriber.position.load(ordering: .relaxed)
    let room = max(limit - unread, 0)
    return max(unread - limit, 0) + max(subscriber.replay.count - room, 0)
  }
}
