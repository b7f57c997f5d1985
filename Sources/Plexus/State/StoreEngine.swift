/// What carries out the actions of a store, apart from the store's life: effects use it without keeping
/// the store.
@usableFromInline
final class StoreEngine<State: Sendable, Action: Sendable>: Sendable {
  /// Something that has to be done about the selectors, between two actions.
  @usableFromInline
  typealias Job = @Sendable (inout SelectorTable<State>, State) -> Void

  private enum Item: Sendable {
    case action(Action, EffectScope?)
    case job(Job)
  }

  /// What belongs to whoever has the turn.
  private struct Machine {
    var state: State
    var middleware: [Middleware<State, Action>]
    var reducer: Reducer<State, Action>
    var selectors = SelectorTable<State>()
  }

  let cell: any StateCell<State>
  let effects = EffectPool()
  private let turns: Turns<Item, Machine>

  init(
    _ cell: any StateCell<State>,
    middleware: [Middleware<State, Action>],
    reducer: @escaping Reducer<State, Action>
  ) {
    self.cell = cell
    let machine = Machine(state: cell.state, middleware: middleware, reducer: reducer)
    turns = Turns(machine) { machine in
      // A context that somebody keeps must not keep what belongs to the user.
      machine.middleware = []
      machine.reducer = { _, _ in }
      machine.selectors = SelectorTable()
    }
  }

  /// Ends everything: effects are cancelled, and actions are ignored from now on.
  func close() {
    let dropped = turns.close()
    effects.close()
    for case .action(_, let scope?) in dropped { scope.leave() }
  }

  /// Carries out an action now, or after what is under way.
  ///
  /// - Parameters:
  ///   - action: The action.
  ///   - scope: What it is part of, which counts it already.
  func dispatch(_ action: Action, in scope: EffectScope?) {
    if !turns.take(.action(action, scope), perform) { scope?.leave() }
  }

  /// Carries out an action and waits until it, its effects, and what these dispatch are over.
  func dispatchAndWait(_ action: Action) async {
    let scope = EffectScope()
    dispatch(action, in: scope)
    await scope.wait()
  }

  /// Does something about the selectors between two actions.
  @usableFromInline
  func run(_ job: @escaping Job) {
    _ = turns.take(.job(job), perform)
  }

  private func perform(_ item: Item, _ machine: inout Machine) {
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
  private func pass(
    _ action: Action,
    through index: Int,
    _ context: Middleware<State, Action>.Context,
    _ machine: inout Machine
  ) {
    guard index < machine.middleware.count else { return reduce(action, &machine) }
    let middleware = machine.middleware[index]
    middleware.body(action, context) { pass($0, through: index + 1, context, &machine) }
  }

  private func reduce(_ action: Action, _ machine: inout Machine) {
    let reducer = machine.reducer
    reducer(&machine.state, action)
    cell.publish(machine.state)
    machine.selectors.evaluate(machine.state)
  }
}
