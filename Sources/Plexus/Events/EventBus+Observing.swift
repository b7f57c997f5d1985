/// Handlers that return nothing.
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
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> Void
  ) -> ObservationToken {
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .synchronous { box in
        do {
          try call(Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    return ObservationToken(core.add(recipe, of: ObjectIdentifier(type), in: scope))
  }

  /// Calls an asynchronous closure for every event of a type, as long as a token lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe<E: Event>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) -> ObservationToken {
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .suspending { box in
        do {
          try await handler(Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    return ObservationToken(core.add(recipe, of: ObjectIdentifier(type), in: scope))
  }

  /// Calls a closure for every event of a type, as long as an owner lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - owner: The object, held weakly. The closure must not capture it strongly: it is handed in. Once it has
  ///     been released, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> Void
  ) {
    weak let weakOwner = owner
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .synchronous { box in
        guard let owner = weakOwner else { return .unreached }
        do {
          try call(owner, Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    core.add(recipe, of: ObjectIdentifier(type), in: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - owner: The object, held weakly. The closure must not capture it strongly: it is handed in. Once it has
  ///     been released, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: Event>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void
  ) {
    weak let weakOwner = owner
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .suspending { box in
        guard let owner = weakOwner else { return .unreached }
        do {
          try await handler(owner, Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    core.add(recipe, of: ObjectIdentifier(type), in: scope)
  }

  /// Calls a closure for every event of a type, until it is removed by its id.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers can have the
  ///     same. An object that equals only itself is held weakly.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
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
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .synchronous { box in
        do {
          try call(Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    core.add(
      recipe,
      id: AnyID(id),
      of: ObjectIdentifier(type),
      in: scope,
      replacing: replacing
    )
  }

  /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// Returning counts as handled successfully, throwing as failed.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers can have the
  ///     same. An object that equals only itself is held weakly.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
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
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .suspending { box in
        do {
          try await handler(Box<E>.element(of: box))
          return .succeeded
        } catch {
          return .failed
        }
      }
    )
    core.add(
      recipe,
      id: AnyID(id),
      of: ObjectIdentifier(type),
      in: scope,
      replacing: replacing
    )
  }
}

/// Handlers that return a result.
///
/// Swift takes a closure without a `return` for one with a result, too, and prefers the members of the type
/// itself to those in the extension of a protocol that it conforms to.
extension Actor where Self == EventBus {
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
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) throws -> HandlerResult
  ) -> ObservationToken {
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .synchronous { box in
        do {
          return Handler.Ending(try call(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    return ObservationToken(self.core.add(recipe, of: ObjectIdentifier(type), in: scope))
  }

  /// Calls an asynchronous closure for every event of a type, as long as a token lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe<E: PersistentEvent>(
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) -> ObservationToken {
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .suspending { box in
        do {
          return Handler.Ending(try await handler(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    return ObservationToken(self.core.add(recipe, of: ObjectIdentifier(type), in: scope))
  }

  /// Calls a closure for every event of a type, as long as an owner lives.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - owner: The object, held weakly. The closure must not capture it strongly: it is handed in. Once it has
  ///     been released, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) throws -> HandlerResult
  ) {
    weak let weakOwner = owner
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .synchronous { box in
        guard let owner = weakOwner else { return .unreached }
        do {
          return Handler.Ending(try call(owner, Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    self.core.add(recipe, of: ObjectIdentifier(type), in: scope)
  }

  /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - owner: The object, held weakly. The closure must not capture it strongly: it is handed in. Once it has
  ///     been released, the handler is removed at the next event, or the next look at
  ///     ``EventBus/subscriberCount(for:scope:)``.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable, E: PersistentEvent>(
    as owner: Owner,
    _ type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, E) async throws -> HandlerResult
  ) {
    weak let weakOwner = owner
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .suspending { box in
        guard let owner = weakOwner else { return .unreached }
        do {
          return Handler.Ending(try await handler(owner, Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    self.core.add(recipe, of: ObjectIdentifier(type), in: scope)
  }

  /// Calls a closure for every event of a type, until it is removed by its id.
  ///
  /// The synchronous handlers of one type and scope that share an actor run one after another, in
  /// subscription order, event by event.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers can have the
  ///     same. An object that equals only itself is held weakly.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
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
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .synchronous { box in
        do {
          return Handler.Ending(try call(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    self.core.add(
      recipe,
      id: AnyID(id),
      of: ObjectIdentifier(type),
      in: scope,
      replacing: replacing
    )
  }

  /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
  ///
  /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
  /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
  /// removed while it runs, that task is cancelled, and an offer of a persistent event has failed.
  ///
  /// What it returns decides whether a persistent event goes on to others, or is kept: see
  /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
  ///
  /// - Parameters:
  ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers can have the
  ///     same. An object that equals only itself is held weakly.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
  ///     new one takes its place at the end, and gets everything that is posted from then on.
  ///   - bufferingPolicy: Which events the handler can miss while it is behind. Kept events are offered to it in
  ///     any case.
  ///   - handler: What to call, on the actor that the closure belongs to.
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
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      bufferingPolicy,
      .suspending { box in
        do {
          return Handler.Ending(try await handler(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
    self.core.add(
      recipe,
      id: AnyID(id),
      of: ObjectIdentifier(type),
      in: scope,
      replacing: replacing
    )
  }
}
