extension Store {
  /// Registers a subscriber to the changes of a part of the state, selected by a key path.
  ///
  /// The first element has the current value, and `nil` as the old one. Every further element is an actual change with
  /// the exact previous value, regardless of the number of actions in between. An action that leaves the value equal
  /// causes no element. While an action is being processed, the value after that action counts as the current one.
  ///
  /// All subscribers to the same key path share one evaluation per action.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the store. Dropping it or cancelling the task that iterates it ends the
  ///   subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of path: any KeyPath<State, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is derived from the state.
  ///
  /// The first element has the current value, and `nil` as the old one. Every further element is an actual change with
  /// the exact previous value, regardless of the number of actions in between. An action that leaves the value equal
  /// causes no element. While an action is being processed, the value after that action counts as the current one.
  ///
  /// - Parameters:
  ///   - select: A closure that derives the value. It is called once now, or after the action that is being processed,
  ///     and then once per action, on the dispatching thread, with no lock held.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the store. Dropping it or cancelling the task that iterates it ends the
  ///   subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of select: @escaping @Sendable (State) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a part of the state, selected by a key path.
  ///
  /// For details, see ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf path: any KeyPath<State, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: path, countedBy: subscribers, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is derived from the state.
  ///
  /// For details, see ``changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: A closure that derives the value.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf select: @escaping @Sendable (State) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: select, countedBy: subscribers, bufferingPolicy: bufferingPolicy)
  }

  /// Creates a store for one screen, which keeps this store alive.
  ///
  /// - Parameters:
  ///   - initial: A closure that derives the initial state of the page. It is called once, before this method returns.
  ///   - middleware: The middleware through which every action of the page passes before the reducer, in this order.
  ///   - reducer: A function that applies an action of the page to the state of the page.
  /// - Returns: The page store, which is released with its last reference.
  @inlinable
  public nonisolated func page<P: Sendable, A: Sendable>(
    _ initial: (State) -> P,
    middleware: [Middleware<P, A>] = [],
    reducer: @escaping Reducer<P, A>
  ) -> PageStore<State, Action, P, A> {
    PageStore(parent: self, state: initial(state), middleware: middleware, reducer: reducer)
  }
}
