public import Synchronization

/// The implementation of a publisher, which loads in flight use without keeping the publisher alive.
@usableFromInline
final class LoadingCore<Model: LoadingModel>: Sendable {
  @usableFromInline typealias Value = Model.Value

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var loading: Model
    /// The timer that fires when the loaded value becomes stale.
    var timer = MovableTimer()
    /// Whether the publisher was released, so that no staleness is published.
    var isClosed = false

    @usableFromInline
    init(loading: Model) {
      self.loading = loading
    }
  }

  @usableFromInline let hub = BroadcastHub<LoadState<Value>>(isResettable: true)
  @usableFromInline let state: Locked<State>
  @usableFromInline let staleAfter: Duration?
  @usableFromInline let publishesStaleness: Bool
  private let clock: any ErasedClock

  @usableFromInline
  init(
    _ loading: Model,
    staleAfter: Duration? = nil,
    publishesStaleness: Bool = false,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    state = Locked(State(loading: loading))
    self.staleAfter = staleAfter
    self.publishesStaleness = publishesStaleness && staleAfter != nil
    self.clock = clock.erased()
  }

  @inlinable var current: LoadState<Value> {
    state.withLock { $0.loading.current }
  }

  /// The time, if values can become stale; the user's clock is read with no lock held.
  @inlinable var now: Duration {
    staleAfter == nil ? .zero : time()
  }

  @usableFromInline
  @inline(never)
  func time() -> Duration {
    clock.now()
  }

  var isStale: Bool {
    guard let staleAfter else { return false }
    let now = time()
    return state.withLock { $0.loading.isStale(after: staleAfter, at: now) }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.loading.current]) }
  }

  /// The part of a change that subscribers receive.
  @usableFromInline
  enum Publication: Sendable {
    case nothing
    case state
    /// The state, in place of all unread ones.
    case reset
  }

  /// Changes the state and publishes it.
  ///
  /// - Parameter body: Changes the state, and decides whether it is published: not by default.
  /// - Returns: The result of the body.
  // Inlined, so that most of it is known to be needless: an update would cost half as much again.
  @inlinable
  @inline(__always)
  func change<Result>(
    _ body: (inout Model, inout Publication, _ now: Duration) -> Result
  ) -> Result {
    let now = now
    var delivery: Delivery<LoadState<Value>>?
    var move: MovableTimer.Move?
    let (result, former) = state.withLock { state in
      var publication = Publication.nothing
      let result = body(&state.loading, &publication, now)
      let former = state.loading.takeFormer()
      if publishesStaleness { move = setTimer(of: &state, at: now) }
      if publication != .nothing, hub.hasSubscribers.load(ordering: .relaxed) {
        delivery = prepare(state.loading.current, replacesUnread: publication == .reset)
      }
      return (result, former)
    }
    if let delivery = consume delivery { delivery.deliver() }
    if let move { perform(move) }
    // Replaced values and loads are released with no lock held.
    withExtendedLifetime(former) {}
    return result
  }

  /// Resets the state without delivering it yet.
  ///
  /// - Parameter body: Resets the state.
  /// - Returns: The delivery, and the replaced parts, which are to be released with no lock held.
  func prepareReset(
    _ body: (inout Model) -> Void
  ) -> (delivery: Delivery<LoadState<Value>>, former: Model.Former) {
    state.withLock { state in
      body(&state.loading)
      let delivery = prepare(state.loading.current, replacesUnread: true)
      return (delivery, state.loading.takeFormer())
    }
  }

  /// Appends a state without resuming tasks yet.
  @inlinable
  func prepare(_ state: LoadState<Value>, replacesUnread: Bool) -> Delivery<LoadState<Value>> {
    var delivery = Delivery<LoadState<Value>>()
    if replacesUnread {
      hub.prepareReset(state, &delivery)
    } else {
      hub.prepare(state, &delivery)
    }
    return delivery
  }

  /// Ends every stream when the publisher is released.
  @usableFromInline
  func close() {
    hub.finish()
    let sleeper = state.withLock { state in
      state.isClosed = true
      return state.timer.clear()
    }
    sleeper?.cancel()
  }
}

// MARK: - Loading

extension LoadingCore {
  /// The value for a caller of a load.
  @usableFromInline
  enum Loaded: Sendable {
    case known(Value)
    /// The outcome of a load, whose value is the output of its operation.
    case outcome(Outcome)
  }

