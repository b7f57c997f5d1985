extension StoreEngine {
  /// Registers a subscriber to the changes of a selected value.
  ///
  /// - Parameters:
  ///   - select: What to look at.
  ///   - path: The key path, if that is what is selected: those who select the same share one evaluation.
  ///   - feeds: Where the subscriber counts, and what it ends with.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of select: @escaping @Sendable (State) -> Value,
    path: (any AnyKeyPath & Sendable)? = nil,
    countedBy feeds: ChangeFeeds,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    let id = FeedID()
    let hub: BroadcastHub<Change<Value>> = makeHub(id, countedBy: feeds)
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    run { selectors, state in
      if let path, let box = selectors.box(for: path, of: Value.self) {
        return selectors.connect(id, to: box, at: box.insert(hub))
      }
      let box = ChangeBox(select(state))
      box.path = path
      // In the client's module this knows the types, and may know the selector.
      let evaluation = EvaluationBlock<State>.Evaluation { state in
        let value = select(state)
        if value != box.value { box.change(to: value) }
      }
      selectors.add(box, evaluation)
      selectors.connect(id, to: box, at: box.insert(hub))
    }
    return subscription
  }

  /// Registers a subscriber to the changes of what a key path leads to.
  ///
  /// - Parameters:
  ///   - path: What to look at.
  ///   - feeds: Where the subscriber counts, and what it ends with.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of path: any KeyPath<State, Value> & Sendable,
    countedBy feeds: ChangeFeeds,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    changes(
      of: { $0[keyPath: path] },
      path: path,
      countedBy: feeds,
      bufferingPolicy: bufferingPolicy
    )
  }

  /// Makes the hub of one subscriber, which leaves when it is dropped or cancelled.
  @usableFromInline
  func makeHub<Value: Sendable>(
    _ id: FeedID,
    countedBy feeds: ChangeFeeds
  ) -> BroadcastHub<Change<Value>> {
    let hub = BroadcastHub<Change<Value>> { [weak self, weak feeds] in
      feeds?.remove(id)
      self?.remove(id)
    }
    feeds.insert(hub, id: id)
    return hub
  }

  /// Forgets a subscriber, now or after the action that is under way.
  func remove(_ id: FeedID) {
    run { selectors, _ in selectors.remove(id) }
  }
}
