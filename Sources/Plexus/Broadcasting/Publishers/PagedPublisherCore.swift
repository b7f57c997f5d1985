/// The implementation of a ``PagedPublisher``, which loads in flight use without keeping the publisher alive.
final class PagedPublisherCore<Item: Sendable, Cursor: Sendable>: Sendable {
  typealias Fetch = @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>

  private struct State {
    var published = PagedPublisherState<Item, Cursor>()
    /// The load that belongs to the current load of the state.
    var load: PublisherLoad?
  }

  let hub = BroadcastHub<LoadState<Pages<Item>>>(isResettable: true)
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

  /// Drops all pages, and replaces unread states by `.unknown`.
  func reset() {
    perform { state, effects in
      state.published.reset()
      state.load = nil
      effects.delivery = hub.prepareReset(state.published.current)
    }
  }

  /// The effects of a change, performed in this order without a lock.
  private struct Effects {
    var delivery: Delivery<LoadState<Pages<Item>>>?
    var departure: PublisherLoad.Departure?
  }

  /// Changes the state, and performs the effects after the lock is released.
  private func perform<Result>(_ body: (inout State, inout Effects) -> Result) -> Result {
    let (result, effects, garbage) = state.withLock { state in
      let garbage = state
      var effects = Effects()
      let result = body(&state, &effects)
      return (result, effects, garbage)
    }
    effects.delivery?.deliver()
    effects.departure?.perform()
    withExtendedLifetime(garbage) {}
    return result
  }
}

// MARK: - Loading

extension PagedPublisherCore {
  typealias Request = PagedPublisherState<Item, Cursor>.Request

  /// Joins the current load or starts one, and waits for it, unless there is nothing to load.
  ///
  /// - Parameter request: The requested page.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller is cancelled; ``LoadError/recursiveLoad`` if
  ///   it would wait for itself.
  func load(_ request: Request) async throws {
    try Task.checkCancellation()
    switch admit(request) {
    case .nothing:
      return
    case .joined(let load, let place):
      try await wait(for: load, place) {}
    case .began(let load, let place, let cursor):
      try await wait(for: load, place) {
        load.run { priority in
          Task.detached(priority: priority) { [self] in
            finish(load, with: await load.result { [fetch] in try await fetch(cursor) })
          }
        }
      }
    }
  }

  private func wait(for load: PublisherLoad, _ place: WaitPlace, begin: () -> Void) async throws {
    _ = try await load.outcome(in: place, begin: begin) { self.leave(load, place) }
  }

  /// The way in which a caller gets its page.
  private enum Admission {
    case nothing
    case joined(PublisherLoad, WaitPlace)
    case began(PublisherLoad, WaitPlace, at: Cursor?)
  }

  private func admit(_ request: Request) -> Admission {
    perform { state, effects in
      switch state.published.ask(for: request) {
      case .nothing:
        return .nothing
      case .joins:
        guard let load = state.load else { return .nothing }
        return .joined(load, load.join())
      case .begins(let id, let cursor):
        let load = PublisherLoad(id: id)
        state.load = load
        effects.delivery = hub.prepare(state.published.current)
        return .began(load, .first, at: cursor)
      }
    }
  }

  /// Removes a caller; the last one cancels the load.
  ///
  /// - Returns: Whether the caller was still waiting.
  private func leave(_ load: PublisherLoad, _ place: WaitPlace) -> Bool {
    perform { state, effects in
      let departure = load.depart(place)
      effects.departure = departure
      if departure.isLast, state.published.abandonLoad(load.id) {
        state.load = nil
        effects.delivery = hub.prepare(state.published.current)
      }
      return departure.hasLeft
    }
  }

  private func finish(_ load: PublisherLoad, with result: Result<Page<Item, Cursor>, any Error>) {
    load.noteOutcome()
    perform { state, effects in
      guard state.published.finishLoad(load.id, with: result) else { return }
      state.load = nil
      effects.delivery = hub.prepare(state.published.current)
    }
    load.finish(result)
  }
}
