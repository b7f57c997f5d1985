/// What a ``SharedSequence`` consists of, apart from its life: the task that iterates uses it without
/// keeping the broadcaster.
final class SharedSequenceCore<Element: Sendable>: Sendable {
  /// Iterates the sequence from its beginning.
  ///
  /// It hands over the elements as long as somebody wants them, and returns what comes last, if anything.
  typealias Source = @Sendable (_ receive: @Sendable (Element) -> Bool) async -> Element?

  private struct State {
    /// `nil` once the sequence has ended.
    var source: Source?
    /// The iteration that is wanted; elements of any other are late and not wanted.
    var run: UInt64?
    /// Whether an iteration is under way, wanted or not: the next one begins after it.
    var isIterating = false
    /// The task of that iteration, as soon as it is known.
    var task: Task<Void, Never>?
    /// The newest elements, which a new subscriber gets first; after the end they stay.
    var replay: [Element] = []
    /// What stops the iteration when it has lingered without subscribers.
    var timer: Timer?
  }

  let hub: BroadcastHub<Element>
  /// The number of elements that a new subscriber gets first.
  let replayLimit: Int
  private let lingering: Duration
  private let clock: any ErasedClock
  private let state: Locked<State>

  init(
    replaying replayLimit: Int,
    lingering: Duration,
    clock: any Clock<Duration>,
    _ source: @escaping Source
  ) {
    precondition(replayLimit >= 0, "The number of replayed elements must not be negative")
    self.replayLimit = replayLimit
    self.lingering = lingering
    self.clock = clock.erased()
    let core = WeakReference<SharedSequenceCore>()
    hub = BroadcastHub { core.object?.stop() }
    state = Locked(State(source: source))
    core.set(self)
  }

  /// Calls the body, which registers somebody, and begins to iterate if that is the first.
  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    let (result, started, timer) = state.withLock { state in
      let result = body(hub, state.replay)
      let timer = state.timer.take()
      guard state.run == nil, let source = state.source else {
        return (result, (run: UInt64, source: Source)?.none, timer)
      }
      let run = UniqueID.next()
      state.run = run
      guard !state.isIterating else { return (result, nil, timer) }
      state.isIterating = true
      return (result, (run, source), timer)
    }
    timer?.task?.cancel()
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
    former.timer?.task?.cancel()
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
    var garbage: Element?
    let delivery = state.withLock { state -> Delivery<Element>? in
      guard state.run == run else { return nil }
      if replayLimit > 0 {
        if state.replay.count == replayLimit { garbage = state.replay.removeFirst() }
        state.replay.append(element)
      }
      return hub.prepare(element)
    }
    delivery?.deliver()
    withExtendedLifetime(garbage) {}
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
        // A failure is replayed in any case.
        let replay = last.map { (former.replay + [$0]).suffix(max(replayLimit, 1)) }
        state = State(replay: replay.map { Array($0) } ?? former.replay)
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
      former.timer?.task?.cancel()
      withExtendedLifetime(former) {}
    case .iteration(let run, let source):
      start(run, source)
    case .nothing:
      break
    }
  }

  /// The last subscriber has left, unless another one has come since.
  private func stop() {
    guard lingering > .zero else { return stop(timer: nil) }
    let timer = Timer(wake: clock.now() + lingering.limited)
    let former = state.withLock { state -> Timer? in
      guard state.run != nil, hasNoSubscribers else { return timer }
      defer { state.timer = timer }
      return state.timer
    }
    former?.task?.cancel()
    guard former?.id != timer.id else { return }
    timer.start(on: clock) { [weak self] _ in
      self?.stop(timer: timer.id)
      return nil
    } note: { note in
      state.withLock { note(&$0.timer) }
    }
  }

  /// Stops the iteration unless there is a subscriber.
  ///
  /// - Parameter timer: The timer that has gone off, if the iteration has lingered.
  private func stop(timer: UInt64?) {
    let (task, garbage) = state.withLock { state -> (Task<Void, Never>?, [Element]) in
      guard state.run != nil, state.timer?.id == timer, hasNoSubscribers else { return (nil, []) }
      defer { (state.run, state.task, state.timer, state.replay) = (nil, nil, nil, []) }
      return (state.task, state.replay)
    }
    task?.cancel()
    withExtendedLifetime(garbage) {}
  }

  private var hasNoSubscribers: Bool {
    hub.state.withLock { $0.subscriberCount == 0 }
  }
}
