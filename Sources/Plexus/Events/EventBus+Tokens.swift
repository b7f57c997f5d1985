/// Handlers that live as long as a token lives.
extension EventBus {
  /// Calls a closure for every event of a type, as long as a token lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> Void
  ) -> ObservationToken {
    let recipe = EventHandlerRecipe<E>(suspends: false, handler)
    return core.add(recipe, scope: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as a token lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) -> ObservationToken {
    let recipe = EventHandlerRecipe<E>(suspends: true, handler)
    return core.add(recipe, scope: scope)
  }
}

/// Handlers with a result that live as long as a token lives.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == EventBus {
  /// Calls a closure for every event of a type, as long as a token lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> HandlerResult
  ) -> ObservationToken {
    let recipe = EventHandlerRecipe<E>(suspends: false, handler)
    return self.core.add(recipe, scope: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as a token lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) -> ObservationToken {
    let recipe = EventHandlerRecipe<E>(suspends: true, handler)
    return self.core.add(recipe, scope: scope)
  }
}
