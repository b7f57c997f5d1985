/// A source of messages with any number of senders and observers.
///
/// A message reaches everybody who is subscribed when it is sent; nothing is replayed to those who
/// come later. Sending is synchronous and takes no hop, from whatever thread or actor.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscribe()
/// messenger.send("hello")
/// for await greeting in greetings {
///   print(greeting)
///   break
/// }
/// ```
///
/// ## Order
///
/// All subscribers see the same order, and what one thread sends stays in program order. A message
/// that is sent while another one is being handled comes after it, for everybody.
///
/// ## Slow subscribers
///
/// By default nothing is lost: what a subscriber has not read yet is kept for it. Give
/// `.bufferingNewest` or `.bufferingOldest` to bound that.
///
/// ## Ending
///
/// ``finish()``, or the release of the last reference to the messenger, ends every stream after
/// what was sent before. Streams, handlers and tokens never keep the messenger alive.
public final actor Messenger<Message: Sendable>: Broadcaster {
  /// What subscribers receive.
  public typealias Element = Message

  @usableFromInline let hub = BroadcastHub<Message>()

  /// Creates a messenger without subscribers.
  @inlinable
  public init() {}

  deinit {
    hub.finish()
  }

  /// Sends a message to everybody who is subscribed.
  ///
  /// - Parameters:
  ///   - message: What to send.
  ///   - author: Who sends it; subscribers may ignore one author.
  @inlinable
  public nonisolated func send(_ message: Message, from author: Author? = nil) {
    hub.send(message, from: author?.rawValue ?? 0)
  }

  /// Registers a subscriber and returns the messages sent from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> AsyncStream<Message> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber that does not hear one of the senders.
  ///
  /// - Parameters:
  ///   - author: Whose messages are left out. They take no room in the buffer.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    ignoring author: Author,
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> AsyncStream<Message> {
    AsyncStream(subscription(ignoring: author, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the messages sent from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  @inlinable
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> Subscription<Message> {
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    hub.announceCount()
    return subscription
  }

  /// Registers a subscriber that does not hear one of the senders.
  ///
  /// - Parameters:
  ///   - author: Whose messages are left out. They take no room in the buffer.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    ignoring author: Author,
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> Subscription<Message> {
    let subscription = hub.subscription(
      ignoring: author.rawValue,
      bufferingPolicy: bufferingPolicy
    )
    hub.announceCount()
    return subscription
  }

  /// Ends every stream after what has been sent.
  ///
  /// Later messages are ignored, and later streams end at once. The subscriber count is 0.
  public nonisolated func finish() {
    hub.finish()
  }

  /// The number of subscribers at this moment, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension Messenger: HubOwner {}

extension Messenger where Message == Void {
  /// Tells all subscribers that something has happened.
  ///
  /// ```swift
  /// let ticks = Messenger<Void>()
  /// let token = ticks.observe { print("tick") }
  /// ticks.send()
  /// ```
  ///
  /// - Parameter author: The sender; subscribers may ignore one author.
  @inlinable
  public nonisolated func send(from author: Author? = nil) {
    send((), from: author)
  }
}
