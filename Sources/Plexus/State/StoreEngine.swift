/// What carries out the actions of a store, apart from the store's life: effects use it without keeping
/// the store.
@usableFromInline
final class StoreEngine<State: Sendable, Action: Sendable>: Sendable {
  /// Something that has to be done about the selectors, between two actions.
  @usableFromInline
  typealias Job = @Sendable (inout SelectorTable<State>, State) -> Void

  @usableFromInline
  enum Item: Sendable {
    case action(Action, EffectScope?)
    case job(Job)
  }

  /// What belongs to whoever has the turn.
  @usableFromInline
  struct Machine {
    @usableFromInline var state: State
    @usableFromInline var middleware: [Middleware<State, Action>]
    @usableFromInline var reducer: Reducer<State, Action>
    @usableFromInline var selectors = SelectorTable<State>()

    @inlinable
    init(
      state: State,
      middleware: [Middleware<State, Action>],
      reducer: @escaping Reducer<State, Action>
    ) {
      self.state = state
      self.middleware = middleware
      self.reducer = reducer
    }
  }

  /// Returns the newest state.
  @usableFromInline let read: @Sendable () -> State
  /// Makes a state the newest one and tells the subscribers.
  @usableFromInline let publish: @Sendable (State) -> Void
  @usableFromInline let effects = EffectPool()
  @usableFromInline let turns: Turns<Item, Machine>

  // A client's module knows the types of the cell, and so of the closures that use it.
  @inlinable
  init(
    _ cell: some StateCell<State>,
    feeds: ChangeFeeds,
    middleware: [Middleware<State, Action>],
    reducer: @escaping Reducer<State, Action>
  ) {
    read = { cell.state }
    publish = { cell.publish($0) }
    let machine = Machine(state: cell.state, middleware: middleware, reducer: reducer)
    turns = Turns(machine) { machine in
      // A context that somebody keeps must not keep what belongs to the user.
      machine.middleware = []
      machine.reducer = { _, _ in }
      machine.selectors = SelectorTable()
      cell.finish()
      feeds.finish()
    }
  }

  /// Ends everything: effects are cancelled, and actions are ignored from now on.
  ///
  /// What has been dispatched before is carried out by whoever is at it. Then the streams end.
  func close() {
    turns.close()
    effects.close()
  }

  /// Carries out an action now, or after what is under way.
  ///
  /// - Parameters:
  ///   - action: The action.
  ///   - scope: What it is part of, which counts it already.
  @inlinable
  func dispatch(_ action: Action, in scope: EffectScope?) {
    if !turns.take(.action(action, scope), perform) { scope?.leave() }
  }

  /// Carries out an action and waits until it, its effects, and what these dispatch are over.
  @usableFromInline
  func dispatchAndWait(_ action: Action) async {
    let scope = EffectScope()
    dispatch(action, in: scope)
    await scope.wait()
  }

  /// Does something about the selectors between two actions.
  ///
  /// Whoever follows changes, or ceases to, is not kept by others who dispatch without a pause: what they
  /// leave is handed over after a while.
  @inlinable
  func run(_ job: @escaping Job) {
    _ = turns.take(.job(job), atMost: 64, handOver: handOver, perform)
  }

  /// Sees to it that what was handed over is done, even if nobody comes any more.
  @usableFromInline
  func handOver() {
    Task.detached(priority: Task.currentPriority) { [self] in
      while turns.resume(atMost: 1_024, perform) { await Task.yield() }
    }
  }

  @inlinable
  func perform(_ item: Item, _ machine: inout Machine) {
    switch item {
    case .action(let action, let scope):
      if machine.middleware.isEmpty {
        reduce(action, &machine)
      } else {
        pass(action, through: 0, Middleware.Context(engine: self, scope: scope), &machine)
      }
      scope?.leave()
    case .job(let job):
      job(&machine.selectors, machine.state)
    }
  }

  /// Hands an action to the middleware from an index on, and then to the reducer.
  @inlinable
  func pass(
    _ action: Action,
    through index: Int,
    _ context: Middleware<State, Action>.Context,
    _ machine: inout Machine
  ) {
    guard index < machine.middleware.count else { return reduce(action, &machine) }
    let middleware = machine.middleware[index]
    middleware.body(action, context) { pass($0, through: index + 1, context, &machine) }
  }

  @inlinable
  func reduce(_ action: Action, _ machine: inout Machine) {
    let reducer = machine.reducer
    reducer(&machine.state, action)
    publish(machine.state)
    machine.selectors.evaluate(machine.state)
  }
}

@available(*, unavailable)
extension StoreEngine.Machine: Sendable {}
