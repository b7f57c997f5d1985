extension EventBusCore {
  /// Posts an event.
  ///
  /// - Parameters:
  ///   - event: What has happened.
  ///   - scope: Where.
  ///   - ticket: Who waits for the end.
  /// - Returns: Whether the event is kept now.
  @discardableResult
  func post<E: Event>(_ event: E, scope: EventScope?, ticket: PostTicket?) -> Bool {
    let persistence = event.persistence
    while true {
      guard let channel = channel(for: E.self, persistence, in: scope) else {
        ticket?.end(with: PostOutcome(notified: 0, handled: 0))
        return false
      }
      if case .isDone(let isKept) = channel.post(event, persistence, ticket: ticket) {
        return isKept
      }
    }
  }

  /// Posts an event and waits until it has been handled, unless it would wait for its own caller.
  func postAndWait<E: Event>(_ event: E, scope: EventScope?) async -> PostOutcome {
    guard HandlerRun.current != nil else {
      let ticket = PostTicket()
      post(event, scope: scope, ticket: ticket)
      return await ticket.outcome()
    }
    // What is recorded as waited for is the very channel that gets the event, even if others come to
    // subscribe, or leave, at the same time.
    let persistence = event.persistence
    while true {
      guard let channel = channel(for: E.self, persistence, in: scope) else {
        return PostOutcome(notified: 0, handled: 0)
      }
      guard let wait = HandlerRun.wait(for: channel.id) else {
        guard case .isDone(let isKept) = channel.post(event, persistence, ticket: nil) else {
          continue
        }
        return PostOutcome(notified: 0, handled: 0, isPersisted: isKept, isDeferred: true)
      }
      defer { wait.end() }
      let ticket = PostTicket()
      guard case .isDone = channel.post(event, persistence, ticket: ticket) else { continue }
      return await ticket.outcome()
    }
  }

  /// The channel that an event goes to, made if the event is to be kept.
  private func channel<E: Event>(
    for type: E.Type,
    _ persistence: EventPersistence,
    in scope: EventScope?
  ) -> EventChannel<E>? {
    if let known = channel(of: type, in: scope) { return known }
    // What is not kept needs no channel where there is none.
    return persistence.rule == nil ? nil : makeChannel(of: type, in: scope)
  }

  /// Adds a handler that lives as long as a token.
  func add<E: Event>(_ recipe: EventHandlerRecipe<E>, scope: EventScope?) -> ObservationToken {
    let handler = insert(recipe, scope: scope)
    return ObservationToken { handler.remove() }
  }

  /// Adds a handler that lives until its owner has gone.
  @discardableResult
  func insert<E: Event>(_ recipe: EventHandlerRecipe<E>, scope: EventScope?) -> EventHandler<E> {
    let added = withChannel(of: E.self, in: scope) { $0.add(recipe, at: time.now()) }
    added.start()
    return added.handler
  }
}
