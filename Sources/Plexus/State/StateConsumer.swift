/// Parts of a state, and what to do when they change.
///
/// A consumer is fed with states, from wherever they come, and calls a closure for each selected value
/// that has changed, with the exact old and the new value.
///
/// ```swift
/// struct Profile: Sendable { var name = ""; var unread = 0 }
/// let consumer = StateConsumer<Profile>()
/// consumer.add(\.name) { old, new in print("hello", new) }
/// consumer.add({ $0.unread > 0 }) { _, isMarked in print(isMarked ? "*" : "") }
/// consumer.consume(Profile(name: "Ada", unread: 3))
/// ```
///
/// With ``follow(_:)`` it is fed by a ``Store``, a ``PageStore`` or any other broadcaster.
///
/// ## When closures are called
///
/// The first state of all is a change from nothing: closures that were added before it are called with
/// `nil` as the old value. A closure that is added later is called at the next change of its value,
/// unless it was added with `firesImmediately`. An initial state counts as a state that was there.
///
/// Every change is told, in the order of the states; nothing is coalesced. Closures without `await` that
/// belong to one actor are called one after another on it, state by state, in the order in which they
/// were added. One that suspends has a task of its own and holds up nobody else.
///
/// A selector is called once for each state, on the thread that feeds, outside every lock. A state that
/// arrives while another one is looked at, from a selector or another thread, follows it. A thread looks at the
/// states of others for about a millisecond; the rest is left to the next call or to a task.
///
/// ## Removal
///
/// A closure lives as long as the consumer, or as the bag that was given if that is emptied or released
/// earlier. Once the bag is cancelled, ``removeAll()`` has returned or the consumer is released, none is
/// started: that is exact on the closure's own actor and inside it. A closure that is suspended has its
/// task cancelled.
///
/// ## Topics
///
/// ### Creating a consumer
/// - ``init(initialState:)``
///
/// ### Adding closures
/// - ``add(_:firesImmediately:in:_:)-dihh``
/// - ``add(_:firesImmediately:in:_:)-6ny9u``
/// - ``removeAll()``
///
/// ### Feeding
/// - ``consume(_:)``
/// - ``follow(_:)``
public final actor StateConsumer<State: Sendable> {
  private let core: ConsumerCore<State>

  /// Creates a consumer without closures.
  ///
  /// - Parameter initialState: The state that closures have seen; `nil` if the first one that is fed
  ///   is to be told as a change from nothing.
  public init(initialState: State? = nil) {
    core = ConsumerCore(initialState)
  }

  deinit {
    core.close()
  }

  /// Adds a closure that is called when a selected value changes, on the actor that it belongs to.
  ///
  /// - Parameters:
  ///   - select: What to look at.
  ///   - firesImmediately: Whether to call the closure with the present value, and `nil` as the old one,
  ///     even if a state is there already. Without a state it waits for the first.
  ///   - bag: What the closure ends with, if not with the consumer. It counts the closure.
  ///   - onChange: What to call, with the value before and after. It is released on removal.
  public nonisolated func add<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (State) -> V,
    firesImmediately: Bool = false,
    in bag: ObservationBag? = nil,
    @_inheritActorContext _ onChange:
      @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) -> Void
  ) {
    core.add(
      ConsumerEntry(select, firesImmediately: firesImmediately, call: .queue(core, onChange)),
      in: bag
    )
  }

  /// Adds an asynchronous closure that is called when a selected value changes, on the actor that it
  /// belongs to.
  ///
  /// It has a task of its own, sees every change in order, and never overlaps itself.
  ///
  /// - Parameters:
  ///   - select: What to look at.
  ///   - firesImmediately: Whether to call the closure with the present value, and `nil` as the old one,
  ///     even if a state is there already. Without a state it waits for the first.
  ///   - bag: What the closure ends with, if not with the consumer. It counts the closure.
  ///   - onChange: What to call, with the value before and after. On removal the task is cancelled,
  ///     and the closure released when it has returned.
  public nonisolated func add<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (State) -> V,
    firesImmediately: Bool = false,
    in bag: ObservationBag? = nil,
    @_inheritActorContext _ onChange:
      @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) async -> Void
  ) {
    core.add(
      ConsumerEntry(select, firesImmediately: firesImmediately, call: .task(onChange)),
      in: bag
    )
  }

  /// Looks at a state and calls the closures whose value has changed.
  ///
  /// The calls are under way when this returns, each on its actor.
  ///
  /// - Parameter new: The newest state.
  public nonisolated func consume(_ new: State) {
    core.consume(new)
  }

  /// Consumes every element of a broadcaster: the states of a store, from the present one on.
  ///
  /// The present state has been looked at when this returns, unless another one is being looked at: a
  /// closure that is added afterwards is late. What follows is looked at in a task, off every actor.
  /// Nothing that comes from what was followed before is looked at any more.
  ///
  /// It goes on until the broadcaster ends, the consumer is released, or another one is followed. The
  /// broadcaster is not kept alive. A ``PageStore`` is followed by a consumer of both states:
  /// `StateConsumer<(app: App, page: Page)>`.
  ///
  /// - Parameter source: What to follow, in place of what was followed before.
  public nonisolated func follow(_ source: some Broadcaster<State>) {
    core.follow(source)
  }

  /// Removes all closures, those in bags included.
  public nonisolated func removeAll() {
    core.removeAll()
  }
}
