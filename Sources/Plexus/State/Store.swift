/// A Redux-style store: a state that only actions change, with middleware and subscriptions.
///
/// An action passes through the middleware and the reducer, and the new state is published to the subscribers, before
/// the next action is processed. You can dispatch from any thread or actor: dispatching is synchronous, without a hop.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// enum Step: Sendable { case up, down }
///
/// let store = Store<Counter, Step>(Counter()) { state, action in
///   switch action {
///   case .up: state.count += 1
///   case .down: state.count -= 1
///   }
/// }
/// let counts = store.changes(of: \.count)
/// store.dispatch(.up)
/// for await change in counts {
///   print(change.old ?? 0, "->", change.new)
///   if change.new == 1 { break }
/// }
/// // Prints "0 -> 0"
/// // Prints "0 -> 1"
/// ```
///
/// ## Order
///
/// Actions have one order, which is the same for every subscriber. An action has been reduced when
/// ``dispatch(_:)`` returns, unless the store is busy. The store is busy while an action is being processed, by another
/// thread or further up the call stack (a reducer, middleware or a selector dispatches), and while another thread
/// begins or ends a subscription to changes. The action is then queued, and the thread that drains the queue processes
/// it in order. Actions are never nested, and no thread waits. A thread processes the actions of other threads for
/// about a millisecond, and leaves the rest to the next call or to a task.
///
/// ## States and changes
///
/// ``subscribe(bufferingPolicy:)`` delivers the current state, and then the state after every action that reached the
/// reducer, even if it is unchanged. By default, a slow stream skips to the newest state, and a
/// handler is called for every state.
/// ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)`` delivers only changes of a part of the state, each
/// with the exact previous value.
///
/// ## Effects
///
/// ``Middleware`` can start asynchronous work, which is cancelled when the store is released.
///
/// ## Release
///
/// Releasing the last reference to a store cancels its effects, and ends its streams after the elements that were sent
/// before the release. Queued actions are still processed, without effects. Streams, handlers, tokens and effects do
/// not keep a store alive; a ``PageStore`` and a caller that waits in ``dispatchAndWait(_:)`` do.
///
/// ## Topics
///
/// ### Creating a store
/// - ``init(_:middleware:reducer:)``
/// - ``page(_:middleware:reducer:)``
///
/// ### Dispatching
/// - ``dispatch(_:)``
/// - ``dispatchAndWait(_:)``
///
/// ### Reading
/// - ``state``
/// - ``current``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
///
/// ### Following changes
/// - ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``changes(of:bufferingPolicy:)-((State)->V,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-((State)->V,_)``
///
/// ### Monitoring
/// - ``actions(bufferingPolicy:)``
public final actor Store<State: Sendable, Action: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = State

  @usableFromInline let engine: StoreEngine<State, Action>
  @usableFromInline let subscribers: ChangeSubscriptions
  @usableFromInline let cell: StoreCell<State>

  /// Creates a store.
  ///
  /// - Parameters:
  ///   - initialState: The state before the first action.
  ///   - middleware: The middleware through which every action passes before the reducer, in this order.
  ///   - reducer: A function that applies an action to the state.
  @inlinable
  public init(
    _ initialState: State,
    middleware: [Middleware<State, Action>] = [],
    reducer: @escaping Reducer<State, Action>
  ) {
    let cell = StoreCell(initialState)
    self.cell = cell
    let subscribers = ChangeSubscriptions()
    self.subscribers = subscribers
    engine = StoreEngine(
      StoreEngine.Cell(
        read: { cell.state },
        publish: { cell.publish($0) },
        finish: { cell.finish() }
      ),
      subscribers: subscribers,
      middleware: middleware,
      reducer: reducer
    )
  }

  deinit {
    engine.close()
  }

  /// The newest state.
  @inlinable public nonisolated var state: State {
    cell.state
  }

  /// The newest state.
  @inlinable public nonisolated var current: State { state }

  /// Dispatches an action.
  ///
  /// When this method returns, the action has passed through the middleware and the reducer, and the new state has been
  /// published. If the store is busy, the action is queued instead: while another action is being processed, on this
  /// thread (a reducer, middleware or a selector dispatches) or on another one, and while another thread begins or ends
  /// a subscription to changes. A queued action is processed after earlier ones, by the thread that keeps the store
  /// busy, by a later call or by a task. Conversely, this call can process actions that other threads dispatch
  /// meanwhile, for about a millisecond.
  ///
  /// - Parameter action: The action to dispatch.
  @inlinable
  public nonisolated func dispatch(_ action: Action) {
    engine.dispatch(action, in: nil)
  }

  /// Dispatches an action and waits until its effects have ended.
  ///
  /// This method waits for the action itself, the effects started with its context, the actions dispatched with that
  /// context, and so on: when it returns, the last action that an effect dispatches has been reduced. If an effect
  /// never ends, it waits until the calling task is cancelled.
  ///
  /// If the calling task is cancelled, the method returns immediately; the action and its effects continue. A task that
  /// is already cancelled still dispatches the action.
  ///
  /// - Parameter action: The action to dispatch.
  public nonisolated func dispatchAndWait(_ action: Action) async {
    await engine.dispatchAndWait(action)
  }

  /// Registers a subscriber, which receives the current state and then the state after every action.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<State> = .bufferingNewest(1)
  ) -> AsyncStream<State> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the current state and then the state after every action.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  @inlinable
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<State> = .bufferingNewest(1)
  ) -> Subscription<State> {
    cell.withState {
      cell.hub.subscription(bufferingPolicy: bufferingPolicy, replaying: [$0])
    }
  }

  /// The current number of subscribers to states and to changes, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    cell.hub.subscriberCount + subscribers.count
  }
}

extension Store: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<State>, _ replay: [State]) -> Result
  ) -> Result {
    cell.withState { body(cell.hub, [$0]) }
  }
}

extension Store: PartEvaluating {
  nonisolated func connection<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (State) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> DerivedCore<Part>.Connection {
    let changes = engine.changes(
      of: select,
      path: path,
      countedBy: subscribers,
      bufferingPolicy: .unbounded
    )
    let origin = DerivedCore<Part>.Origin(replayLimit: 1, rounds: engine.rounds)
    return core.connection(to: changes, of: origin) { $0.new }
  }

  nonisolated func replay<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (State) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> Replay<Part>? {
    core.replay(of: { currentReplay() }, select)
  }
}
