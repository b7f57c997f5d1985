/// A set of closures that are called when parts of a state change.
///
/// A consumer receives states from any source. It calls a closure for each selected value that has changed, with the
/// exact old and new value.
///
/// ```swift
/// struct Profile: Sendable { var name = ""; var unread = 0 }
/// let consumer = StateConsumer<Profile>()
/// consumer.add(\.name) { old, new in print("hello", new) }
/// consumer.add({ $0.unread > 0 }) { _, isMarked in print(isMarked ? "*" : "") }
/// consumer.consume(Profile(name: "Ada", unread: 3))
/// // Prints "hello Ada"
/// // Prints "*"
/// ```
///
/// With ``follow(_:)``, it receives the states of a ``Store``, a ``PageStore`` or any other broadcaster.
///
/// ## Calling closures
///
/// The first state is a change from nothing: closures that were added before it are called with `nil` as the old value.
/// A closure that is added later is called at the next change of its value, unless it was added with
/// `firesImmediately`. An initial state counts as an earlier state.
///
/// Every change is reported, in the order of the states, without coalescing. Synchronous closures of one actor are
/// called one after another on it, state by state, in the order in which they were added. An asynchronous closure has
/// its own task and does not delay the others.
///
/// A selector is called once per state, on the thread that calls ``consume(_:)``, with no lock held. A state that
/// arrives while another one is evaluated, from a selector or another thread, is queued behind it. A thread evaluates
/// the states of other threads for about a millisecond; the rest is left to the next call or to a task.
///
/// ## Removing closures
///
/// A closure lives as long as the consumer, or as its bag if that is emptied or released earlier. No closure is started
/// after its bag was cancelled, after ``removeAll()`` has returned or after the release of the consumer. This is exact
/// on the closure's own actor and inside it. If a closure is suspended, its task is cancelled.
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
/// ### Consuming states
/// - ``consume(_:)``
/// - ``follow(_:)``
public final actor StateConsumer<State: Sendable> {
  private let core: ConsumerCore<State>

  /// Creates a consumer without closures.
  ///
  /// - Parameter initialState: The state that closures have already seen; `nil` if the first consumed state is a change
  ///   from nothing.
  public init(initialState: State? = nil) {
    core = ConsumerCore(initialState)
  }

  deinit {
    core.close()
  }

  /// Adds a closure that is called on its actor when a selected value changes.
  ///
  /// - Parameters:
  ///   - select: Selects the value.
  ///   - firesImmediately: Whether to call the closure with the current value, and `nil` as the old one. Without a
  ///     state, it is called with the first.
  ///   - bag: A bag that ends the closure before the consumer does. It counts the closure.
  ///   - onChange: The closure, which receives the old and the new value. It is released on removal.
  public nonisolated func add<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (State) -> V,
    firesImmediately: Bool = false,
    in bag: ObservationBag? = nil,
    @_inheritActorContext _ onChange:
      @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) -> Void
  ) {
    core.add(
      select,
      firesImmediately: firesImmediately,
      in: bag,
      Handler.Recipe(ofChanges: onChange)
    )
  }

  /// Adds an asynchronous closure that is called on its actor when a selected value changes.
  ///
  /// It has its own task, receives every change in order, and never overlaps itself.
  ///
  /// - Parameters:
  ///   - select: Selects the value.
  ///   - firesImmediately: Whether to call the closure with the current value, and `nil` as the old one. Without a
  ///     state, it is called with the first.
  ///   - bag: A bag that ends the closure before the consumer does. It counts the closure.
  ///   - onChange: The closure, which receives the old and the new value. On removal, its task is cancelled, and the
  ///     closure is released when it has returned.
  public nonisolated func add<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (State) -> V,
    firesImmediately: Bool = false,
    in bag: ObservationBag? = nil,
    @_inheritActorContext _ onChange:
      @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) async -> Void
  ) {
    core.add(
      select,
      firesImmediately: firesImmediately,
      in: bag,
      Handler.Recipe(ofChanges: onChange)
    )
  }

  /// Evaluates a state, and calls the closures whose value has changed.
  ///
  /// The calls have been scheduled on their actors when this method returns.
  ///
  /// - Parameter new: The new state.
  public nonisolated func consume(_ new: State) {
    core.consume(new)
  }

  /// Consumes every element of a broadcaster, from the current state on.
  ///
  /// The current state has been evaluated when this method returns, unless another one is being evaluated; a closure
  /// that is added afterwards is late. A task outside any actor evaluates the following states. Elements of a source
  /// that was followed before are dropped.
  ///
  /// Following ends when the broadcaster ends, the consumer is released, or another one is followed. The consumer does
  /// not keep the broadcaster alive. To follow a ``PageStore``, use a consumer of both states, `StateConsumer<(app:
  /// App, page: Page)>`.
  ///
  /// - Parameter source: The broadcaster, which replaces the previous one.
  public nonisolated func follow(_ source: some Broadcaster<State>) {
    core.follow(source)
  }

  /// Removes all closures, including the ones in bags.
  public nonisolated func removeAll() {
    core.removeAll()
  }
}
