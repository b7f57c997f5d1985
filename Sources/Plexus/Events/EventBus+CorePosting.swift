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
    var (known, log) = find(ObjectIdentifier(type), in: scope)
    let record = log == nil ? nil : PostRecord(box, of: type)
    while let channel = known ?? channel(of: type, persistence, in: scope) {
      if case .isDone = channel.post(box, persistence, record, in: log) { return }
      known = nil
    }
    if let log { record?.appendUnheard(to: log, in: scope) }
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
    var (known, log) = find(ObjectIdentifier(type), in: scope)
    let record = log == nil ? nil : PostRecord(box, of: type)
    // The wait is recorded for the channel that receives the event, even if subscribers change
    // concurrently.
    while let channel = known ?? channel(of: type, persistence, in: scope) {
      known = nil
      let completion = record ?? EventChannel.PostCompletion()
      // Recorded before the post, so that a request by a handler is detected as recursive.
      let wait = waiting.map { ($0, EventChannel.PostCompletion.Node(completion, in: channel)) }
      if let (node, post) = wait, WaitGraph.wait(node, for: post) != nil {
        let posting = channel.post(box, persistence, record, in: log)
        guard case .isDone(let isKept) = posting else { continue }
        return PostOutcome(notified: 0, handled: 0, isPersisted: isKept, isDeferred: true)
      }
      defer { if let (node, post) = wait { WaitGraph.stopWaiting(node, for: post) } }
      let posting = channel.post(box, persistence, completion, in: log)
      guard case .isDone = posting else { continue }
      return await completion.outcome(in: channel)
    }
    if let log { record?.appendUnheard(to: log, in: scope) }
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
