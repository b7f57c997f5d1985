/// Handlers with a result.
///
/// A closure without `return` matches these overloads, too. They are declared in a protocol extension because
/// overload resolution prefers the members of `EventBus` itself.
extension Actor where Self == EventBus {
  /// Registers a closure with a result for the events of a type, until its token is released.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> HandlerResult
  ) -> ObservationToken {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { Handler.Ending($0) }
    return ObservationToken(self.core.add(recipe, of: type, in: scope))
  }

  /// Registers an asynchronous closure with a result for the events of a type, until its token is released.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) -> ObservationToken {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { Handler.Ending($0) }
    return ObservationToken(self.core.add(recipe, of: type, in: scope))
  }

  /// Registers a closure with a result for the events of a type, until its owner is released.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> HandlerResult
  ) {
    let recipe = Handler.Recipe(calling: handler, as: owner, bufferingPolicy) { Handler.Ending($0) }
    self.core.add(recipe, of: type, in: scope)
  }

  /// Registers an asynchronous closure with a result for the events of a type, until its owner is released.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> HandlerResult
  ) {
    let recipe = Handler.Recipe(calling: handler, as: owner, bufferingPolicy) { Handler.Ending($0) }
    self.core.add(recipe, of: type, in: scope)
  }

  /// Registers a closure with a result for the events of a type, until it is removed by its id.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> HandlerResult
  ) {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { Handler.Ending($0) }
    self.core.add(
      recipe,
      id: AnyID(id),
      of: type,
      in: scope,
      replacing: replacing
    )
  }

  /// Registers an asynchronous closure with a result for the events of a type, until it is removed by its id.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    id: some Hashable & Sendable,
    _ type: E.Type,
    scope: EventScope? = nil,
    replacing: Bool = false,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) {
    let recipe = Handler.Recipe(calling: handler, bufferingPolicy) { Handler.Ending($0) }
    self.core.add(
      recipe,
      id: AnyID(id),
      of: type,
      in: scope,
      replacing: replacing
    )
  }
}
