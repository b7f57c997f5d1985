extension PageStore {
  /// Registers a subscriber to the changes of what a key path leads to in the page's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of path: any KeyPath<PageState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is made from the page's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    of select: @escaping @Sendable (PageState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOf: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of what a key path leads to in the page's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
  ///   task is cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf path: any KeyPath<PageState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: path, countedBy: feeds, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is made from the page's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
  ///   task is cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOf select: @escaping @Sendable (PageState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    engine.changes(of: select, countedBy: feeds, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of what a key path leads to in the app's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    ofApp path: any KeyPath<AppState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOfApp: path, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of a value that is made from the app's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
  ///   cancelled.
  @inlinable
  public nonisolated func changes<V: Equatable & Sendable>(
    ofApp select: @escaping @Sendable (AppState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> AsyncStream<Change<V>> {
    AsyncStream(subscription(toChangesOfApp: select, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber to the changes of what a key path leads to in the app's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
  ///   task is cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOfApp path: any KeyPath<AppState, V> & Sendable,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    parent.engine.changes(of: path, countedBy: appFeeds, bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber to the changes of a value that is made from the app's state.
  ///
  /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
  ///
  /// - Parameters:
  ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
  ///   task is cancelled.
  @inlinable
  public nonisolated func subscription<V: Equatable & Sendable>(
    toChangesOfApp select: @escaping @Sendable (AppState) -> V,
    bufferingPolicy: BufferingPolicy<Change<V>> = .unbounded
  ) -> Subscription<Change<V>> {
    parent.engine.changes(of: select, countedBy: appFeeds, bufferingPolicy: bufferingPolicy)
  }
}
