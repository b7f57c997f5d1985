extension PageStore {
  /// Registers a subscriber to the changes of a part of the page's state, selected by a key path.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store. Dropping it or cancelling the task that iterates it ends
  ///   the subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of path: any KeyPath<PageState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is derived from the page's state.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: Derives the value. It is called on the dispatching thread, with no lock held.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store. Dropping it or cancelling the task that iterates it ends
  ///   the subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of select: @escaping @Sendable (PageState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a part of the page's state, selected by a key path.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the page store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf path: any KeyPath<PageState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: path, countedBy: subscribers, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is derived from the page's state.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: Derives the value. It is called on the dispatching thread, with no lock held.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the page store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf select: @escaping @Sendable (PageState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: select, countedBy: subscribers, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a part of the app's state, selected by a key path.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store. Dropping it or cancelling the task that iterates it ends
  ///   the subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    ofApp path: any KeyPath<AppState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOfApp: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is derived from the app's state.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: Derives the value. It is called on the dispatching thread, with no lock held.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store. Dropping it or cancelling the task that iterates it ends
  ///   the subscription.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    ofApp select: @escaping @Sendable (AppState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOfApp: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a part of the app's state, selected by a key path.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the page store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOfApp path: any KeyPath<AppState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    parent.engine.changes(of: path, countedBy: appSubscribers, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is derived from the app's state.
  ///
  /// For details, see ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: Derives the value. It is called on the dispatching thread, with no lock held.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription. It ends with the page store, when it is dropped, or when the task that iterates it is
  ///   cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOfApp select: @escaping @Sendable (AppState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    parent.engine.changes(of: select, countedBy: appSubscribers, bufferingPolicy: bufferingPolicy)
  }
}
