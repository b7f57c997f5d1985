/// What a ``DataPublisher`` consists of, apart from its life: loads that are under way use it without
/// keeping the publisher.
final class DataPublisherCore<Value: Sendable>: Sendable {
  /// The states of loads that the loads themselves know nothing of.
  private struct State {
    var published = DataPublisherState<Value>()
    /// The load that belongs to the current one of the state.
    var load: PublisherLoad<Value>?
  }

  let hub = BroadcastHub<LoadState<Value>>()
  private let state = Locked(State())
  private let staleAfter: Duration?
  private let elapsed: @Sendable () -> Duration

  init(staleAfter: Duration?, clock: any Clock<Duration>) {
    self.staleAfter = staleAfter
    elapsed = clock.stopwatch()
  }

  var current: LoadState<Value> {
    state.withLock { $0.published.current }
  }

  var isStale: Bool {
    let now = elapsed()
    return state.withLock { $0.published.isStale(after: staleAfter, at: now) }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.published.current]) }
  }

  /// Changes the state and publishes it.
  func change(_ body: (inout DataPublisherState<Value>, _ now: Duration) -> Void) {
    let now = elapsed()
    let (delivery, garbage) = state.withLock { state in
      let garbage = state
      body(&state.published, now)
      if state.published.currentLoad == nil { state.load = nil }
      return (hub.prepare(state.published.current), garbage)
    }
    delivery.deliver()
    withExtendedLifetime(garbage) {}
  }

  /// Joins the current load or begins one, and waits for it.
  ///
  /// - Parameters:
  ///   - unlessLoaded: Whether a value that is loaded and not stale will do.
  ///   - operation: What loads the value.
  /// - Returns: The value.
  /// - Throws: The error of the operation, or a `CancellationError` if the caller is cancelled.
  func load(
    unlessLoaded: Bool,
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try Task.checkCancellation()
    switch try admit(unlessLoaded: unlessLoaded) {
    case .ready(let value):
      return value
    case .joined(let load, let waiter):
      return try await load.wait(waiter) { self.leave(load, waiter) }
    case .began(let load, let waiter, let delivery):
      delivery.deliver()
      load.start(operation) { self.finish(load, with: $0) }
      return try await load.wait(waiter) { self.leave(load, waiter) }
    }
  }

  /// How a caller gets its value.
  private enum Admission {
    case ready(Value)
    case joined(PublisherLoad<Value>, Waiter)
    case began(PublisherLoad<Value>, Waiter, Delivery<LoadState<Value>>)
  }

  private func admit(unlessLoaded: Bool) throws -> Admission {
    let now = elapsed()
    let enclosing = LoadContext.enclosing
    return try state.withLock { state in
      if unlessLoaded, case .loaded(let value) = state.published.current,
        !state.published.isStale(after: staleAfter, at: now)
      {
        return .ready(value)
      }
      if let load = state.load {
        guard !enclosing.contains(load.identity) else { throw LoadError.recursiveLoad }
        return .joined(load, load.join())
      }
      let load = PublisherLoad<Value>(id: state.published.beginLoad())
      state.load = load
      return .began(load, load.join(), hub.prepare(state.published.current))
    }
  }

  /// A caller was cancelled; the last one takes the load with it.
  private func leave(_ load: PublisherLoad<Value>, _ waiter: Waiter) {
    let (departure, delivery, garbage) = state.withLock { state in
      let departure = load.leave(waiter)
      guard departure.isLast else {
        return (departure, Delivery<LoadState<Value>>?.none, State?.none)
      }
      let garbage = state
      guard state.published.abandonLoad(load.id) else { return (departure, nil, garbage) }
      state.load = nil
      return (departure, hub.prepare(state.published.current), garbage)
    }
    delivery?.deliver()
    departure.parked?.resume()
    departure.task?.cancel()
    withExtendedLifetime(garbage) {}
  }

  private func finish(_ load: PublisherLoad<Value>, with result: Result<Value, any Error>) {
    let now = elapsed()
    let (waiters, delivery, garbage) = state.withLock { state in
      let garbage = state
      var delivery: Delivery<LoadState<Value>>?
      if state.published.finishLoad(load.id, with: result, at: now) {
        state.load = nil
        delivery = hub.prepare(state.published.current)
      }
      return (load.finish(result), delivery, garbage)
    }
    delivery?.deliver()
    for waiter in waiters { waiter.resume() }
    withExtendedLifetime(garbage) {}
  }
}

extension Clock<Duration> {
  /// Returns a closure that tells how much time has passed since this call.
  func stopwatch() -> @Sendable () -> Duration {
    let start = now
    return { start.duration(to: now) }
  }
}
