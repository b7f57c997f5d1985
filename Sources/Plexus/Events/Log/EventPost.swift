/// A post of an event, as recorded by ``EventBus/posts(bufferingPolicy:)``.
///
/// ## Topics
///
/// ### The event
/// - ``event``
/// - ``typeName``
/// - ``scope``
///
/// ### The post
/// - ``time``
/// - ``number``
/// - ``subscriberCount``
/// - ``isRetained``
/// - ``outcome``
public struct EventPost: Sendable {
  private let record: PostRecord

  init(_ record: PostRecord) {
    self.record = record
  }

  /// The event.
  public var event: any Event { EventBus.Core.event(in: record.box, of: record.type) }
  /// The scope, or `nil` for an event posted without a scope.
  public var scope: EventScope? { record.scope?.element }
  /// The time of the post by the wall clock, since 1970-01-01T00:00Z.
  public var time: Duration { record.time }
  /// The number of the post since the log has had readers, beginning with 1: a gap shows how many the buffering policy has
  /// dropped.
  public var number: Int { record.logNumber }
  /// The number of subscribers of the type and scope at the time of the post, including streams.
  public var subscriberCount: Int { record.subscriberCount }
  /// Whether the event was retained for later subscribers when the post returned.
  public var isRetained: Bool { record.isRetained }

  /// The name of the type of the event.
  public var typeName: String { "\(type(of: event))" }

  /// The outcome, once all handlers have finished; `nil` until then.
  ///
  /// It can be read again later: the record of a post that is in progress shows how it has ended. After a cancelled
  /// ``EventBus/postAndWait(_:scope:)``, the outcome is the incomplete one that its caller got.
  public var outcome: PostOutcome? { record.result }
}

extension EventBus {
  /// Returns a stream of the posts from now on, for example for a log or a page of diagnostics.
  ///
  /// Every post is recorded when it is made, with or without subscribers, and also if it is queued behind another one. The
  /// posts of each type and scope have the order in which they are delivered, and those of one thread their program
  /// order. Reading the records counts as no subscription, and never delays an event. A record keeps its event alive.
  ///
  /// While there is no reader, a post costs no more than a look whether there is one. With a reader, every post takes the
  /// lock of its type and scope, as a post that is waited for does.
  ///
  /// ```swift
  /// struct LoggedIn: Event {
  ///   let name: String
  /// }
  ///
  /// let bus = EventBus()
  /// let posts = bus.posts()
  /// bus.post(LoggedIn(name: "Ada"))
  /// for await post in posts {
  ///   print(post.typeName, post.subscriberCount)  // Prints "LoggedIn 0"
  ///   break
  /// }
  /// ```
  ///
  /// - Parameter bufferingPolicy: The policy for posts that the reader has not read yet: by default, a slow reader misses
  ///   the oldest ones.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the bus is
  ///   released.
  public nonisolated func posts(
    bufferingPolicy: BufferingPolicy<EventPost> = .bufferingNewest(1_000)
  ) -> AsyncStream<EventPost> {
    core.posts(bufferingPolicy: bufferingPolicy)
  }
}
