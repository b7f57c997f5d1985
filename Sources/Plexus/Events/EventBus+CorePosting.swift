extension EventBus.Core {
  /// Posts an event.
  ///
  /// - Parameters:
  ///   - box: The event.
  ///   - type: The type of the event.
  ///   - persistence: The persistence of the event.
  ///   - scope: The scope.
  @usableFromInline
  func post(
    _ box: AnyBox,
    of type: any Event.Type,
    _ persistence: EventPersistence,
    in scope: EventScope?
  ) {
    while let channel = channel(of: type, persistence, in: scope) {
      if case .isDone = channel.post(box, persistence, completion: nil) { return }
    }
  }

  /// Posts an event and waits until it has been handled, unless the wait would be a deadlock.
  @usableFromInline
  func postAndWait(
    _ box: AnyBox,
    of type: any Event.Type,
    _ persistence: EventPersistence,
    in scope: EventScope?
  ) async -> PostOutcome {
    let waiting = WaitScope.awaited
    // The wait is recorded for the channel that receives the event, even if subscribers change
    // concurrently.
    while let channel = channel(of: type, persistence, in: scope) {
      let completion = EventChannel.PostCompletion()
      // Recorded before the post, so that a request by a handler is detected as recursive.
      let wait = waiting.map { ($0, EventChannel.PostCompletion.Node(completion, in: channel)) }
      if let (node, post) = wait, WaitGraph.wait(node, for: post) != nil {
        guard case .isDone(let isKept) = channel.post(box, persistence, completion: nil) else {
          continue
        }
        return PostOutcome(notified: 0, handled: 0, isPersisted: isKept, isDeferred: true)
      }
      defer { if let (node, post) = wait { WaitGraph.stopWaiting(node, for: post) } }
      guard case .isDone = channel.post(box, persistence, completion: completion) else { continue }
      return await completion.outcome(in: channel)
    }
    return PostOutcome(notified: 0, handled: 0)
  }

  /// Returns the channel for an event; creates it if the event is to be retained.
  private func channel(
    of type: any Event.Type,
    _ persistence: EventPersistence,
    in scope: EventScope?
  ) -> EventChannel? {
    if let known = channel(of: ObjectIdentifier(type), in: scope) { return known }
    // An event that is not retained needs no new channel.
    return persistence.rule == nil ? nil : makeChannel(of: type, in: scope)
  }
}
