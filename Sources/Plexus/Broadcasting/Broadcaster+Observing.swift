extension Broadcaster {
  /// Calls a closure for every element, on the actor of the closure.
  ///
  /// The synchronous handlers of one source that share an actor run one after another, in subscription order and
  /// element by element: all of them handle an element before the first handles the next. An element that a handler
  /// sends follows the current one. After about a millisecond of calls, they yield their actor.
  ///
  /// If the broadcaster forwards a subscription of another source, the handler is registered with that source, in the
  /// order of its handlers. Events of an ``EventBus`` count as handled successfully when the handler has returned.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: The policy for elements that the handler has not processed yet.
  ///   - handler: The closure. It is released when the token is cancelled.
  /// - Returns: The token that keeps the handler registered. Releasing it removes the handler.
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

  /// Calls an asynchronous closure for every element, on the actor of the closure.
  ///
  /// The handler has its own task. It receives the elements in order, its calls never overlap, and it does not delay
  /// other subscribers while it is suspended. The tasks of several handlers are resumed in subscription order, but the
  /// system can start them in another one, even on the same actor.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: The policy for elements that the handler has not processed yet.
  ///   - handler: The closure. Cancelling the token also cancels the task of a running handler. The closure is
  ///     released when it has returned.
  /// - Returns: The token that keeps the handler registered. Releasing it removes the handler.
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

  /// Calls a closure for every element until the owner of the handler is released.
  ///
  /// Otherwise, the handler behaves like one with a token. The owner is held weakly. After its release, the handler is
  /// not called again, and is released at the next element or the next access to ``subscriberCount``.
  ///
  /// On the main actor, the closure can use the owner directly. If the owner is an actor itself, pass an asynchronous
  /// closure that calls it with `await`: see <doc:troubleshooting>.
  ///
  /// - Parameters:
  ///   - owner: The object that determines the lifetime. It is passed to the closure, which must not capture it
  ///     strongly.
  ///   - bufferingPolicy: The policy for elements that the handler has not processed yet.
  ///   - handler: The closure, which receives the owner and the element.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (Owner, Element) -> Void
  ) {
    let call = directly(handler)
    // The limits are those of the subscription.
    let recipe = Handler.Recipe(isolation: handler.isolation, .unbounded, as: owner) {
      call($0, $1)
      return .succeeded
    }
    _ = subscription(bufferingPolicy: bufferingPolicy).handler(recipe)
  }

  /// Calls an asynchronous closure for every element until the owner of the handler is released.
  ///
  /// The handler has its own task, which keeps the owner alive only during a call.
  ///
  /// - Parameters:
  ///   - owner: The object that determines the lifetime. It is passed to the closure, which must not capture it
  ///     strongly.
  ///   - bufferingPolicy: The policy for elements that the handler has not processed yet.
  ///   - handler: The closure, which receives the owner and the element.
  @inlinable
  public nonisolated func observe<Owner: AnyObject & Sendable>(
    as owner: Owner,
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    @_inheritActorContext _ handler:
      @escaping @isolated(any) @Sendable (Owner, Element) async -> Void
  ) {
    // The limits are those of the subscription.
    let recipe = Handler.Recipe(isolation: handler.isolation, .unbounded, as: owner) {
      await handler($0, $1)
      return .succeeded
    }
    _ = subscription(bufferingPolicy: bufferingPolicy).handler(recipe)
  }
}
