/// A stage between the dispatch of an action and the reducer.
///
/// Middleware is called in the order of the array given to the store, each wrapped around the following ones. It passes
/// an action on by calling `next`, which returns when the following middleware and the reducer have processed it. It
/// can also drop an action, replace it, pass on several, or let an effect dispatch it later.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// let logger = Middleware<Counter, Int> { action, context, next in
///   let before = context.state.count
///   next(action)
///   print("\(action): \(before) -> \(context.state.count)")
/// }
/// let store = Store(Counter(), middleware: [logger]) { state, action in state.count += action }
/// store.dispatch(3)  // Prints "3: 0 -> 3"
/// ```
///
/// Middleware runs on the dispatching thread, one action at a time, with no lock held.
///
/// ## Effects
///
/// ``Context/run(_:)`` starts asynchronous work, which returns its result with ``Context/dispatch(_:)``. It is
/// cancelled when the store is released.
///
/// ```swift
/// enum Search: Sendable { case begin(String), found([String]) }
/// let searching = Middleware<[String], Search> { action, context, next in
///   next(action)
///   guard case .begin(let text) = action else { return }
///   context.run {
///     let names = [try? await backend.fetchProfile().name]
///     context.dispatch(.found(names.compactMap { $0 }.filter { $0.contains(text) }))
///   }
/// }
/// ```
///
/// ## Topics
///
/// ### Creating middleware
/// - ``init(_:)``
///
/// ### Working with the store
/// - ``Context``
public struct Middleware<State: Sendable, Action: Sendable>: Sendable {
  @usableFromInline
  let body: @Sendable (_ action: Action, _ context: Context, _ next: (Action) -> Void) -> Void

  /// Creates middleware.
  ///
  /// - Parameter body: Processes each action. Its parameter `next` passes on an action, this one or another, and
  ///   returns when that has been reduced.
  @inlinable
  public init(
    _ body:
      @escaping @Sendable (_ action: Action, _ context: Context, _ next: (Action) -> Void) -> Void
  ) {
    self.body = body
  }

  /// The store, as seen by middleware and its effects.
  ///
  /// A context does not keep the store alive. After the release of the store, its last state can be read, and all other
  /// calls have no effect.
  ///
  /// ## Topics
  ///
  /// ### Using the store
  /// - ``state``
  /// - ``dispatch(_:)``
  ///
  /// ### Running effects
  /// - ``run(_:)``
  /// - ``run(id:cancelsInFlight:priority:_:)``
  /// - ``cancel(id:)``
  public struct Context: Sendable {
    @usableFromInline let engine: StoreEngine<State, Action>
    @usableFromInline let scope: EffectPool.Dispatch?

    @inlinable
    init(engine: StoreEngine<State, Action>, scope: EffectPool.Dispatch?) {
      self.engine = engine
      self.scope = scope
    }

    /// The current state, which reflects the action once `next` has returned.
    @inlinable public var state: State {
      engine.cell.read()
    }

    /// Dispatches an action, which passes the whole middleware from the start.
    ///
    /// While another action is processed, as in the body of middleware, this one is queued behind it. From an effect,
    /// it is usually reduced when this method returns. ``Store/dispatchAndWait(_:)`` waits for it as part of the action
    /// of this context.
    ///
    /// - Parameter action: The action. It is ignored after the release of the store.
    @inlinable
    public func dispatch(_ action: Action) {
      scope?.enter()
      engine.dispatch(action, in: scope)
    }

    /// Starts an effect, which is asynchronous work caused by an action.
    ///
    /// It runs in its own task, outside any actor and separate from the dispatching task: neither the cancellation nor
    /// the task-local values of that task reach it. It is cancelled when the store is released, and not started after
    /// that.
    ///
    /// - Parameter effect: The effect. It can use the context, which does not keep the store alive.
    public func run(_ effect: @escaping @concurrent @Sendable () async -> Void) {
      engine.effects.run(in: scope, effect)
    }

    /// Starts an effect that can be cancelled by its id.
    ///
    /// ```swift
    /// enum Search: Sendable { case typed(String), found([String]) }
    /// let searching = Middleware<[String], Search> { action, context, next in
    ///   next(action)
    ///   guard case .typed(let text) = action else { return }
    ///   // The search for the former text is cancelled.
    ///   context.run(id: "search") {
    ///     guard let name = try? await backend.fetchProfile().name, !Task.isCancelled else { return }
    ///     context.dispatch(.found([name].filter { $0.contains(text) }))
    ///   }
    /// }
    /// ```
    ///
    /// Otherwise, the effect behaves like one of ``run(_:)``. Ids belong to the store: effects of other stores with the
    /// same id continue. A cancelled effect can still dispatch unless it checks `Task.isCancelled`.
    ///
    /// - Parameters:
    ///   - id: The id. Values of different types are different ids.
    ///   - cancelsInFlight: Whether earlier effects with this id are cancelled. Otherwise, they continue concurrently.
    ///   - priority: The priority of the effect; `nil` for that of the caller.
    ///   - effect: The effect.
    public func run(
      id: some Hashable & Sendable,
      cancelsInFlight: Bool = true,
      priority: TaskPriority? = nil,
      _ effect: @escaping @concurrent @Sendable () async -> Void
    ) {
      engine.effects.run(
        EffectPool.Name(id: AnyID(id), cancelsInFlight: cancelsInFlight),
        in: scope,
        priority: priority,
        effect
      )
    }

    /// Cancels all effects of the store with an id.
    ///
    /// - Parameter id: The id passed to ``run(id:cancelsInFlight:priority:_:)``.
    public func cancel(id: some Hashable & Sendable) {
      engine.effects.cancel(id: AnyID(id))
    }
  }
}
