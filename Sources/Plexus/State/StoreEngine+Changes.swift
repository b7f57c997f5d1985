extension StoreEngine {
  /// Registers a subscriber to the changes of a selected value.
  ///
  /// - Parameters:
  ///   - select: Selects the value.
  ///   - path: The key path, if any: selectors of the same path share one evaluation.
  ///   - feeds: The subscribers with which this one counts and ends.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of select: @escaping @Sendable (State) -> Value,
    path: (any AnyKeyPath & Sendable)? = nil,
    countedBy feeds: ChangeSubscriptions,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    let id = SubscriptionID()
    let hub: BroadcastHub<Change<Value>> = makeHub(id, countedBy: feeds)
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    run { table, state in
      if let path, let selector = table.index.selector(for: path) as? Selector<Value> {
        return table.index.connect(id, to: selector, at: selector.insert(hub))
      }
      let selector = Selector(select(state))
      selector.path = path
      // In the client's module, the types are known, and possibly the selector.
      let evaluation = EvaluationBlock<State>.Evaluation { state in
        let value = select(state)
        if value != selector.value { selector.change(to: value) }
      }
      table.add(selector, evaluation)
      table.index.connect(id, to: selector, at: selector.insert(hub))
    }
    return subscription
  }

  /// Registers a subscriber to the changes of a part of the state, selected by a key path.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - feeds: The subscribers with which this one counts and ends.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of path: any KeyPath<State, Value> & Sendable,
    countedBy feeds: ChangeSubscriptions,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    changes(
      of: { $0[keyPath: path] },
      path: path,
      countedBy: feeds,
      bufferingPolicy: bufferingPolicy
    )
  }

  /// Creates the hub of one subscriber, which leaves when it is dropped or cancelled.
  @inlinable
  func makeHub<Value: Sendable>(
    _ id: SubscriptionID,
    countedBy feeds: ChangeSubscriptions
  ) -> BroadcastHub<Change<Value>> {
    let hub = BroadcastHub<Change<Value>> { [weak self, weak feeds] in
      feeds?.remove(id)
      self?.remove(id)
    }
    feeds.insert(hub, id: id)
    return hub
  }

  /// Removes a subscriber, now or after the action that is being processed.
  @inlinable
  func remove(_ id: SubscriptionID) {
    run { selectors, _ in selectors.remove(id) }
  }
}
