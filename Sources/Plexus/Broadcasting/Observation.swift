extension Broadcaster {
  /// Calls a closure for every element, on the actor that the closure belongs to.
  ///
  /// The synchronous handlers of one source that share an actor run one after another, in
  /// subscription order, message by message: everybody sees one message before anybody sees the
  /// next. What a handler sends itself comes afterwards.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call. It is released when the token is cancelled.
  /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
  public nonisolated func observe(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Element) -> Void
  ) -> ObservationToken {
    let registration = add(
      .plain(handler),
      isolation: handler.isolation,
      bufferingPolicy: bufferingPolicy
    )
    return ObservationToken(onCancel: registration.cancel)
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
  public nonisolated func observe(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Element) async -> Void
  ) -> ObservationToken {
    let subscription = subscription(bufferingPolicy: bufferingPolicy)
    let loop = HandlerLoop(subscription) { element, _ in
      await handler(element)
      return true
    }
    loop.start(isolation: handler.isolation)
    return ObservationToken { loop.cancel() }
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
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Owner, Element) -> Void
  ) {
    weak let weakOwner = owner
    let registration = add(
      .owned { element, _ in
        guard let owner = weakOwner else { return false }
        await handler(owner, element)
        return true
      },
      isolation: handler.isolation,
      bufferingPolicy: bufferingPolicy
    )
    registration.end(with: owner)
  }

  /// Calls an asynchronous closure for every element as long as its owner lives.
  ///
  /// The handler has a task of its own, which keeps the owner alive only while the handler runs.
  ///
  /// - Parameters:
  ///   - owner: Whose life decides. The closure must not capture it strongly: it is handed in.
  ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
  ///   - handler: What to call, with the owner and the element.
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, Element) async -> Void
  ) {
    weak let weakOwner = owner
    let loop = HandlerLoop(subscription(bufferingPolicy: bufferingPolicy)) { element, _ in
      guard let owner = weakOwner else { return false }
      await handler(owner, element)
      return true
    }
    loop.start(isolation: handler.isolation)
    loop.registration.end(with: owner)
  }

  /// Adds a synchronous handler to the hub, or in a loop of its own if the broadcaster is not one of ours.
  private nonisolated func add(
    _ body: HandlerEntry<Element>.Body,
    isolation: (any Actor)?,
    bufferingPolicy: BufferingPolicy<Element>
  ) -> HandlerRegistration<Element> {
    if let source = self as? any HubBacked<Element> {
      let added = source.withHub { hub, replay in
        hub.addHandler(
          body,
          isolation: isolation,
          bufferingPolicy: bufferingPolicy,
          replaying: replay
        )
      }
      added.registration.hub.start(added)
      return added.registration
    }
    let loop = HandlerLoop(subscription(bufferingPolicy: bufferingPolicy)) { element, isolation in
      switch body {
      case .plain(let handler):
        await handler(element)
        return true
      case .owned(let handler):
        return await handler(element, isolation)
      }
    }
    loop.start(isolation: isolation)
    return loop.registration
  }
}
