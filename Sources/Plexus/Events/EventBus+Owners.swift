/// Handlers that live as long as an owner lives.
extension EventBus {
  /// Calls a closure for every event of a type, as long as an owner lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
  ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> Void
  ) {
    let recipe = EventHandlerRecipe<E>(owner: owner, suspends: false, handler)
    core.insert(recipe, scope: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
  ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void
  ) {
    let recipe = EventHandlerRecipe<E>(owner: owner, suspends: true, handler)
    core.insert(recipe, scope: scope)
  }
}

/// Handlers with a result that live as long as an owner lives.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == EventBus {
  /// Calls a closure for every event of a type, as long as an owner lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
  ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> HandlerResult
  ) {
    let recipe = EventHandlerRecipe<E>(owner: owner, suspends: false, handler)
    self.core.insert(recipe, scope: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
  ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> HandlerResult
  ) {
    let recipe = EventHandlerRecipe<E>(owner: owner, suspends: true, handler)
    self.core.insert(recipe, scope: scope)
  }
}
