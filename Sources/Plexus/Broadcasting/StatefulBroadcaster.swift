/// A broadcaster of states: there is a newest element at any moment, which a new subscriber gets first.
///
/// A view or a test reads ``current`` without subscribing. `any StatefulBroadcaster<Form>` can be stored, so
/// that a screen need not know whether it shows a store, a ``CurrentValue`` or something that is fetched.
///
/// ```swift
/// let volume = CurrentValue(3)
/// let stateful: any StatefulBroadcaster<Int> = volume
/// print(stateful.current)  // 3
/// ```
///
/// Subscribers skip ahead to the newest state by default: ``Broadcaster/subscribe()`` buffers one element.
///
/// ## Topics
///
/// ### Reading
/// - ``current``
///
/// ### Deriving
/// - ``select(_:)-(KeyPath<Self.Element,V>Sendable)``
/// - ``select(_:)-((Self.Element)->V)``
public protocol StatefulBroadcaster<Element>: Broadcaster {
  /// The newest element.
  nonisolated var current: Element { get }
}

extension StatefulBroadcaster {
  /// Registers a subscriber that gets the newest element, and then skips ahead to the newest when it is slow.
  ///
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    subscribe(bufferingPolicy: .bufferingNewest(1))
  }
}
