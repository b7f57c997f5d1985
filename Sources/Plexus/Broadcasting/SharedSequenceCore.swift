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
    var run: TaskSlot?
    /// Whether an iteration is running, current or stopped, which the next one has to await.
    var isIterating = false
    /// The newest elements, which are replayed to a new subscriber, also after the end.
    var replay: [Element] = []
    /// The timer that stops the iteration after it has lingered.
    var timer = MovableTimer()

    /// Cancels the tasks of a state that was taken out, with no lock held.
    func cancel() {
      run?.cancel()
      var timer = timer
      timer.clear()?.cancel()
    }
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
    let (result, started, sleeper) = state.withLock { state in
      let result = body(hub, state.replay)
      let sleeper = state.timer.clear()
      guard state.run == nil, let source = state.source else {
        return (result, (run: TaskSlot, source: Source)?.none, sleeper)
      }
      let run = TaskSlot()
      state.run = run
      guard !state.isIterating else { return (result, nil, sleeper) }
      state.isIterating = true
      return (result, (run, source), sleeper)
    }
    sleeper?.cancel()
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
    former.cancel()
  }

  private func start(_ run: TaskSlot, _ source: @escaping Source) {
    run.start {
      Task.detached(priority: Task.currentPriority) { [self] in
        let last = await source { deliver($0, of: run) }
        end(run, with: last)
      }
    }
  }

  /// Delivers an element.
  ///
  /// - Returns: Whether more elements are wanted.
  private func deliver(_ element: Element, of run: TaskSlot) -> Bool {
    var garbage: Element?
    var delivery = Delivery<Element>()
    let isWanted = state.withLock { state in
      guard state.run === run else { return false }
      if replayLimit > 0 {
        if state.replay.count == replayLimit { garbage = state.replay.removeFirst() }
        state.replay.append(element)
      }
      hub.prepare(element, &delivery)
      return true
    }
    delivery.deliver()
    withExtendedLifetime(garbage) {}
    return isWanted
  }

  /// The next step after an iteration has ended.
  private enum Sequel {
    /// The sequence has ended: the state to release.
    case end(former: State)
    /// Subscribers were added after the iteration was stopped.
    case iteration(TaskSlot, Source)
    case nothing
  }

  /// Ends an iteration, and with it the sequence unless the iteration was stopped before.
  private func end(_ run: TaskSlot, with last: Element?) {
    let sequel = state.withLock { state -> Sequel in
      if state.run === run {
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
      former.cancel()
    case .iteration(let run, let source):
      start(run, source)
    case .nothing:
      break
    }
  }

  /// Stops the iteration after the last subscriber has left, unless there is a new one.
  private func stop() {
    guard lingering > .zero else { return stop(after: nil) }
    let wake = clock.now() + lingering.limited
    let move = state.withLock { state in
      state.run != nil && hasNoSubscribers ? state.timer.set(wake) : nil
    }
    move?.perform(on: clock) { [weak self] sleeper, _ in
      self?.stop(after: sleeper)
      return nil
    }
  }

  /// Stops the iteration if there is no subscriber.
  ///
  /// - Parameter sleeper: The sleeper that has woken, if the iteration has lingered.
  private func stop(after sleeper: MovableTimer.Sleeper?) {
    let former = state.withLock { state -> State? in
      if let sleeper, !state.timer.isCurrent(sleeper) { return nil }
      let former = state
      _ = state.timer.clear()
      guard state.run != nil, hasNoSubscribers else { return nil }
      state = State(source: former.source, isIterating: former.isIterating)
      return former
    }
    former?.run?.cancel()
  }

  private var hasNoSubscribers: Bool {
    hub.state.withLock { $0.subscriberCount == 0 }
  }
}