  /// Joins a load in flight or starts one, and waits for it, unless there is nothing to load.
  ///
  /// - Parameters:
  ///   - request: The requested part.
  ///   - begin: Starts the task of a new load, which begins at a place.
  /// - Returns: The value that is known, or the outcome of the load.
  /// - Throws: The error of the load; a `CancellationError` if the caller is cancelled;
  ///   ``LoadError/recursiveLoad`` if it would wait for itself.
  @inlinable
  func load(
    _ request: Model.Request,
    begin: (Flight, Model.Start) -> Void
  ) async throws -> Loaded {
    try Task.checkCancellation()
    switch answer(to: request) {
    case .known(let value):
      return .known(value)
    case .waits(let flight, let place, let start):
      let outcome = try await flight.loadOutcome(in: place) {
        if let start { begin(flight, start) }
      } leave: {
        self.leave(flight, place)
      }
      return .outcome(outcome)
    }
  }

  /// Starts the task of a load.
  ///
  /// - Parameters:
  ///   - flight: The load.
  ///   - operation: The operation that loads.
  ///   - finish: Called with the result, with no lock held. It ends the load.
  @inlinable
  @inline(__always)
  func run<Output: Sendable>(
    _ flight: Flight,
    _ operation: @escaping @concurrent @Sendable () async throws -> Output,
    finish: @escaping @Sendable (Result<Output, any Error>) -> Void
  ) {
    flight.addTask { priority in
      Task.detached(priority: priority) {
        let result = await flight.result(of: operation)
        flight.noteOutcome()
        finish(result)
      }
    }
  }

  /// The way in which a caller gets its value.
  @usableFromInline
  enum Answer: Sendable {
    case known(Value)
    /// The caller waits for a load, which it has to start if it is given the place at which the load begins.
    case waits(Flight, WaitPlace, Model.Start?)
  }

  @inlinable
  func answer(to request: Model.Request) -> Answer {
    change { loading, publication, now in
      let isStale = loading.isStale(after: staleAfter, at: now)
      switch loading.answer(to: request, isStale: isStale) {
      case .known(let value):
        return .known(value)
      case .joins(let flight):
        return .waits(flight, flight.join(), nil)
      case .begins:
        let flight = Flight.ofCaller()
        publication = .state
        return .waits(flight, .first, loading.begin(flight, for: request))
      }
    }
  }

  /// Removes a caller; the last one cancels the load.
  ///
  /// - Returns: Whether the caller was still waiting.
  @usableFromInline
  func leave(_ flight: Flight, _ place: WaitPlace) -> Bool {
    let departure = change { loading, publication, _ in
      let departure = flight.leaveLoad(place)
      if departure.isLast, loading.abandon(flight) { publication = .state }
      return departure
    }
    departure.resume()
    // If it has not started yet, it is cancelled when it starts.
    if departure.isLast { flight.cancel() }
    return departure.hasLeft
  }
}

// MARK: - Publishing staleness

extension LoadingCore {
  /// Ensures that the timer fires when the loaded value becomes stale, or earlier.
  ///
  /// - Returns: The move of the timer, to be performed with no lock held.
  @usableFromInline
  func setTimer(of state: inout State, at now: Duration) -> MovableTimer.Move? {
    // If the value is stale, the timer is about to publish that.
    let isStale = state.loading.isStale(after: staleAfter, at: now)
    guard !state.isClosed, !isStale else { return nil }
    let time = state.loading.timeUntilStale(after: staleAfter, at: now)
    return state.timer.set(time.map { now + $0.limited })
  }

  @usableFromInline
  func perform(_ move: MovableTimer.Move) {
    move.perform(on: clock) { [weak self] sleeper, hasSlept in
      self?.wake(sleeper, hasSlept: hasSlept)
    }
  }

  /// Handles the waking of a sleeper.
  ///
  /// - Parameters:
  ///   - sleeper: The sleeper.
  ///   - hasSlept: Whether the clock has let it sleep. If not, it stops until the next change.
  /// - Returns: The time at which it wakes next, if any.
  private func wake(_ sleeper: MovableTimer.Sleeper, hasSlept: Bool) -> Duration? {
    let now = clock.now()
    var delivery = Delivery<LoadState<Value>>()
    let next = state.withLock { state -> Duration? in
      guard state.timer.isCurrent(sleeper) else { return nil }
      let time = hasSlept ? state.loading.timeUntilStale(after: staleAfter, at: now) : nil
      let next = state.timer.sleep(until: time.map { now + $0.limited })
      let isStale = next == nil && state.loading.isStale(after: staleAfter, at: now)
      if isStale { hub.prepare(state.loading.current, &delivery) }
      return next
    }
    delivery.deliver()
    return next
  }
}
