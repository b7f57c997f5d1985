/// The implementation of a store, which effects use without keeping the store alive.
@usableFromInline
final class StoreEngine<State: Sendable, Action: Sendable>: Sendable {
  /// A change of the selectors, made between two actions.
  @usableFromInline
  typealias Job = @Sendable (inout SelectorTable<State>, State) -> Void

  @usableFromInline
  enum Item: Sendable {
    case action(Action, EffectPool.Dispatch?)
    case job(Job)
    /// Removes a subscriber to changes.
    case removal(ChangeSubscriptions.ID)
    /// Adds a reader of actions.
    case reader(BroadcastHub<ActionRecord<State, Action>>)
  }

  /// The data that only the draining thread accesses.
  @usableFromInline
  struct Machine {
    @usableFromInline var state: State
    @usableFromInline var middleware: [Middleware<State, Action>]
    @usableFromInline var reducer: Reducer<State, Action>
    @usableFromInline var selectors = SelectorTable<State>()
    /// The log of actions, while it has readers.
    @usableFromInline var log: ActionLog<State, Action>?

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

  /// The state, as the engine uses it.
  ///
  /// A client's module knows the types of the cell, and so of the closures that use it.
  @usableFromInline
  struct Cell: Sendable {
    /// Returns the current state.
    @usableFromInline let read: @Sendable () -> State
    /// Sets the current state and notifies the subscribers.
    @usableFromInline let publish: @Sendable (State) -> Void
    /// Ends the streams of states.
    @usableFromInline let finish: @Sendable () -> Void

    @inlinable
    init(
      read: @escaping @Sendable () -> State,
      publish: @escaping @Sendable (State) -> Void,
      finish: @escaping @Sendable () -> Void
    ) {
      self.read = read
      self.publish = publish
      self.finish = finish
    }
  }

  @usableFromInline let cell: Cell
  @usableFromInline let effects = EffectPool()
  @usableFromInline let rounds = SelectorRounds()
  @usableFromInline let queue: DrainQueue<Item, Machine>
  /// The hub of the synchronous handlers of changes.
  @usableFromInline let handlers = HubBase.ofHandlers()

  @inlinable
  init(
    _ cell: Cell,
    subscribers: ChangeSubscriptions,
    middleware: [Middleware<State, Action>],
    reducer: @escaping Reducer<State, Action>
  ) {
    self.cell = cell
    let machine = Machine(state: cell.read(), middleware: middleware, reducer: reducer)
    queue = DrainQueue(machine) { machine in
      // A retained context must not keep user objects alive.
      machine.middleware = []
      machine.reducer = { _, _ in }
      machine.selectors = SelectorTable()
      machine.log?.finish()
      cell.finish()
      subscribers.finish()
    }
    connect(subscribers)
  }

  /// Lets subscribers to changes use this engine until they end.
  @inlinable
  func connect(_ subscribers: ChangeSubscriptions) {
    subscribers.connect(handlers: handlers) {
      self.disconnect($0)
    } run: { body in
      self.run { _, _ in body() }
    }
  }

  /// Ends the store: effects are cancelled, and later actions are ignored.
  ///
  /// Actions that were dispatched before are processed by the draining thread. Then the streams end.
  func close() {
    queue.close()
    effects.close()
  }

  /// Processes an action now, or queues it behind the current one.
  ///
  /// - Parameters:
  ///   - action: The action.
  ///   - scope: The action that it is part of, which counts it already.
  @inlinable
  func dispatch(_ action: Action, in scope: EffectPool.Dispatch?) {
    if !queue.add(.action(action, scope), handOver: handOver, perform) { scope?.leave() }
  }

  /// Dispatches an action and waits until it, its effects, and the actions that these dispatch have ended.
  @usableFromInline
  func dispatchAndWait(_ action: Action) async {
    let scope = EffectPool.Dispatch()
    dispatch(action, in: scope)
    await scope.wait()
  }

  /// Changes the selectors between two actions.
  ///
  /// - Returns: Whether the job has been or will be done; `false` if the store has ended.
  @inlinable
  @discardableResult
  func run(_ job: @escaping Job) -> Bool {
    queue.add(.job(job), handOver: handOver, perform)
  }

  /// Starts a task that processes the remaining actions.
  @usableFromInline
  func handOver() {
    TurnBudget.continueInTask { [self] in queue.resume(perform) }
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
    case .removal(let subscription):
      machine.selectors.remove(subscription)
    case .reader(let hub):
      add(hub, to: &machine)
    }
  }

  /// Passes an action to the middleware from an index on, and then to the reducer.
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
    guard machine.log == nil else { return reduceLogged(action, &machine) }
    apply(action, &machine)
  }

  /// Applies an action to the state, and publishes the state.
  @inlinable
  @inline(__always)
  func apply(_ action: Action, _ machine: inout Machine) {
    let reducer = machine.reducer
    reducer(&machine.state, action)
    guard !machine.selectors.isEmpty else { return cell.publish(machine.state) }
    rounds.begin()
    cell.publish(machine.state)
    machine.selectors.evaluate(machine.state)
    rounds.end()
  }
}

@available(*, unavailable)
extension StoreEngine.Machine: Sendable {}
