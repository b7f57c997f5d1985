extension StoreEngine {
  /// Registers a subscriber to the changes of a selected value.
  ///
  /// - Parameters:
  ///   - select: Selects the value.
  ///   - path: The key path, if any: selectors of the same path share one evaluation.
  ///   - subscribers: The subscribers with which this one counts and ends.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of select: @escaping @Sendable (State) -> Value,
    path: (any AnyKeyPath & Sendable)? = nil,
    countedBy subscribers: ChangeSubscriptions,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    let id = ChangeSubscriptions.ID()
    let hub = BroadcastHub<Change<Value>>(onEmpty: { subscribers.remove(id) })
    subscribers.insert(hub, id: id)
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    subscription.subscriber.host = subscribers
    run { table, state in
      guard !subscribers.isFinished else { return }
      if let path, let selector = table.index.selector(for: path) as? SelectorEntry<Value> {
        return table.index.connect(id, to: selector, at: selector.insert(hub))
      }
      let selector = SelectorEntry(select(state), path: path)
      table.add(selector, select)
      table.index.connect(id, to: selector, at: selector.insert(hub))
    }
    return subscription
  }

  /// Registers a subscriber to the changes of a part of the state, selected by a key path.
  ///
  /// - Parameters:
  ///   - path: The path to the part.
  ///   - subscribers: The subscribers with which this one counts and ends.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  @inlinable
  func changes<Value: Equatable & Sendable>(
    of path: any KeyPath<State, Value> & Sendable,
    countedBy subscribers: ChangeSubscriptions,
    bufferingPolicy: BufferingPolicy<Change<Value>>
  ) -> Subscription<Change<Value>> {
    changes(
      of: { $0[keyPath: path] },
      path: path,
      countedBy: subscribers,
      bufferingPolicy: bufferingPolicy
    )
  }

  /// Removes a subscriber from its selector, now or after the action that is being processed.
  @inlinable
  func disconnect(_ id: ChangeSubscriptions.ID) {
    _ = queue.add(.removal(id), handOver: handOver, perform)
  }
}
