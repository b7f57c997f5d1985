extension Broadcaster {
  /// Calls a closure for every element, on the actor that the closure belongs to.
  ///
  /// The synchronous handlers of one source that share an actor run one after another, in
  /// subscription order, message by message: everybody sees one message before anybody sees the
  /// next. What a handler sends itself comes afterwards. Handlers that have run for about a millisecond let
  /// others have their actor before they go on.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call. It is released when the token is cancelled.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Element) -> Void
  ) -> ObservationToken {
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      .synchronous { box in
        call(Box<Element>.element(of: box))
        return .succeeded
      }
    )
    return ObservationToken(subscription(bufferingPolicy: bufferingPolicy).handler(recipe))
  }

  /// Calls an asynchronous closure for every element, on the actor that the closure belongs to.
  ///
  /// The handler has a task of its own. It sees every element in order, never overlaps itself, and
  /// holds up nobody else while it is suspended.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call. When the token is cancelled, so is the task that a running handler
  ///     is in; the closure is released when it has returned.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  @inlinable
  public nonisolated func observe(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Element) async -> Void
  ) -> ObservationToken {
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      .suspending { box in
        await handler(Box<Element>.element(of: box))
        return .succeeded
      }
    )
    return ObservationToken(subscription(bufferingPolicy: bufferingPolicy).handler(recipe))
  }

  /// Calls a closure for every element as long as its owner lives.
  ///
  /// The rules are those of the handlers that a token keeps. The owner is held weakly; once it has gone,
  /// the handler is not called any more, and is released at the next element or the next look at
  /// ``subscriberCount``.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides. The closure must not capture it strongly: it is handed in.
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call, with the owner and the element.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Owner, Element) -> Void
  ) {
    weak let weakOwner = owner
    let call = directly(handler)
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      isOrphaned: { weakOwner == nil },
      .synchronous { box in
        guard let owner = weakOwner else { return .unreached }
        call(owner, Box<Element>.element(of: box))
        return .succeeded
      }
    )
    _ = subscription(bufferingPolicy: bufferingPolicy).handler(recipe)
  }

  /// Calls an asynchronous closure for every element as long as its owner lives.
  ///
  /// The handler has a task of its own, which keeps the owner alive only while the handler runs.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides. The closure must not capture it strongly: it is handed in.
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call, with the owner and the element.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, Element) async -> Void
  ) {
    weak let weakOwner = owner
    let recipe = Handler.Recipe(
      isolation: handler.isolation,
      isOrphaned: { weakOwner == nil },
      .suspending { box in
        guard let owner = weakOwner else { return .unreached }
        await handler(owner, Box<Element>.element(of: box))
        return .succeeded
      }
    )
    _ = subscription(bufferingPolicy: bufferingPolicy).handler(recipe)
  }
}
