/// Handlers that live until removed by an id.
extension EventBus {
  /// Calls a closure for every event of a type, until it is removed by its id.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
  ///     same.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - handler: What to call, on the actor that the closure belongs to.
  public nonisolated func observe<E: Event>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> Void
  ) {
    let recipe = EventHandlerRecipe<E>(suspends: false, handler)
    core.add(recipe, id: AnyID(id), scope: scope, replacing: replacing)
  }

  /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
  ///     same.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - handler: What to call, on the actor that the closure belongs to.
  public nonisolated func observe<E: Event>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) {
    let recipe = EventHandlerRecipe<E>(suspends: true, handler)
    core.add(recipe, id: AnyID(id), scope: scope, replacing: replacing)
  }
}

/// Handlers with a result that live until removed by an id.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == EventBus {
  /// Calls a closure for every event of a type, until it is removed by its id.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
  ///     same.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - handler: What to call, on the actor that the closure belongs to.
  public nonisolated func observe<E: PersistentEvent>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> HandlerResult
  ) {
    let recipe = EventHandlerRecipe<E>(suspends: false, handler)
    self.core.add(recipe, id: AnyID(id), scope: scope, replacing: replacing)
  }

  /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
  ///     same.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - handler: What to call, on the actor that the closure belongs to.
  public nonisolated func observe<E: PersistentEvent>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) {
    let recipe = EventHandlerRecipe<E>(suspends: true, handler)
    self.core.add(recipe, id: AnyID(id), scope: scope, replacing: replacing)
  }
}
