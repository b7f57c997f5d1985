/// A subscriber of a broadcaster at one moment: see ``Broadcaster/subscriberSnapshots(limit:)``.
///
/// ## Topics
///
/// ### Identity
/// - ``id``
/// - ``kind``
/// - ``Kind``
///
/// ### Counts
/// - ``bufferedCount``
/// - ``droppedCount``
public struct SubscriberSnapshot: Hashable, Identifiable, Sendable {
  /// The kinds of subscribers.
  public enum Kind: Hashable, Sendable {
    /// A stream or a subscription, which a loop reads.
    case stream
    /// A closure that was passed to `observe`, or a derived broadcaster.
    case handler
  }

  /// The place in subscription order; negative for a stream of which only the existence is known.
  public let id: Int
  /// The kind.
  public let kind: Kind
  /// The number of elements that wait for the subscriber; for a synchronous handler, for all of the same actor.
  ///
  /// `nil` for a stream that was registered before the first snapshot and has not waited for an element since.
  public let bufferedCount: Int?
  /// The number of elements that the buffering policy has dropped so far.
  ///
  /// `nil` for handlers, whose dropped elements are not counted, and where ``bufferedCount`` is `nil`.
  public let droppedCount: Int?

  static func stream(_ id: Int, _ buffered: Int, dropped: Int) -> SubscriberSnapshot {
    SubscriberSnapshot(id: id, kind: .stream, bufferedCount: buffered, droppedCount: dropped)
  }

  static func unknown(_ number: Int) -> SubscriberSnapshot {
    SubscriberSnapshot(id: -1 - number, kind: .stream, bufferedCount: nil, droppedCount: nil)
  }
}

extension Broadcaster {
  /// Returns the subscribers with the elements that wait for them, for example for a page of diagnostics.
  ///
  /// Handlers whose owner was released are removed first. A finished broadcaster has no subscribers.
  ///
  /// The first call begins a list of the streams. A stream that was registered before is known as soon as it waits for an
  /// element; until then, its counts are `nil`. Without a call, subscribing costs no more. The lock of the broadcaster is
  /// held for a time proportional to the number of subscribers, up to the limit.
  ///
  /// ```swift
  /// let messenger = Messenger<String>()
  /// let messages = messenger.subscribe()
  /// messenger.send("hello")
  /// for subscriber in messenger.subscriberSnapshots() {
  ///   print(subscriber.kind)  // Prints "stream"
  /// }
  /// _ = messages
  /// ```
  ///
  /// - Parameter limit: The maximum number of subscribers.
  /// - Returns: The subscribers in subscription order; none for a broadcaster of another module. Subscribers to the changes
  ///   of a store are not among them.
  public nonisolated func subscriberSnapshots(limit: Int = 1_000) -> [SubscriberSnapshot] {
    (self as? any HubBacked)?.snapshots(limit: limit) ?? []
  }

  /// The number of elements that were sent while there were subscribers; `nil` for a broadcaster of another module.
  ///
  /// Two readings and the time between them give the elements a second.
  public nonisolated var sentCount: Int? {
    (self as? any HubBacked)?.sequence
  }
}

extension HubBacked {
  fileprivate nonisolated func snapshots(limit: Int) -> [SubscriberSnapshot] {
    presentHub?.snapshots(limit: limit) ?? []
  }

  fileprivate nonisolated var sequence: Int {
    presentHub?.state.withLock { $0.sequence } ?? 0
  }
}
