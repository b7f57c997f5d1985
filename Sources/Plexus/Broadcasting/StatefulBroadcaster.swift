/// A broadcaster of states, which has a current element and replays it to new subscribers.
///
/// Read ``current`` without subscribing. A screen that stores an `any StatefulBroadcaster<Form>` can show a store, a
/// ``CurrentValue`` or a part of either.
///
/// ```swift
/// let volume = CurrentValue(3)
/// let stateful: any StatefulBroadcaster<Int> = volume
/// print(stateful.current)  // Prints "3"
/// ```
///
/// A new subscriber begins with the current element: never with one that is older than ``current`` was before it
/// subscribed, whatever other threads are delivering.
///
/// By default, a slow stream skips to the newest state, and a handler is called for every state: ``Broadcaster/subscribe()`` buffers one element.
///
/// ## Topics
///
/// ### Reading
/// - ``current``
///
/// ### Deriving
/// - ``select(_:)-(KeyPath<Self.Element,V>Sendable)``
/// - ``select(_:)-((Self.Element)->V)``
/// - ``map(_:)``
/// - ``removeDuplicates()``
///
/// ### Saving
/// - ``persist(in:as:delay:clock:)``
public protocol StatefulBroadcaster<Element>: Broadcaster {
  /// The newest element.
  nonisolated var current: Element { get }
}

extension StatefulBroadcaster {
  /// Registers a subscriber that receives the current element first, and skips to the newest when it is slow.
  ///
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    subscribe(bufferingPolicy: .bufferingNewest(1))
  }
}
