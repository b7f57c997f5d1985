/// One run of an operation that loads a value, and the tasks that wait for it.
///
/// Callers join and leave under the lock of the publisher, so that one who joins is never left alone by
/// a load that has just been abandoned.
final class PublisherLoad<Value: Sendable>: Sendable {
  private struct State {
    var outcome: Result<Value, any Error>?
  }

  /// What the departure of a caller has to be followed by, with no lock held.
  struct Departure: Sendable {
    fileprivate let place: WaitList.Departure
    fileprivate var work: FlightWork?

    /// Whether the caller was there until now.
    var hasLeft: Bool { place.hasLeft }
    /// Whether nobody waits any more.
    var isLast: Bool { place.isLast }

    /// Lets the caller go on, and cancels the operation if it was the last.
    func carryOut() {
      place.resume()
      work?.cancel()
    }
  }

  let id: LoadID
  private let mark = LoadMark()
  private let work: FlightWork
  private let waiters: WaitList
  private let state = Locked(State())

  init(id: LoadID) {
    let work = FlightWork()
    self.id = id
    self.work = work
    waiters = WaitList(raising: work)
  }

  /// Adds a caller.
  func join() -> WaitPlace {
    waiters.join()
  }

  /// Starts the operation.
  ///
  /// - Parameters:
  ///   - operation: What to run, in a task of its own.
  ///   - completion: What to do with the result.
  func start(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value,
    completion: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    work.raise(to: Task.currentPriority)
    work.start { [mark] in
      let result: Result<Value, any Error>
      do {
        result = .success(try await FlightScope.$current.withValue(mark, operation: operation))
      } catch {
        result = .failure(error)
      }
      completion(result)
    }
  }

  /// Waits for the outcome.
  ///
  /// - Parameters:
  ///   - place: Where the caller has joined.
  ///   - begin: What to do before, if the caller may wait.
  ///   - leave: What to do when the caller has to leave: see ``leave(_:)``. It returns whether the caller
  ///     was there until then.
  /// - Returns: The value.
  /// - Throws: The error of the operation; a `CancellationError` if the caller has left;
  ///   ``LoadError/recursiveLoad`` if it would wait for itself.
  func value(
    in place: WaitPlace,
    begin: () -> Void,
    leave: @Sendable () -> Bool
  ) async throws -> Value {
    let scope = FlightScope.awaited
    if let scope, WaitGraph.wait(scope, for: mark) != nil {
      _ = leave()
      waiters.giveBack(place)
      throw LoadError.recursiveLoad
    }
    begin()
    let ending = await waiters.wait(
      in: place,
      onCancel: {
        if leave(), let scope { WaitGraph.stopWaiting(scope, for: mark) }
      }
    )
    guard ending == .finished else { throw CancellationError() }
    if let scope { WaitGraph.stopWaiting(scope, for: mark) }
    guard let outcome = state.withLock({ $0.outcome }) else { throw CancellationError() }
    return try outcome.get()
  }

  /// A caller leaves, unless the outcome is there already; the last one gives the load up.
  func leave(_ place: WaitPlace) -> Departure {
    var departure = Departure(place: waiters.leave(place))
    guard departure.isLast else { return departure }
    mark.settle()
    // It is cancelled with no lock held; if it has not started yet, it is as soon as it does.
    departure.work = work
    return departure
  }

  /// The operation has ended: nobody need wait any more, although some have not noticed yet.
  ///
  /// It is called before anybody can see what the load has come to.
  func settle() {
    mark.settle()
  }

  /// Hands the outcome to everybody who waits; called with no lock held.
  func finish(_ outcome: Result<Value, any Error>) {
    state.withLock { $0.outcome = outcome }
    work.finish()
    waiters.finish()
  }
}
