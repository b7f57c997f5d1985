public import Synchronization

/// A bus that delivers typed events to the subscribers of their types.
///
/// An event reaches the subscribers of exactly its type and scope. You can post from any thread or actor: posting is
/// synchronous, without a hop. Its cost does not depend on the number of subscribers of other types and scopes.
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
/// let outcome = await bus.postAndWait(LoggedIn(name: "Ada"))  // Prints "Hello, Ada"
/// print(outcome.handled)  // Prints "1"
/// token.cancel()
/// ```
///
/// ## Order
///
/// The events of each type and scope have one order, which is the same for all subscribers. Events posted
/// by one thread keep their program order. An event that is posted while another one is being handled comes
/// after it. There is no order between events of different types.
///
/// ## Slow handlers
///
/// Synchronous handlers that share an actor run one after another, event by event and in subscription order. An
/// asynchronous handler has its own task, receives events in order, and its calls never overlap. Such tasks can start
/// in any order, even on the same actor. While a handler is suspended, it does not delay events of other types or
/// scopes. It delays other subscribers to its own type and scope only if the event is persistent.
///
/// ## Handlers
///
/// `observe` registers a closure, which is called for each event on the actor that it is isolated to. The
/// overloads differ in the lifetime of the handler; each exists for synchronous and asynchronous closures:
///
/// | Call | The handler lives |
/// |---|---|
/// | `observe(E.self) { event in ... }` | until the returned token is released |
/// | `observe(as: owner, E.self) { owner, event in ... }` | until the owner, which is held weakly, is released |
/// | `observe(id: id, E.self) { event in ... }` | until it is removed by the id |
///
/// All overloads take a scope and a buffering policy, which does not apply to persistent events.
///
/// The closure returns nothing or, for persistent events, a ``HandlerResult``. Returning nothing counts as success,
/// throwing as failure. The result determines whether a persistent event is delivered to further subscribers and
/// whether it is retained: see <doc:events>.
///
/// Removing a handler during a call ends the delivery of a persistent event as failed: the next subscriber receives the
/// event, even if the removed handler succeeds later. If the handler is asynchronous, its task is cancelled.
///
/// ## Persistent events
///
/// An event can be retained for later subscribers. It is then delivered to one subscriber at a time, in
/// subscription order, and each delivery waits for the result of the previous one. Events that are posted meanwhile
/// with the same type and scope are queued. A handler that hangs blocks the queue until it is removed. See
/// <doc:events>.
///
/// ## Lifetimes
///
/// A stream ends when it is dropped or the task that iterates it is cancelled. A handler is removed with its token or
/// owner, or by its id. When the bus is released, streams end after their buffered events, handlers are released after
/// the events that were posted before, and retained events are discarded. Streams, handlers and tokens do not keep the
/// bus alive.
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
/// ### Calling closures until a token is released
/// - ``observe(_:scope:bufferingPolicy:_:)-35idy``
/// - ``observe(_:scope:bufferingPolicy:_:)-60ml2``
/// - ``_Concurrency/Actor/observe(_:scope:bufferingPolicy:_:)-90rlb``
/// - ``_Concurrency/Actor/observe(_:scope:bufferingPolicy:_:)-6uj3r``
///
/// ### Calling closures until an owner is released
/// - ``observe(as:_:scope:bufferingPolicy:_:)-8bstl``
/// - ``observe(as:_:scope:bufferingPolicy:_:)-2641g``
/// - ``_Concurrency/Actor/observe(as:_:scope:bufferingPolicy:_:)-4is0v``
/// - ``_Concurrency/Actor/observe(as:_:scope:bufferingPolicy:_:)-4xwkj``
///
/// ### Calling closures until they are removed by an id
/// - ``observe(id:_:scope:replacing:bufferingPolicy:_:)-473o8``
/// - ``observe(id:_:scope:replacing:bufferingPolicy:_:)-9rd1j``
/// - ``_Concurrency/Actor/observe(id:_:scope:replacing:bufferingPolicy:_:)-7oxa9``
/// - ``_Concurrency/Actor/observe(id:_:scope:replacing:bufferingPolicy:_:)-6kbfm``
/// - ``removeObserver(id:)``
/// - ``removeObserver(id:of:scope:)``
///
/// ### Reading events
/// - ``subscribe(to:scope:bufferingPolicy:)``
/// - ``subscription(to:scope:bufferingPolicy:)``
/// - ``subscriberCount(for:scope:)``
///
/// ### Managing retained events
/// - ``pendingEvents(of:scope:)``
/// - ``removePendingEvents(of:scope:)``
///
/// ### Monitoring
/// - ``posts(bufferingPolicy:)``
/// - ``snapshot(pendingLimit:)``
/// - ``ChannelSnapshot``
///
/// ### Connecting processes
/// - ``connect(_:as:version:scope:over:_:)``
/// - ``publish(_:scope:)``
public final actor EventBus {
  /// The bus for the events of the whole program.
  ///
  /// Prefer passing a bus to components, so that tests can use a separate one.
  public static let shared = EventBus()

  @usableFromInline nonisolated let core: Core

  /// Creates a bus without subscribers.
  ///
  /// - Parameter clock: The clock that measures the age of retained events. It also limits the time for which a
  ///   persistent event waits for a handler that has removed itself.
  public init(clock: any Clock<Duration> = ContinuousClock()) {
    core = Core(clock: clock)
  }

  deinit {
    core.finish()
  }

  // MARK: - Posting

  /// Posts an event to the subscribers of its type and scope.
  ///
  /// When this method returns, the event has its place in the order: it is in the buffers of streams and in the
  /// queues of handlers, or queued behind a persistent event that is still being delivered.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - scope: The scope, or `nil` for subscribers without a scope.
  @inlinable
  public nonisolated func post<E: Event>(_ event: E, scope: EventScope? = nil) {
    let type = ObjectIdentifier(E.self)
    let persistence = event.persistence
    // An event that is not retained needs no new channel.
    if persistence.rule == nil, !core.isLogged.load(ordering: .relaxed) {
      let known =
        switch scope {
        case nil: core.channel(of: type)
        case _?: core.channel(of: type, in: scope)
        }
      guard let known else { return }
      let box = Box(event)
      if !known.hub.sendUnlessHeld(box) { core.post(box, of: E.self, persistence, in: scope) }
    } else {
      core.post(Box(event), of: E.self, persistence, in: scope)
    }
  }

  /// Posts an event and waits until all its handlers have finished.
  ///
  /// The event is posted before this method suspends, so the order of the caller's posts is preserved. The method does
  /// not wait for a handler that is removed before its turn. The handlers run at the caller's priority or higher.
  ///
  /// If the caller's task is cancelled, the wait ends immediately and ``PostOutcome/isIncomplete`` is `true`: the
  /// counts include the handlers that have finished by then. The handlers continue.
  ///
  /// Inside a handler, waiting can cause a deadlock. If the event is queued behind the one that is being handled,
  /// directly or because handlers of several types wait for each other, the call returns immediately and
  /// ``PostOutcome/isDeferred`` is `true`. This is detected in the task of an asynchronous handler and in the tasks
  /// that it starts, except detached ones.
  ///
  /// The same applies inside a fetch of a multiplexer that a running handler waits for. If a handler of the event
  /// requests the value that is being fetched, that request throws ``MultiplexerError/recursiveRequest(chain:)``.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - scope: The scope, or `nil` for subscribers without a scope.
  /// - Returns: The number of subscribers reached, and whether the event is retained.
  @inlinable
  @discardableResult
  public nonisolated func postAndWait<E: Event>(
    _ event: E,
    scope: EventScope? = nil
  ) async -> PostOutcome {
    let persistence = event.persistence
    return await core.postAndWait(Box(event), of: E.self, persistence, in: scope)
  }

  // MARK: - Reading

  /// Subscribes to the retained events and to events that are posted from now on.
  ///
  /// A retained event counts as handled once it is in the buffer of the stream.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  ///   - bufferingPolicy: The policy for events that the subscriber has not read yet. An event that
  ///     `.bufferingOldest` drops does not count as handled.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  @inlinable
  public nonisolated func subscribe<E: Event>(
    to type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded
  ) -> AsyncStream<E> {
    AsyncStream(subscription(to: type, scope: scope, bufferingPolicy: bufferingPolicy))
  }

  /// Subscribes to the retained events and to events that are posted from now on.
  ///
  /// A retained event counts as handled once it is in the buffer of the subscription.
  ///
  /// A ``Broadcaster`` of yours can return the subscription from its own `subscription(bufferingPolicy:)`. A handler
  /// that is registered with `observe` on that broadcaster behaves as if it were registered with the bus: it is called
  /// in the order of the bus's handlers, and an event counts as handled successfully when the handler has returned.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  ///   - bufferingPolicy: The policy for events that the subscriber has not read yet. An event that
  ///     `.bufferingOldest` drops does not count as handled.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  @inlinable
  public nonisolated func subscription<E: Event>(
    to type: E.Type,
    scope: EventScope? = nil,
    bufferingPolicy: BufferingPolicy<E> = .unbounded
  ) -> Subscription<E> {
    core.withChannel(of: type, in: scope) { channel in
      channel.subscription(bufferingPolicy: bufferingPolicy)
    }
  }

  /// Returns the current number of subscribers, including handlers.
  ///
  /// Handlers whose owner was released are removed first.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for subscribers without a scope.
  /// - Returns: The number of subscribers.
  @inlinable
  public nonisolated func subscriberCount<E: Event>(
    for type: E.Type,
    scope: EventScope? = nil
  ) -> Int {
    core.channel(of: ObjectIdentifier(type), in: scope)?.subscriberCount ?? 0
  }

  // MARK: - Retained events

  /// Returns the events retained for later subscribers, in posting order.
  ///
  /// They include an event that is being delivered, until a success removes it.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
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

  /// Discards the retained events, regardless of their rules.
  ///
  /// Subscribers that were registered when an event was posted still receive it; later subscribers do not.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for events posted without a scope.
  public nonisolated func removePendingEvents<E: Event>(
    of type: E.Type,
    scope: EventScope? = nil
  ) {
    core.channel(of: ObjectIdentifier(type), in: scope)?.removePendingEvents()
  }

  // MARK: - Removing handlers

  /// Removes the handlers with an id from all types and scopes.
  ///
  /// None of them is called after this method returns. If one is suspended in a call, its task is cancelled.
  ///
  /// - Parameter id: The id with which the handlers were registered.
  public nonisolated func removeObserver(id: some Hashable & Sendable) {
    core.removeHandlers(id: AnyID(id), channel: nil)
  }

  /// Removes the handlers with an id from one type and scope.
  ///
  /// None of them is called after this method returns. If one is suspended in a call, its task is cancelled.
  ///
  /// - Parameters:
  ///   - id: The id with which the handlers were registered.
  ///   - type: The exact type of the events.
  ///   - scope: The exact scope, or `nil` for handlers without a scope.
  public nonisolated func removeObserver<E: Event>(
    id: some Hashable & Sendable,
    of type: E.Type,
    scope: EventScope? = nil
  ) {
    guard let channel = core.channel(of: ObjectIdentifier(type), in: scope) else { return }
    core.removeHandlers(id: AnyID(id), channel: channel.id)
  }
}
