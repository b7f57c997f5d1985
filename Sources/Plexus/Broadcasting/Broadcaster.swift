/// A source of elements to which any number of tasks can subscribe.
///
/// Store an `any Broadcaster<DatabaseUpdate>` in a type that does not depend on the kind of source.
///
/// All broadcasters follow the same rules. A subscriber is registered when the call that subscribes returns. It
/// receives every element that is sent afterwards, unless its buffering policy drops it. All subscribers receive the
/// elements in the same order. Sending is synchronous, and possible from any thread. Dropping a stream, cancelling the
/// task that iterates it, or releasing a token unsubscribes. Subscribers do not keep a broadcaster alive: when its last
/// reference is released, their streams end.
///
/// `subscribe` returns a standard `AsyncStream`, which you can pass to any code. `subscription` returns a
/// ``Subscription``, which is faster in a loop of your own and counts dropped elements.
///
/// ## Topics
///
/// ### Iterating
/// - ``subscribe()``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Calling closures
/// - ``observe(as:bufferingPolicy:_:)-16upr``
/// - ``observe(as:bufferingPolicy:_:)-1myde``
/// - ``observe(bufferingPolicy:_:)-248b2``
/// - ``observe(bufferingPolicy:_:)-12a5k``
///
/// ### Deriving
/// - ``map(_:)``
/// - ``filter(_:)``
/// - ``removeDuplicates()``
///
/// ### Counting subscribers
/// - ``subscriberCount``
public protocol Broadcaster<Element>: Sendable {
  /// The type of the elements that subscribers receive.
  associatedtype Element: Sendable

  /// Registers a subscriber and returns its elements.
  ///
  /// A broadcaster of yours can forward the subscription of another source. Its handlers are then handlers of that
  /// source.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  nonisolated func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element>

  /// Registers a subscriber and returns its elements as an `AsyncStream`.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  nonisolated func subscribe(bufferingPolicy: BufferingPolicy<Element>) -> AsyncStream<Element>

  /// Registers a subscriber with the default buffering policy of the source.
  ///
  /// For a slow subscriber, a ``StatefulBroadcaster`` buffers only the newest element; every other source buffers all
  /// elements.
  ///
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  nonisolated func subscribe() -> AsyncStream<Element>

  /// The current number of subscribers, including streams and handlers.
  nonisolated var subscriberCount: Int { get }
}

extension Broadcaster {
  /// Registers a subscriber and returns its elements as an `AsyncStream`.
  ///
  /// The stream behaves like a ``Subscription``, and only one task can iterate it.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Element>
  ) -> AsyncStream<Element> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber that misses no elements, however slow it is.
  ///
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    subscribe(bufferingPolicy: .unbounded)
  }
}

extension AsyncStream where Element: Sendable {
  /// Creates a stream of the elements of a subscription.
  ///
  /// - Parameter subscription: The subscription, which ends with the stream.
  @inlinable
  init(_ subscription: Subscription<Element>) {
    let subscriber = subscription.subscriber
    self.init(unfolding: { await subscriber.next(isolation: nil) })
  }
}

/// A broadcaster whose hub calls handlers directly, in one order.
protocol HubBacked<Element>: Broadcaster {
  /// The maximum number of elements that are replayed to a new subscriber.
  nonisolated var replayLimit: Int { get }

  /// The stage that makes the elements, if the source is a derived state.
  nonisolated var stage: (any DerivedStage)? { get }

  /// Returns the elements that a new subscriber would get first; `nil` if only the source of the source has them.
  nonisolated func currentReplay() -> Replay<Element>?

  /// Calls the body with the hub and the elements to replay to a new subscriber, with no send in between.
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result
}

/// A broadcaster without replay that sends only through its hub.
protocol HubOwner<Element>: HubBacked {
  /// The hub that serves the subscribers.
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

  nonisolated var stage: (any DerivedStage)? { nil }

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
