/// What a ``PagedPublisher`` consists of, apart from its life: loads that are under way use it without
/// keeping the publisher.
final class PagedPublisherCore<Item: Sendable, Cursor: Sendable>: Sendable {
  typealias Load = PublisherLoad<Page<Item, Cursor>>
  typealias Fetch = @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>

  private struct State {
    var published = PagedPublisherState<Item, Cursor>()
    /// The load that belongs to the current one of the state.
    var load: Load?
  }

  let hub = BroadcastHub<LoadState<Pages<Item>>>()
  private let state = Locked(State())
  private let fetch: Fetch

  init(fetch: @escaping Fetch) {
    self.fetch = fetch
  }

  var current: LoadState<Pages<Item>> {
    state.withLock { $0.published.current }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Pages<Item>>>, _ replay: [LoadState<Pages<Item>>]) ->
      Result
  ) -> Result {
    state.withLock { body(hub, [$0.published.current]) }
  }

  /// Forgets everything and publishes that.
  func reset() {
    let (delivery, garbage) = state.withLock { state in
      let garbage = state
      state.published.reset()
      state.load = nil
      return (hub.prepare(state.published.current), garbage)
    }
    delivery.deliver()
    withExtendedLifetime(garbage) {}
  }

  /// Joins the current load or begins one, and waits for it, unless there is nothing to load.
  ///
  /// - Parameter request: Which page is asked for.
  /// - Throws: The error of the fetch, or a `CancellationError` if the caller is cancelled.
  func load(_ request: PagedPublisherState<Item, Cursor>.Request) async throws {
    try Task.checkCancellation()
    switch try admit(request) {
    case .nothing:
      return
    case .joined(let load, let waiter):
      _ = try await load.wait(waiter) { self.leave(load, waiter) }
    case .began(let load, let waiter, let cursor, let delivery):
      delivery.deliver()
      load.start { [fetch] in
        try await fetch(cursor)
      } completion: {
        self.finish(load, with: $0)
      }
      _ = try await load.wait(waiter) { self.leave(load, waiter) }
    }
  }

  /// How a caller gets its page.
  private enum Admission {
    case nothing
    case joined(Load, Waiter)
    case began(Load, Waiter, at: Cursor?, Delivery<LoadState<Pages<Item>>>)
  }

  private func admit(
    _ request: PagedPublisherState<Item, Cursor>.Request
  ) throws -> Admission {
    let enclosing = LoadContext.enclosing
    let (admission, garbage) = try state.withLock { state -> (Admission, State) in
      let garbage = state
      switch state.published.ask(for: request) {
      case .nothing:
        return (.nothing, garbage)
      case .joins:
        guard let load = state.load else { return (.nothing, garbage) }
        guard !enclosing.contains(load.identity) else { throw LoadError.recursiveLoad }
        return (.joined(load, load.join()), garbage)
      case .begins(let id, let cursor):
        let load = Load(id: id)
        state.load = load
        let delivery = hub.prepare(state.published.current)
        return (.began(load, load.join(), at: cursor, delivery), garbage)
      }
    }
    withExtendedLifetime(garbage) {}
    return admission
  }

  /// A caller was cancelled; the last one takes the load with it.
  private func leave(_ load: Load, _ waiter: Waiter) {
    let (departure, delivery, garbage) = state.withLock { state in
      let departure = load.leave(waiter)
      guard departure.isLast else {
        return (departure, Delivery<LoadState<Pages<Item>>>?.none, State?.none)
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

  private func finish(_ load: Load, with result: Result<Page<Item, Cursor>, any Error>) {
    let (waiters, delivery, garbage) = state.withLock { state in
      let garbage = state
      var delivery: Delivery<LoadState<Pages<Item>>>?
      if state.published.finishLoad(load.id, with: result) {
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
