/// What a ``SharedSequence`` consists of, apart from its life: the task that iterates uses it without
/// keeping the broadcaster.
final class SharedSequenceCore<Element: Sendable>: Sendable {
  /// Iterates the sequence from its beginning.
  ///
  /// It hands over the elements as long as somebody wants them, and returns what comes last, if anything.
  typealias Source = @Sendable (_ receive: @Sendable (Element) -> Bool) async -> Element?

  private struct State {
    /// Effects.Released when the sequence has ended.
    var source: Source?
    /// The iteration that is wanted; elements of any other are late and not wanted.
    var run: UInt64?
    /// Whether an iteration is under way, wanted or not: the next one begins after it.
    var isIterating = false
    /// The task of that iteration, as soon as it is known.
    var task: Task<Void, Never>?
    /// What is replayed to those who come after the end.
    var last: Element?
  }

  /// Tells the core that its hub has no subscribers any more.
  private final class Link: Sendable {
    private struct Reference {
      weak var core: SharedSequenceCore?
    }

    private let reference = Locked(Reference())

    var core: SharedSequenceCore? { reference.withLock { $0.core } }

    func connect(_ core: SharedSequenceCore) {
      reference.withLock { $0.core = core }
    }
  }

  let hub: BroadcastHub<Element>
  private let state: Locked<State>

  init(_ source: @escaping Source) {
    let link = Link()
    hub = BroadcastHub { link.core?.stop() }
    state = Locked(State(source: source))
    link.connect(self)
  }

  /// Calls the body, which registers somebody, and begins to iterate if that is the first.
  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    let (result, started) = state.withLock { state in
      let result = body(hub, state.last.map { [$0] } ?? [])
      guard state.run == nil, let source = state.source else {
        return (result, (run: UInt64, source: Source)?.none)
      }
      let run = UniqueID.next()
      state.run = run
      guard !state.isIterating else { return (result, nil) }
      state.isIterating = true
      return (result, (run, source))
    }
    if let (run, source) = started { start(run, source) }
    return result
  }

  /// Ends every stream and the iteration: the broadcaster has gone.
  func close() {
    hub.finish()
    let former = state.withLock { state in
      let former = state
      state = State()
      return former
    }
    former.task?.cancel()
  }

  private func start(_ run: UInt64, _ source: @escaping Source) {
    let task = Task.detached(priority: Task.currentPriority) { [self] in
      let last = await source { deliver($0, of: run) }
      end(run, with: last)
    }
    let isOver = state.withLock { state in
      guard state.run == run else { return true }
      state.task = task
      return false
    }
    if isOver { task.cancel() }
  }

  /// An element has arrived.
  ///
  /// - Returns: Whether further ones are wanted.
  private func deliver(_ element: Element, of run: UInt64) -> Bool {
    let delivery = state.withLock { state in
      state.run == run ? hub.prepare(element) : nil
    }
    delivery?.deliver()
    return delivery != nil
  }

  /// What follows when an iteration is over.
  private enum Sequel {
    /// The sequence has ended: this comes last, and this is not needed any more.
    case end(Delivery<Element>?, former: State)
    /// Others have come since the iteration was stopped.
    case iteration(UInt64, Source)
    case nothing
  }

  /// An iteration is over: the sequence has ended, unless the iteration was stopped before.
  private func end(_ run: UInt64, with last: Element?) {
    let sequel = state.withLock { state -> Sequel in
      if state.run == run {
        let former = state
        state = State(last: last)
        return .end(last.map { hub.prepare($0) }, former: former)
      }
      guard let run = state.run, let source = state.source else {
        state.isIterating = false
        return .nothing
      }
      return .iteration(run, source)
    }
    switch sequel {
    case .end(let delivery, let former):
      delivery?.deliver()
      hub.finish()
      withExtendedLifetime(former) {}
    case .iteration(let run, let source):
      start(run, source)
    case .nothing:
      break
    }
  }

  /// The last subscriber has gone, unless another one has come since.
  private func stop() {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard hub.state.withLock({ $0.subscriberCount == 0 }) else { return nil }
      defer { (state.run, state.task) = (nil, nil) }
      return state.task
    }
    task?.cancel()
  }
}
