/// A source of elements that any number of tasks may subscribe to.
///
/// `any Broadcaster<DatabaseUpdate>` can be stored, so that a type need not say what kind of source
/// it listens to.
///
/// Every broadcaster of this library keeps one contract. A subscriber is registered, without a gap,
/// when the call that subscribes returns. All subscribers see the same order. Sending is synchronous
/// and callable from anywhere. A subscriber that is dropped, cancelled or released is unsubscribed,
/// and no subscriber keeps its broadcaster alive: streams end with the last reference to it.
public protocol Broadcaster<Element>: Sendable {
  /// What subscribers receive.
  associatedtype Element: Sendable

  /// Registers a subscriber and returns what it receives.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  nonisolated func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element>

  /// Registers a subscriber and returns what it receives as the standard library's stream.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  nonisolated func subscribe(bufferingPolicy: BufferingPolicy<Element>) -> AsyncStream<Element>

  /// Registers a subscriber with the buffering policy that is the default of the source.
  ///
  /// A ``StatefulBroadcaster`` keeps the newest element for a subscriber that is behind, every other source all
  /// of them.
  ///
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  nonisolated func subscribe() -> AsyncStream<Element>

  /// The number of subscribers at this moment, streams and handlers alike.
  nonisolated var subscriberCount: Int { get }
}

extension Broadcaster {
  /// Registers a subscriber and returns what it receives as the standard library's stream.
  ///
  /// The stream follows the rules of ``Subscription``, but one task iterates it only.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Element>
  ) -> AsyncStream<Element> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber for which everything is kept that it has not read.
  ///
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    subscribe(bufferingPolicy: .unbounded)
  }
}

extension AsyncStream where Element: Sendable {
  /// Creates a stream of what a subscription receives.
  ///
  /// - Parameter subscription: The subscription, which ends with the stream.
  @inlinable
  init(_ subscription: Subscription<Element>) {
    let subscriber = subscription.subscriber
    self.init(unfolding: { await subscriber.next(isolation: nil) })
  }
}

/// A broadcaster whose handlers can be served by the hub itself, in one order.
protocol HubBacked<Element>: Broadcaster {
  /// The largest number of elements that a new subscriber gets first.
  nonisolated var replayLimit: Int { get }

  /// Calls the body with the hub and with what a new subscriber gets first, such that nothing can be
  /// sent in between.
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result
}

/// A broadcaster that replays nothing: what is sent goes through its hub, and that is all.
protocol HubOwner<Element>: HubBacked {
  /// What serves the subscribers.
  nonisolated var hub: BroadcastHub<Element> { get }
}

extension HubOwner {
  nonisolated var replayLimit: Int { 0 }

  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    body(hub, [])
  }
}

extension HubBacked {
  nonisolated var replayLimit: Int { 1 }

  /// Registers a subscriber that gets what is replayed first, and announces that.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
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
