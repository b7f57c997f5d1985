/// A place where events of any type are posted and observed, without either side knowing the other.
///
/// An event reaches the subscribers of exactly its type and scope. Posting is synchronous, takes no
/// hop and starts no task, from whatever thread or actor; how many subscribers there are of other
/// types and scopes does not matter.
///
/// ```swift
/// struct LoggedIn: Event {
///   let name: String
/// }
///
/// let bus = EventBus()
/// let token = bus.observe(LoggedIn.self) { event in
///   print("Hello, \(event.name)")
/// }
/// let outcome = await bus.postAndWait(LoggedIn(name: "Ada"))
/// print(outcome.handled)
/// token.cancel()
/// ```
///
/// ## Order
///
/// There is one order for each type and scope: all subscribers see it, and what one thread posts stays
/// in program order. An event that is posted while another one is being handled comes after it.
/// Nothing is said about the order of events of different types.
///
/// ## Slow handlers
///
/// Synchronous handlers that share an actor run one after another, in subscription order, event by
/// event. A handler that suspends sees every event in order and never overlaps itself. It delays no
/// events of other types or scopes and, as long as the events of its own type are not persistent, no
/// other subscriber.
///
/// ## Handlers
///
/// `observe` calls a closure for each event, on the actor that the closure belongs to. There are three ways to
/// register one, by lifetime, each for closures that suspend and for those that do not:
///
/// | Call | The handler lives |
/// |---|---|
/// | `observe(E.self) { event in ... }` | as long as the token that is returned |
/// | `observe(as: owner, E.self) { owner, event in ... }` | as long as the owner, which is held weakly |
/// | `observe(id: id, E.self) { event in ... }` | until it is removed by the id |
///
/// The closure returns nothing, or a ``HandlerResult`` if the events are persistent. All of them take a scope and a
/// buffering policy.
///
/// ## Persistent events
///
/// An event may be kept for those who come later. It is then offered to one subscriber after the
/// other, in subscription order, each waiting for the result of the one before; what is posted
/// meanwhile with the same type and scope waits. A handler that hangs holds them up until it is removed.
/// <doc:persistent-events> tells the rules.
///
/// ## Lifetimes
///
/// A stream lives until it is dropped or its task is cancelled; a handler as long as its token, its
/// owner (which is held weakly), or until it is removed by its id. Releasing the last reference to the
/// bus ends every stream after what is in its buffer, and releases the handlers after what has been
/// posted; kept events are gone then. Streams, handlers and tokens never keep the bus alive.
///
/// ## Topics
///
/// ### Getting a bus
/// - ``shared``
/// - ``init(clock:)``
///
/// ### Posting
/// - ``post(_:scope:)``
/// - ``postAndWait(_:scope:)``
///
/// ### Reading events
/// - ``subscribe(to:scope:bufferingPolicy:)``
/// - ``subscription(to:scope:bufferingPolicy:)``
/// - ``subscriberCount(for:scope:)``
///
/// ### Removing handlers
/// - ``removeObserver(id:)``
/// - ``removeObserver(id:of:scope:)``
///
/// ### Kept events
/// - ``pendingEvents(of:scope:)``
/// - ``removePendingEvents(of:scope:)``
public final actor EventBus {
  /// The bus for events of the whole program.
  ///
  /// Parts that can be handed a bus are easier to test with one of their own.
  public static let shared = EventBus()

  @usableFromInline nonisolated let core: EventBusCore

  /// Creates a bus without subscribers.
  ///
  /// - Parameter clock: What tells how old a kept event is.
  public init(clock: any Clock<Duration> = ContinuousClock()) {
    core = EventBusCore(clock: clock)
  }

  deinit {
    core.finish()
  }

  // MARK: - Posting

  /// Posts an event to the subscribers of its type and scope.
  ///
  /// When this returns the event has its place in the order: it is in the buffers of streams and in the
  /// queues of handlers, or behind a persistent event that is still being handled. If it is
  /// persistent, it is kept.
  ///
  /// - Parameters:
  ///   - event: What has happened.
  ///   - scope: Where; `nil` reaches those who have subscribed without a scope.
  @inlinable
  public nonisolated func post<E: Event>(_ event: E, scope: EventScope? = nil) {
    let type = ObjectIdentifier(E.self)
    let persistence = event.persistence
    // What is not kept needs no channel where there is none.
    if persistence.rule == nil {
      let known =
        if case .none = scope { core.channel(of: type) } else { core.channel(of: type, in: scope) }
      guard let known else { return }
      let box = Box(event)
      if !known.post(box) { core.post(box, of: type, persistence, in: scope) }
    } else {
      core.post(Box(event), of: type, persistence, in: scope)
    }
  }

  /// Posts an event and waits until every handler that gets it has ended.
  ///
  /// The event is posted before this suspends, in order with what the caller posts otherwise. A handler that is
  /// removed before its turn is not waited for. The handlers run with the caller's priority at least.
  ///
  /// Cancelling the caller's task ends the wait at once, and ``PostOutcome/isIncomplete`` is true: the counts are
  /// those of the handlers that had ended by then. The handlers run all the same.
  ///
  /// Inside a handler, the wait might be one for the handler itself: if the event stands behind the one
  /// that is being handled, directly or because handlers of several types wait for each other, the call
  /// returns at once and ``PostOutcome/isDeferred`` is true. That is known of the task of an
  /// asynchronous handler and of those that it starts, detached ones excepted.
  ///
  /// Inside a fetch of a multiplexer, the same holds if a handler that is running waits for the fetch. A handler of
  /// the event that requests what is being fetched gets ``MultiplexerError/recursiveRequest(chain:)``.
  ///
  /// - Parameters:
  ///   - event: What has happened.
  ///   - scope: Where; `nil` reaches those who have subscribed without a scope.
  /// - Returns: Whom the event has reached, and whether it is kept.
  @inlinable
  @discardableResult
  public nonisolated func postAndWait<E: Event>(
    _ event: E,
    scope: EventScope? = nil
  ) async -> PostOutcome {
    let persistence = event.persistence
    return await core.postAndWait(Box(event), of: ObjectIdentifier(E.self), persistence, in: scope)
  }

  // MARK: - Reading

  /// Registers a subscriber and returns the events posted from now on, after those that are kept.
  ///
  /// A kept event counts as handled once it is in the buffer of the stream.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind. An event for which there
  ///     is no room under `.bufferingOldest` does not count as handled.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  @inlinable
  public nonisolated func subscribe<E: Event>(
    to type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded
  ) -> AsyncStream<E> {
    AsyncStream(subscription(to: type, scope: scope, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the events posted from now on, after those that are kept.
  ///
  /// A kept event counts as handled once it is in the buffer of the subscription.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind. An event for which there
  ///     is no room under `.bufferingOldest` does not count as handled.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  @inlinable
  public nonisolated func subscription<E: Event>(
    to type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded
  ) -> Subscription<E> {
    core.withChannel(of: ObjectIdentifier(type), in: scope) { channel in
      var subscription: Subscription<E>?
      let isInserted = channel.insert { id in
        let hub = BroadcastHub<E>(onEmpty: { [weak channel] in channel?.removeStream(id) })
        subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
        return EventChannel.Stream(id: id, hub: hub, mayRefuse: bufferingPolicy.mayRefuse)
      }
      return isInserted ? subscription : nil
    }
  }

  /// Returns the number of subscribers at this moment, streams and handlers alike.
  ///
  /// Handlers whose owner has gone are removed first.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` counts those who have subscribed without one.
  /// - Returns: Their number.
  @inlinable
  public nonisolated func subscriberCount<E: Event>(
    for type: E.Type,
    scope: EventScope? = nil
  ) -> Int {
    core.channel(of: ObjectIdentifier(type), in: scope)?.subscriberCount ?? 0
  }

  // MARK: - Kept events

  /// Returns the events that are kept for later subscribers, in posting order.
  ///
  /// An event that is being delivered is among them until a success removes it.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  /// - Returns: The events, oldest first.
  @inlinable
  public nonisolated func pendingEvents<E: Event>(
    of type: E.Type,
    scope: EventScope? = nil
  ) -> [E] {
    core.channel(of: ObjectIdentifier(type), in: scope)?.pendingEvents.map {
      Box<E>.element(of: $0)
    } ?? []
  }

  /// Keeps the events posted so far no longer, whatever their rule.
  ///
  /// Those who were subscribed when they were posted still get them; later subscribers do not.
  ///
  /// - Parameters:
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
  public nonisolated func removePendingEvents<E: Event>(
    of type: E.Type,
    scope: EventScope? = nil
  ) {
    core.channel(of: ObjectIdentifier(type), in: scope)?.removePendingEvents()
  }

  // MARK: - Removing handlers

  /// Removes the handlers with an id, of whatever type and scope.
  ///
  /// None of them is started after this has returned; one that is running and suspended has its task
  /// cancelled.
  ///
  /// - Parameter id: What the handlers were registered with.
  public nonisolated func removeObserver(id: some Hashable & Sendable) {
    core.removeHandlers(id: AnyID(id), channel: nil)
  }

  /// Removes the handlers with an id, of one type and scope.
  ///
  /// None of them is started after this has returned; one that is running and suspended has its task
  /// cancelled.
  ///
  /// - Parameters:
  ///   - id: What the handlers were registered with.
  ///   - type: The type of events, exactly.
  ///   - scope: The scope, exactly; `nil` is for handlers without one.
  public nonisolated func removeObserver<E: Event>(
    id: some Hashable & Sendable,
    of type: E.Type,
    scope: EventScope? = nil
  ) {
    guard let channel = core.channel(of: ObjectIdentifier(type), in: scope) else { return }
    core.removeHandlers(id: AnyID(id), channel: channel.id)
  }
}
