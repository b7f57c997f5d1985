/// The implementation of a ``SharedSequence``, which the iterating task uses without keeping the broadcaster alive.
final class SharedSequenceCore<Element: Sendable>: Sendable {
  /// Iterates the sequence from its beginning.
  ///
  /// It passes elements on as long as `receive` returns `true`, and returns a last element, if any.
  typealias Source = @Sendable (_ receive: @Sendable (Element) -> Bool) async -> Element?

  private struct State {
    /// `nil` once the sequence has ended.
    var source: Source?
    /// The current iteration; elements of any other are dropped.
    var run: UInt64?
    /// Whether an iteration is running, current or stopped, which the next one has to await.
    var isIterating = false
    /// The task of that iteration, once it is known.
    var task: Task<Void, Never>?
    /// The newest elements, which are replayed to a new subscriber, also after the end.
    var replay: [Element] = []
    /// The timer that stops the iteration after it has lingered.
    var timer: Timer?
  }

  let hub: BroadcastHub<Element>
  /// The maximum number of replayed elements.
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

  /// Calls the body, which registers a subscriber, and starts to iterate if that is the first.
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

  /// Ends every stream and the iteration when the broadcaster is released.
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

  /// Delivers an element.
  ///
  /// - Returns: Whether more elements are wanted.
  private func deliver(_ element: Element, of run: UInt64) -> Bool {
    var garbage: Element?
    let (isWanted, delivery) = state.withLock { state -> (Bool, Delivery<Element>?) in
      guard state.run == run else { return (false, nil) }
      if replayLimit > 0 {
        if state.replay.count == replayLimit { garbage = state.replay.removeFirst() }
        state.replay.append(element)
      }
      return (true, hub.prepare(element))
    }
    delivery?.deliver()
    withExtendedLifetime(garbage) {}
    return isWanted
  }

  /// The next step after an iteration has ended.
  private enum Sequel {
    /// The sequence has ended: the state to release.
    case end(former: State)
    /// Subscribers were added after the iteration was stopped.
    case iteration(UInt64, Source)
    case nothing
  }

  /// Ends an iteration, and with it the sequence unless the iteration was stopped before.
  private func end(_ run: UInt64, with last: Element?) {
    let sequel = state.withLock { state -> Sequel in
      if state.run == run {
        let former = state
        state = State(replay: former.replay)
        return .end(former: former)
      }
      guard let run = state.run, let source = state.source else {
        state.isIterating = false
        return .nothing
      }
      return .iteration(run, source)
    }
    switch sequel {
    case .end(let former):
      // A failure is part of the end, which needs no room among the elements.
      hub.finish(with: last)
      former.timer?.task?.cancel()
      withExtendedLifetime(former) {}
    case .iteration(let run, let source):
      start(run, source)
    case .nothing:
      break
    }
  }

  /// Stops the iteration after the last subscriber has left, unless there is a new one.
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

  /// Stops the iteration if there is no subscriber.
  ///
  /// - Parameter timer: The timer that has fired, if the iteration has lingered.
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
