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
    let record = record(box, of: type, in: scope)
    while let channel = channel(of: type, persistence, in: scope) {
      if case .isDone = channel.post(box, persistence, record) { return }
    }
    record?.appendUnheard()
  }

  /// Returns the record of a post, if the log of posts has readers.
  private func record(
    _ box: AnyBox,
    of type: any Event.Type,
    in scope: EventScope?
  ) -> PostRecord? {
    guard let log else { return nil }
    // Without a scope, this copies nothing.
    let scope: Box<EventScope>? =
      switch scope {
      case nil: nil
      case let scope?: Box(scope)
      }
    return PostRecord(box, of: type, in: scope, for: log)
  }

  /// Returns the event in a box of its type.
  static func event(in box: AnyBox, of type: any Event.Type) -> any Event {
    func open<E: Event>(_ type: E.Type) -> any Event { Box<E>.element(of: box) }
    return open(type)
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
    let record = record(box, of: type, in: scope)
    // The wait is recorded for the channel that receives the event, even if subscribers change
    // concurrently.
    while let channel = channel(of: type, persistence, in: scope) {
      let completion = record ?? EventChannel.PostCompletion()
      // Recorded before the post, so that a request by a handler is detected as recursive.
      let wait = waiting.map { ($0, EventChannel.PostCompletion.Node(completion, in: channel)) }
      if let (node, post) = wait, WaitGraph.wait(node, for: post) != nil {
        let posting = channel.post(box, persistence, record)
        guard case .isDone(let isKept) = posting else { continue }
        return PostOutcome(notified: 0, handled: 0, isPersisted: isKept, isDeferred: true)
      }
      defer { if let (node, post) = wait { WaitGraph.stopWaiting(node, for: post) } }
      let posting = channel.post(box, persistence, completion)
      guard case .isDone = posting else { continue }
      return await completion.outcome(in: channel)
    }
    record?.appendUnheard()
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
