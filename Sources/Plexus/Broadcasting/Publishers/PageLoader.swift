/// The work of a ``PagedPublisher``, which loads in flight do without keeping the publisher alive.
struct PageLoader<Item: Sendable, Cursor: Equatable & Sendable>: Sendable {
  typealias Edit = @Sendable (inout [Item]) -> Void
  typealias Fetch = @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>
  typealias Model = PagingState<Item, Cursor, Edit>

  let core: LoadingCore<Model>
  let fetch: Fetch

  /// Joins a load in flight or starts one, and waits for it.
  func load(_ request: Model.Request) async throws {
    _ = try await core.load(request) { flight, start in
      switch start {
      case .page(let cursor):
        core.run(flight) {
          try await fetch(cursor)
        } finish: { result in
          end(flight, with: result) { $0.accept($1, of: flight) }
        }
      case .whole(let walk):
        core.run(flight) {
          try await pages(of: walk, for: flight)
        } finish: { result in
          end(flight, with: result) { state, walk in
            state.accept(&walk, of: flight) { edit, items in edit(&items) }
          }
        }
      }
    }
  }

  /// Loads the pages of a walk, as long as they are needed.
  private func pages(
    of walk: PagesWalk<Item, Cursor>,
    for flight: Flight
  ) async throws -> PagesWalk<Item, Cursor> {
    var walk = walk
    while let cursor = walk.next {
      guard walk.add(try await fetch(cursor)) else { throw LoadError.repeatedCursor }
      // A load that was superseded fetches nothing more.
      guard core.state.withLock({ $0.loading.isCurrent(flight) }) else { break }
    }
    return walk
  }

  /// Records the result of a load, and ends it.
  private func end<Output: Sendable>(
    _ flight: Flight,
    with result: Result<Output, any Error>,
    _ accept: (inout Model, inout Output) -> Model.Acceptance
  ) {
    var error: (any Error)?
    switch result {
    case .success(var output):
      let acceptance = transact { state -> (Model.Acceptance, isChanged: Bool, isPublished: Bool) in
        let acceptance = accept(&state, &output)
        return (acceptance, acceptance != .ignored, true)
      }
      if acceptance == .repeated { error = LoadError.repeatedCursor }
    case .failure(let failure):
      let isUsed = core.change { state, publication, _ in
        let isUsed = state.fail(flight, with: failure)
        if isUsed { publication = .state }
        return isUsed
      }
      // The callers of a load that was superseded have what they wanted, or it is gone.
      if isUsed { error = failure }
    }
    flight.end(with: error.map { Outcome(.failure, error: $0) } ?? ValueOutcome(()))
  }

  /// Changes the items of the loaded pages.
  func edit(_ body: @escaping Edit) {
    transact { state in
      let (isChanged, isPublished) = state.edit(body) { edit, items in edit(&items) }
      return ((), isChanged, isPublished)
    }
  }

  /// Changes a copy of the state, with no lock held, and replaces the state by it; again if that has changed meanwhile.
  ///
  /// - Parameter body: Changes the copy. It returns whether it has, and whether subscribers receive that.
  /// - Returns: The result of the body.
  @discardableResult
  private func transact<Result>(
    _ body: (inout Model) -> (Result, isChanged: Bool, isPublished: Bool)
  ) -> Result {
    while true {
      let old = core.state.withLock { $0.loading }
      var new = old
      let (result, isChanged, isPublished) = body(&new)
      guard isChanged else { return result }
      let isDone = core.change { state, publication, _ in
        guard state.version == old.version else { return false }
        // The replaced state is released with no lock held.
        swap(&state, &new)
        if isPublished { publication = .state }
        return true
      }
      if isDone { return result }
    }
  }

  /// Drops all pages.
  func reset() { Self.reset([self]) }

  /// Drops all pages of several lists, before a subscriber of any of them learns of it.
  static func reset(_ loaders: [PageLoader]) {
    let resets = loaders.map { $0.core.prepareReset { $0.reset() } }
    for (delivery, _) in resets { delivery.deliver() }
    // The pages are released with no lock held.
    withExtendedLifetime(resets) {}
  }
}
