/// A state that only actions change, and those who follow it.
///
/// A dispatched action passes the middleware, then the reducer, then it reaches whoever has subscribed:
/// completely, before the next one begins. Dispatching is synchronous, takes no hop and starts no
/// task, from whatever thread or actor.
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
/// ```
///
/// ## Order
///
/// There is one order of actions, which everybody sees. An action has been reduced when
/// ``dispatch(_:)`` returns, unless another one is under way: one dispatched from a reducer, from
/// middleware or from a selector, or while another thread dispatches, is carried out after those before
/// it by the thread that processes actions. Nothing is nested, however long the chain, and no thread waits.
/// The same holds while another thread begins or ends to follow changes, for the moment that this takes. A
/// thread processes the actions of others for about a millisecond; the rest is left to the next call or to a
/// task.
///
/// ## States and changes
///
/// ``subscribe(bufferingPolicy:)`` tells the state at once and after every action that reached the
/// reducer, whether it changed anything or not. ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// tells only of changes of a part of the state, with its exact previous value.
///
/// ## Effects
///
/// What takes time is started by ``Middleware`` and ends with the store.
///
/// ## Release
///
/// The last reference to a store cancels its effects, and ends its streams after what was sent before.
/// Actions that wait behind one that is under way are still carried out, without effects.
/// Streams, handlers, tokens and effects never keep it alive; a ``PageStore`` and a caller that waits
/// in ``dispatchAndWait(_:)`` do.
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
/// ### Following
/// - ``state``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``changes(of:bufferingPolicy:)-((State)->V,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-((State)->V,_)``
/// - ``subscriberCount``
public final actor Store<State: Sendable, Action: Sendable>: StatefulBroadcaster {
  /// What subscribers receive.
  public typealias Element = State

  @usableFromInline let engine: StoreEngine<State, Action>
  @usableFromInline let feeds: ChangeSubscriptions
  @usableFromInline let cell: AppCell<State>

  /// Creates a store.
  ///
  /// - Parameters:
  ///   - initialState: The state before the first action.
  ///   - middleware: What every action passes before it comes to the reducer, in this order.
  ///   - reducer: What an action does to the state.
  @inlinable
  public init(
    _ initialState: State,
    middleware: [Middleware<State, Action>] = [],
    reducer: @escaping Reducer<State, Action>
  ) {
    let cell = AppCell(initialState)
    self.cell = cell
    let feeds = ChangeSubscriptions()
    self.feeds = feeds
    engine = StoreEngine(cell, feeds: feeds, middleware: middleware, reducer: reducer)
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

  /// Carries out an action.
  ///
  /// It has passed middleware, reducer and subscribers' buffers when this returns, unless another action
  /// is under way, on this thread (a reducer, middleware or a selector dispatches) or on another one, or
  /// another thread begins or ends to follow changes in this moment. Then it follows those dispatched
  /// before it, and is carried out by that thread, by a later call or by a task. For the same reason this
  /// call can carry out actions that others dispatch meanwhile, for about a millisecond.
  ///
  /// - Parameter action: What is to happen.
  @inlinable
  public nonisolated func dispatch(_ action: Action) {
    engine.dispatch(action, in: nil)
  }

  /// Carries out an action and waits until its effects have ended.
  ///
  /// Waited for are the action itself, the effects started with its context, the actions dispatched with
  /// that context, and so on: what an effect dispatched last has been reduced when this returns. An
  /// effect that never ends is waited for until the calling task is cancelled.
  ///
  /// If the calling task is cancelled, this returns at once; the action and its effects go on. An action
  /// of a task that was cancelled before is dispatched all the same.
  ///
  /// - Parameter action: What is to happen.
  public nonisolated func dispatchAndWait(_ action: Action) async {
    await engine.dispatchAndWait(action)
  }

  /// Registers a subscriber and returns the state and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<State> = .bufferingNewest(1)
  ) -> AsyncStream<State> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the state and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  @inlinable
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<State> = .bufferingNewest(1)
  ) -> Subscription<State> {
    cell.withState {
      cell.hub.subscription(bufferingPolicy: bufferingPolicy, replaying: [$0])
    }
  }

  /// The number of subscribers at this moment: to states and to changes, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    cell.hub.subscriberCount + feeds.count
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
      countedBy: feeds,
      bufferingPolicy: .unbounded
    )
    return core.connection(to: changes, replayLimit: 1, rounds: engine.rounds) { $0.new }
  }
}
