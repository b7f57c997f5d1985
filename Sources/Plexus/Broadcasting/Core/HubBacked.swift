/// A broadcaster whose hub calls handlers directly, in one order.
protocol HubBacked<Element>: Broadcaster {
  /// The maximum number of elements that are replayed to a new subscriber.
  nonisolated var replayLimit: Int { get }

  /// The stage that makes the elements, if the source is a derived state.
  nonisolated var stage: (any DerivedStage)? { get }

  /// The hub, if there is one at present; unlike ``withHub(_:)``, reading it connects and creates nothing.
  nonisolated var presentHub: BroadcastHub<Element>? { get }

  /// Returns the elements that a new subscriber would get first; `nil` if only the source of the source has them.
  nonisolated func currentReplay() -> Replay<Element>?

  /// Calls the body with the hub and the elements to replay to a new subscriber, with no send in between.
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result
}

extension HubBacked {
  nonisolated var replayLimit: Int { 1 }

  nonisolated var stage: (any DerivedStage)? { nil }

  nonisolated var presentHub: BroadcastHub<Element>? { withHub { hub, _ in hub } }

  nonisolated func currentReplay() -> Replay<Element>? {
    Replay(elements: withHub { _, replay in replay })
  }

  /// Registers a subscriber with the replay of the source, and announces the new subscriber count.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  nonisolated func registered(
    bufferingPolicy: BufferingPolicy<Element>
  ) -> Subscription<Element> {
    let subscription = withHub { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
    subscription.subscriber.core.announceCount()
    return subscription
  }
}
