/// A source of messages with any number of senders and subscribers.
///
/// A message is delivered to all current subscribers, and is not replayed to later ones. You can send from any thread
/// or actor: sending is synchronous, without a hop.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscribe()
/// messenger.send("hello")
/// for await greeting in greetings {
///   print(greeting)  // Prints "hello"
///   break
/// }
/// ```
///
/// ## Order
///
/// All subscribers receive messages in the same order, which preserves the program order of each sending thread. A
/// message that is sent while another one is being handled follows it, for all subscribers.
///
/// ## Slow subscribers
///
/// By default, all messages that a subscriber has not read are buffered. Use `.bufferingNewest` or `.bufferingOldest`
/// to limit the buffer.
///
/// ## Ending
///
/// When you call ``finish()`` or release the last reference to the messenger, every stream ends after the messages that
/// were sent before. Streams, handlers and tokens do not keep the messenger alive.
///
/// ## Topics
///
/// ### Creating a messenger
/// - ``init()``
///
/// ### Sending
/// - ``send(_:from:)``
/// - ``send(from:)``
/// - ``follow(_:)``
/// - ``finish()``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Ignoring an author
/// - ``subscribe(ignoring:bufferingPolicy:)``
/// - ``subscription(ignoring:bufferingPolicy:)``
///
/// ### Counting subscribers
/// - ``subscriberCount``
/// - ``subscriberCounts(bufferingPolicy:)``
/// - ``waitForSubscriber()``
public final actor Messenger<Message: Sendable>: Broadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = Message

  @usableFromInline let hub = BroadcastHub<Message>()

  /// Creates a messenger without subscribers.
  @inlinable
  public init() {}

  deinit {
    hub.finish()
  }

  /// Sends a message to all current subscribers.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - author: The sender, which subscribers can ignore.
  @inlinable
  public nonisolated func send(_ message: Message, from author: Author? = nil) {
    hub.send(message, from: author?.rawValue ?? 0)
  }

  /// Registers a subscriber, which receives the messages that are sent from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> AsyncStream<Message> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber that ignores the messages of an author.
  ///
  /// - Parameters:
  ///   - author: The author. Its messages do not count towards the limit of the buffering policy.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    ignoring author: Author,
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> AsyncStream<Message> {
    AsyncStream(subscription(ignoring: author, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the messages that are sent from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  @inlinable
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Message> = .unbounded
  ) -> Subscription<Message> {
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    hub.announceCount()
    return subscription
  }

  /// Registers a subscriber that ignores the messages of an author.
  ///
  /// - Parameters:
  ///   - author: The author. Its messages do not count towards the limit of the buffering policy.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
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

  /// Ends every stream after the messages sent so far.
  ///
  /// Later messages are ignored, later streams end immediately, and the subscriber count is 0.
  public nonisolated func finish() {
    hub.finish()
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension Messenger: HubOwner {}

extension Messenger where Message == Void {
  /// Notifies all subscribers.
  ///
  /// ```swift
  /// let ticks = Messenger<Void>()
  /// let token = ticks.observe { print("tick") }
  /// ticks.send()  // Prints "tick"
  /// ```
  ///
  /// - Parameter author: The sender, which subscribers can ignore.
  @inlinable
  public nonisolated func send(from author: Author? = nil) {
    send((), from: author)
  }
}
