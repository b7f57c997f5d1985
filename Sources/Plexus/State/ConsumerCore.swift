/// The implementation of a ``StateConsumer``, apart from its lifetime.
///
/// `DrainQueue` takes its items in order, one at a time.
/// As in a store, a closure is a handler of the changes of a selector, and the handlers of all selectors have one order.
final class ConsumerCore<State: Sendable>: Sendable {
  private typealias ID = ChangeSubscriptions.ID

  /// Adds the selector of a closure.
  ///
  /// The last parameter is whether the state is the first one, which is a change from nothing.
  private typealias Addition = @Sendable (inout SelectorTable<State>, State, Bool) -> Void

  private enum Item: Sendable {
    /// A state, and the number of the source that it comes from, if it is followed.
    case consume(State, from: Int?)
    /// States of earlier sources are ignored from now on.
    case follow(Int)
    case addition(ID, Addition)
    case removal(ID)
  }

  /// The state that only the draining thread accesses.
  private struct Machine {
    var state: State?
    var selectors = SelectorTable<State>()
    /// The closures that were added before the first state.
    var waiting: [ID: Addition] = [:]
    /// The number of the source that is followed.
    var source = 0
  }

  private struct Registry: Sendable {
    /// The tokens that remove closures.
    var tokens: [ID: ObservationToken] = [:]
    var isClosed = false
    var source: ObservationToken?
    /// The number of the newest source.
    var lastSource = 0
  }

  private let queue: DrainQueue<Item, Machine>
  private let registry = Locked(Registry())
  /// The hub of all closures.
  private let handlers = HubBase.ofHandlers()

  init(_ state: State?) {
    queue = DrainQueue(Machine(state: state)) { machine in
      machine.selectors = SelectorTable()
      machine.waiting = [:]
    }
  }

  private func add(_ item: Item) {
    _ = queue.add(item, handOver: handOver, perform)
  }

  /// Starts a task that processes the queued items.
  private func handOver() {
    TurnBudget.continueInTask { [self] in queue.resume(perform) }
  }

  private func perform(_ item: Item, _ machine: inout Machine) {
    switch item {
    case .addition(let id, let addition):
      if let state = machine.state {
        addition(&machine.selectors, state, false)
      } else {
        machine.waiting[id] = addition
      }
    case .removal(let id):
      if machine.waiting.removeValue(forKey: id) == nil { machine.selectors.remove(id) }
    case .consume(let state, let source):
      guard source == nil || source == machine.source else { return }
      if machine.state != nil {
        machine.selectors.evaluate(state)
      } else {
        let waiting = machine.waiting.sorted { $0.key.rawValue < $1.key.rawValue }
        machine.waiting = [:]
        for (_, addition) in waiting { addition(&machine.selectors, state, true) }
      }
      machine.state = state
    case .follow(let source):
      machine.source = max(source, machine.source)
    }
  }

  // MARK: - Closures

  /// Adds a closure, to be called from the next state on.
  ///
  /// - Parameters:
  ///   - select: Selects the value.
  ///   - firesImmediately: Whether the closure is called with the present value, too.
  ///   - bag: A bag that ends the closure before the consumer does.
  ///   - recipe: The parts of the handler that calls the closure.
  func add<Value: Equatable & Sendable>(
    _ select: @escaping @Sendable (State) -> Value,
    firesImmediately: Bool,
    in bag: ObservationBag?,
    _ recipe: Handler.Recipe
  ) {
    let id = ID()
    let hub = BroadcastHub<Change<Value>>()
    let subscription = hub.subscription(bufferingPolicy: .unbounded)
    let relay = Handler.Relay(from: subscription.subscriber, to: handlers)
    let handler = relay.start(recipe)
    let token = ObservationToken { [weak self] in
      handler.cancel()
      self?.remove(id)
    }
    let isClosed = registry.withLock { registry in
      if !registry.isClosed { registry.tokens[id] = token }
      return registry.isClosed
    }
    guard !isClosed else { return token.cancel() }
    bag?.insert(token)
    add(
      .addition(id) { selectors, state, isFirst in
        guard !handler.isCancelled else { return }
        relay.attach()
        let selector = SelectorEntry(select(state))
        selectors.add(selector, select)
        let number = selector.insert(hub, sendingValue: isFirst || firesImmediately)
        selectors.index.connect(id, to: selector, at: number)
      }
    )
  }

  private func remove(_ id: ID) {
    registry.release { $0.tokens.removeValue(forKey: id) }
    add(.removal(id))
  }

  func removeAll() {
    let tokens = registry.withLock { registry in
      defer { registry.tokens = [:] }
      return registry.tokens
    }
    for (_, token) in tokens.sorted(by: { $0.key.rawValue < $1.key.rawValue }) { token.cancel() }
  }

  // MARK: - States

  func consume(_ state: State) {
    add(.consume(state, from: nil))
  }

  func follow(_ source: some Broadcaster<State>) {
    let number = registry.withLock { registry in
      registry.lastSource += 1
      return registry.lastSource
    }
    add(.follow(number))
    let token: ObservationToken
    if let source = source as? any HubBacked<State> {
      token = follow(source, number: number)
    } else {
      token = source.observe { [weak self] state in self?.consume(state, from: number) }
    }
    let old = registry.withLock { registry -> ObservationToken? in
      guard !registry.isClosed, number == registry.lastSource else { return token }
      defer { registry.source = token }
      return registry.source
    }
    old?.cancel()
  }

  /// Consumes the current state at once, and later states in a task.
  private func follow(_ source: some HubBacked<State>, number: Int) -> ObservationToken {
    let recipe = Handler.Recipe(
      isolation: nil,
      .suspending { [weak self] box in
        guard let self else { return .unreached }
        self.consume(Box<State>.element(of: box), from: number)
        return .succeeded
      }
    )
    let (hub, added, present) = source.withHub { hub, replay in
      (hub, hub.add(recipe), replay)
    }
    for state in present { consume(state, from: number) }
    return ObservationToken(hub.start(added))
  }

  /// Consumes a state of a source, unless another source is followed by now.
  func consume(_ state: State, from source: Int) {
    add(.consume(state, from: source))
  }

  /// Cancels the source and all closures, because the consumer has been released.
  func close() {
    let source = registry.withLock { registry in
      registry.isClosed = true
      defer { registry.source = nil }
      return registry.source
    }
    source?.cancel()
    removeAll()
    queue.close()
  }
}

extension Handler.Recipe {
  /// The parts of a handler that calls a closure with the old and the new value of a change.
  init<Value: Sendable>(
    ofChanges onChange: @escaping @isolated(any) @Sendable (Value?, Value) -> Void
  ) {
    let call = directly(onChange)
    self.init(
      isolation: onChange.isolation,
      .synchronous { box in
        let change = Box<Change<Value>>.element(of: box)
        call(change.old, change.new)
        return .succeeded
      }
    )
  }

  /// The parts of a handler that calls an asynchronous closure with the old and the new value of a change.
  init<Value: Sendable>(
    ofChanges onChange: @escaping @isolated(any) @Sendable (Value?, Value) async -> Void
  ) {
    self.init(
      isolation: onChange.isolation,
      .suspending { box in
        let change = Box<Change<Value>>.element(of: box)
        await onChange(change.old, change.new)
        return .succeeded
      }
    )
  }
}
