extension Store {
  /// Registers a subscriber to the changes of what a key path leads to.
  ///
  /// The first element is the present value, with `nil` as the old one. Then comes every real change with
  /// the exact previous value, however many actions lie between; an action that leaves the value equal
  /// is not told. While an action is under way, the present value is the one after it.
  ///
  /// All who subscribe to the same key path share one evaluation an action.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of path: any KeyPath<State, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is made from the state.
  ///
  /// The first element is the present value, with `nil` as the old one. Then comes every real change with
  /// the exact previous value, however many actions lie between; an action that leaves the value equal
  /// is not told. While an action is under way, the present value is the one after it.
  ///
  /// - Parameters:
  ///   - select: What to look at. It is called once now, or after the action that is under way, and once
  ///     for each action, on the thread that dispatches, outside every lock.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of select: @escaping @Sendable (State) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of what a key path leads to.
  ///
  /// The rules are those of ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf path: any KeyPath<State, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: path, countedBy: feeds, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is made from the state.
  ///
  /// The rules are those of ``changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf select: @escaping @Sendable (State) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: select, countedBy: feeds, bufferingPolicy: bufferingPolicy)
  }

  /// Creates a store for one screen beside this one, which holds this one.
  ///
  /// - Parameters:
  ///   - initial: What the page's state is made from. It is called once, before this returns.
  ///   - middleware: What every action of the page passes before it comes to the reducer, in this order.
  ///   - reducer: What an action of the page does to the page's state.
  /// - Returns: The page store, which lives as long as its owner keeps it.
  @inlinable
  public nonisolated func page<P: Sendable, A: Sendable>(
    _ initial: (State) -> P,
    middleware: [Middleware<P, A>] = [],
    reducer: @escaping Reducer<P, A>
  ) -> PageStore<State, Action, P, A> {
    PageStore(parent: self, state: initial(state), middleware: middleware, reducer: reducer)
  }
}
