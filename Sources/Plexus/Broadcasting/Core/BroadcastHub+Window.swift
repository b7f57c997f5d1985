// The window of the newest elements, and the subscribers that read it: what they lose is counted here.

public import Synchronization

extension BroadcastHub {
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
      subscriber.droppedFromWindow = replay.count - kept.count
      return subscriber
    }
  }

  /// Ends the subscription of a reader of the window.
  ///
  /// - Parameter reader: The subscriber, registered or not.
  @inlinable
  func removeWindowReader(_ reader: Reader) {
    var displaced: ContiguousArray<Element> = []
    var overwritten: [Element] = []
    var effects = HubEffects()
    let isLast = state.withLock { state -> Bool? in
      reader.isCancelled.store(true, ordering: .releasing)
      guard reader.isRegistered, case .window(let limit) = subscriber(reader).source else {
        return nil
      }
      let others = Self.readers(&state)
      state.unpark(reader, &effects)
      state.windowReaders -= 1
      overwritten = countOverwritten(of: reader, at: state.sequence, limit: limit)
      others.windowLimits.remove(limit)
      displaced = others.trimWindow()
      state.takeRead(&effects)
      reader.isRegistered = false
      if let known = state.known { known.remove(reader) }
      return unregister(&state)
    }
    guard let isLast else { return }
    effects.perform()
    announceCount()
    if isLast { onEmpty?() }
    withExtendedLifetime((displaced, overwritten)) {}
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
          subscriber.droppedFromWindow += subscriber.replay.count - room
          overwritten = subscriber.replay
          subscriber.replay.removeSubrange(room...)
        }
        if let element = subscriber.replay.popLast() { return .element(element) }
      }
      if unread > limit {
        subscriber.droppedFromWindow += unread - limit
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
    subscriber.droppedFromWindow += overwrittenCount(of: subscriber, at: cutoff, limit: limit)
    if subscriber.position.load(ordering: .relaxed) < cutoff {
      subscriber.position.store(cutoff, ordering: .relaxed)
    }
    defer { subscriber.replay = [] }
    return subscriber.replay
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
    subscriber.droppedFromWindow += overwritten(of: subscriber, at: sequence, limit: limit)
    defer { subscriber.replay = [] }
    return subscriber.replay
  }
}
