/// What stands between the dispatch of an action and the reducer.
///
/// Middleware is called in the order of the array given to the store, each wrapped around those that
/// follow. It hands an action on by calling `next`, which returns when the reducer and all that lies
/// between have done their work. So it may drop an action (by not calling `next`), replace it, hand on
/// several, or leave it to an effect to dispatch it later.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// let logger = Middleware<Counter, Int> { action, context, next in
///   let before = context.state.count
///   next(action)
///   print("\(action): \(before) -> \(context.state.count)")
/// }
/// let store = Store(Counter(), middleware: [logger]) { state, action in state.count += action }
/// store.dispatch(3)
/// ```
///
/// Middleware runs on the thread that dispatches, one action at a time, outside every lock.
///
/// ## Effects
///
/// ``Context/run(_:)`` starts asynchronous work, which tells its result by ``Context/dispatch(_:)``. It
/// is cancelled when the store is released.
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
  /// - Parameter body: What to do with each action: `next` hands on an action, this one or another, and
  ///   returns when it has been reduced.
  @inlinable
  public init(
    _ body:
      @escaping @Sendable (_ action: Action, _ context: Context, _ next: (Action) -> Void) -> Void
  ) {
    self.body = body
  }

  /// The store as middleware and its effects see it.
  ///
  /// A context may be kept, by effects or anything else: it does not keep the store. Once the store
  /// has gone, its last state can still be read, and nothing else happens.
  public struct Context: Sendable {
    @usableFromInline let engine: StoreEngine<State, Action>
    @usableFromInline let scope: EffectScope?

    @inlinable
    init(engine: StoreEngine<State, Action>, scope: EffectScope?) {
      self.engine = engine
      self.scope = scope
    }

    /// The newest state: before `next` the one before the action, afterwards the one after it.
    @inlinable public var state: State {
      engine.read()
    }

    /// Dispatches an action, which passes the whole middleware from the beginning.
    ///
    /// While an action is under way, as in the body of middleware, this one follows it; from an effect
    /// it is usually reduced when this returns. ``Store/dispatchAndWait(_:)`` waits for it as for a
    /// part of the action that this context belongs to.
    ///
    /// - Parameter action: The action. It is ignored when the store has gone.
    @inlinable
    public func dispatch(_ action: Action) {
      scope?.enter()
      engine.dispatch(action, in: scope)
    }

    /// Starts an effect: asynchronous work that an action causes.
    ///
    /// It runs in a task of its own, off every actor, apart from the task that dispatched the action:
    /// neither that task's cancellation nor its task-local values reach it. It is cancelled when the
    /// store is released, and not even started after that.
    ///
    /// - Parameter effect: The work. It may use the context, which does not keep the store.
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
    /// Otherwise the rules are those of ``run(_:)``. Ids belong to the store: effects of other stores with the
    /// same id go on. A cancelled effect can still dispatch unless it looks at `Task.isCancelled`.
    ///
    /// - Parameters:
    ///   - id: The id. Values of different types are different ids.
    ///   - cancelsInFlight: Whether the effects with this id that were started before are cancelled. Otherwise
    ///     they go on beside this one.
    ///   - priority: The priority of the effect; `nil` is that of the caller.
    ///   - effect: The work.
    public func run(
      id: some Hashable & Sendable,
      cancelsInFlight: Bool = true,
      priority: TaskPriority? = nil,
      _ effect: @escaping @concurrent @Sendable () async -> Void
    ) {
      engine.effects.run(
        id: AnyID(id),
        cancelsInFlight: cancelsInFlight,
        in: scope,
        priority: priority,
        effect
      )
    }

    /// Cancels all effects of the store with an id.
    ///
    /// - Parameter id: The id that was given to ``run(id:cancelsInFlight:priority:_:)``.
    public func cancel(id: some Hashable & Sendable) {
      engine.effects.cancel(id: AnyID(id))
    }
  }
}
