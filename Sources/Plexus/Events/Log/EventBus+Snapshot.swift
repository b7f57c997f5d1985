extension EventBus {
  /// The subscribers and the retained events of one type and scope: see ``EventBus/snapshot(pendingLimit:)``.
  ///
  /// ## Topics
  ///
  /// ### The events
  /// - ``type``
  /// - ``typeName``
  /// - ``scope``
  ///
  /// ### Subscribers
  /// - ``subscriberCount``
  /// - ``handlerCount``
  ///
  /// ### Retained events
  /// - ``pendingCount``
  /// - ``pendingEvents``
  public struct ChannelSnapshot: Sendable {
    /// The type of the events.
    public let type: any Event.Type
    /// The scope, or `nil` for events without a scope.
    public let scope: EventScope?
    /// The number of subscribers, including streams.
    public let subscriberCount: Int
    /// The number of handlers among them.
    public let handlerCount: Int
    /// The number of events that are retained for later subscribers.
    public let pendingCount: Int
    /// The oldest of these events, oldest first.
    public let pendingEvents: [any Event]

    /// The name of the type.
    public var typeName: String { "\(type)" }
  }

  /// Returns the subscribers and the retained events of all types and scopes, for example for a page of diagnostics.
  ///
  /// A type is included from its first subscriber or retained event on, a scope as long as it has any. Each type and scope
  /// is read at a moment of its own. Handlers whose owner was released are removed first, and expired events are
  /// discarded.
  ///
  /// - Parameter pendingLimit: The maximum number of retained events of each type and scope.
  /// - Returns: The types and scopes, in no particular order.
  /// - Precondition: The limit is not negative.
  public nonisolated func snapshot(pendingLimit: Int = 100) -> [ChannelSnapshot] {
    precondition(pendingLimit >= 0, "The number of events of a snapshot cannot be negative")
    return core.channels.map { $0.snapshot(pendingLimit: pendingLimit) }
  }
}

extension EventChannel {
  fileprivate func snapshot(pendingLimit: Int) -> EventBus.ChannelSnapshot {
    let pending = pendingEvents
    let subscriberCount = subscriberCount
    return EventBus.ChannelSnapshot(
      type: eventType,
      scope: scope?.element,
      subscriberCount: subscriberCount,
      handlerCount: min(hub.handlerCount, subscriberCount),
      pendingCount: pending.count,
      pendingEvents: pending.prefix(pendingLimit).map { EventBus.Core.event(in: $0, of: eventType) }
    )
  }
}

extension HubBase {
  /// The number of handlers.
  final var handlerCount: Int { queues.reduce(0) { $0 + $1.state.withLock { $0.count } } }
}
