/// The implementation of a ``StateConsumer``, apart from its lifetime.
final class ConsumerCore<State: Sendable>: Sendable {
  private enum Item: Sendable {
    /// A state, and the number of the source that it comes from, if it is followed.
    case consume(State, from: Int?)
    /// States of earlier sources are ignored from now on.
    case follow(Int)
    case install(any ConsumerClosure<State>)
    case noteRemoval
  }

  /// The state that only the draining thread accesses.
  private struct Machine {
    var state: State?
    /// In the order in which they were added.
    var closures: ContiguousArray<any ConsumerClosure<State>> = []
    /// The number of closures that were removed since the last sweep.
    var removals = 0
    /// The number of the source that is followed.
    var source = 0
  }

  private struct Registry: Sendable {
    /// The tokens that remove closures, by number.
    var tokens: [Int: ObservationToken] = [:]
    var lastID = 0
    var isClosed = false
    var source: ObservationToken?
    /// The number of the newest source.
    var lastSource = 0
    var queues: [ObjectIdentifier?: (queue: ActorQueue, users: Int)] = [:]
  }

  private let queue: DrainQueue<Item, Machine>
  private let registry = Locked(Registry())

  init(_ state: State?) {
    queue = DrainQueue(Machine(state: state)) { $0.closures = [] }
  }

  func consume(_ state: State) {
    _ = queue.add(.consume(state, from: nil), handOver: handOver, perform)
  }

  private func perform(_ item: Item, _ machine: inout Machine) {
    switch item {
    case .install(let closure):
      closure.install(machine.state)
      machine.closures.append(closure)
    case .consume(let state, let source):
      guard source == nil || source == machine.source else { return }
      for closure in machine.closures { closure.consume(state) }
      machine.state = state
    case .follow(let source):
      machine.source = max(source, machine.source)
    case .noteRemoval:
      machine.removals += 1
      guard machine.removals > 16, machine.removals > machine.closures.count / 2 else { return }
      machine.closures.removeAll(where: \.isRemoved)
      machine.removals = 0
    }
  }

  /// Adds a closure, to be called from the next state on.
  func add(_ closure: some ConsumerClosure<State>, in bag: ObservationBag?) {
    let id = registry.withLock { registry in
      registry.lastID += 1
      return registry.lastID
    }
    let token = ObservationToken { [weak self] in
      closure.remove()
      self?.forget(id)
    }
    let isClosed = registry.withLock { registry in
      if !registry.isClosed { registry.tokens[id] = token }
      return registry.isClosed
    }
    guard !isClosed else { return token.cancel() }
    bag?.insert(token)
    _ = queue.add(.install(closure), handOver: handOver, perform)
  }

  /// Starts a task that processes the queued items.
  private func handOver() {
    Task.detached(priority: Task.currentPriority) { [self] in
      while queue.resume(perform) { await Task.yield() }
    }
  }

  private func forget(_ id: Int) {
    registry.release { $0.tokens.removeValue(forKey: id) }
    _ = queue.add(.noteRemoval, handOver: handOver, perform)
  }

  func removeAll() {
    let tokens = registry.withLock { registry in
      defer { registry.tokens = [:] }
      return registry.tokens
    }
    for (_, token) in tokens.sorted(by: { $0.key < $1.key }) { token.cancel() }
  }

  func follow(_ source: some Broadcaster<State>) {
    let number = registry.withLock { registry in
      registry.lastSource += 1
      return registry.lastSource
    }
    _ = queue.add(.follow(number), handOver: handOver, perform)
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
    _ = queue.add(.consume(state, from: source), handOver: handOver, perform)
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

  /// Returns the queue of an actor, for one more synchronous closure.
  func queue(of isolation: (any Actor)?) -> ActorQueue {
    let key = isolation.map { ObjectIdentifier($0) }
    let (queue, isNew) = registry.withLock { registry in
      let known = registry.queues[key]
      let queue = known?.queue ?? ActorQueue(isolation: isolation)
      registry.queues[key] = (queue, (known?.users ?? 0) + 1)
      return (queue, known == nil)
    }
    if isNew { queue.start() }
    return queue
  }

  /// Releases a queue that a closure no longer needs.
  func leave(_ queue: ActorQueue) {
    registry.release { registry -> ActorQueue? in
      guard let (known, users) = registry.queues[queue.key], known === queue else { return nil }
      guard users == 1 else {
        registry.queues[queue.key] = (known, users - 1)
        return nil
      }
      registry.queues[queue.key] = nil
      return known
    }
  }
}
