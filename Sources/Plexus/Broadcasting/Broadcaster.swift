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
