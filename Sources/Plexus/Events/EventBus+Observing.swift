/// Handlers without a result.
extension EventBus {
  /// Registers a closure for the events of a type, until its token is released.
  ///
  /// Synchronous handlers of one type and scope that share an actor run one after another, event by event
  /// and in subscription order.
  ///
  /// Returning counts as success, throwing as failure.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  ///   - bufferingPolicy: The policy for events that the handler has not processed yet. Persistent events are
  ///     delivered regardless of it.
  ///   - handler: The closure to call. It runs on the actor that it is isolated to.
  /// - Returns: The token of the handler. Releasing it removes the handler.
  @inlinable
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> Void
  ) -> ObservationToken {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { .succeeded }
    return ObservationToken(core.add(recipe, of: type, in: scope))
  }

  /// Registers an asynchronous closure for the events of a type, until its token is released.
  @inlinable
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) -> ObservationToken {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { .succeeded }
    return ObservationToken(core.add(recipe, of: type, in: scope))
  }

  /// Registers a closure for the events of a type, until its owner is released.
  ///
  /// Synchronous handlers of one type and scope that share an actor run one after another, event by event
  /// and in subscription order.
  ///
  /// Returning counts as success, throwing as failure.
  ///
  /// - Parameters:
  ///   - owner: The owner, which is held weakly and passed to the closure. The closure must not capture it
  ///     strongly. After its release, the handler is removed at the next event or the next call of
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  ///   - bufferingPolicy: The policy for events that the handler has not processed yet. Persistent events are
  ///     delivered regardless of it.
  ///   - handler: The closure to call with the owner and the event. It runs on the actor that it is isolated to.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> Void
  ) {
    let recipe = Handler.Recipe(calling: handler, as: owner, bufferingPolicy) { .succeeded }
    core.add(recipe, of: type, in: scope)
  }

  /// Registers an asynchronous closure for the events of a type, until its owner is released.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void
  ) {
    let recipe = Handler.Recipe(calling: handler, as: owner, bufferingPolicy) { .succeeded }
    core.add(recipe, of: type, in: scope)
  }

  /// Registers a closure for the events of a type, until it is removed by its id.
  ///
  /// Synchronous handlers of one type and scope that share an actor run one after another, event by event
  /// and in subscription order.
  ///
  /// Returning counts as success, throwing as failure.
  ///
  /// - Parameters:
  ///   - id: The id to pass to ``EventBus/removeObserver(id:)``. Several handlers can share an id. An id that is an
  ///     object, and is equal only to itself, is held weakly.
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  ///   - replacing: Whether handlers with the same id, type and scope are removed atomically. The new handler
  ///     is last in subscription order and receives all events posted from then on.
  ///   - bufferingPolicy: The policy for events that the handler has not processed yet. Persistent events are
  ///     delivered regardless of it.
  ///   - handler: The closure to call. It runs on the actor that it is isolated to.
  @inlinable
  public nonisolated func observe<E: Event>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> Void
  ) {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { .succeeded }
    core.add(recipe, id: AnyID(id), of: type, in: scope, replacing: replacing)
  }

  /// Registers an asynchronous closure for the events of a type, until it is removed by its id.
  @inlinable
  public nonisolated func observe<E: Event>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { .succeeded }
    core.add(recipe, id: AnyID(id), of: type, in: scope, replacing: replacing)
  }
}
