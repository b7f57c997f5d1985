// `unsafeDowncast` replaces a cast: only this class finishes its flight, and with outcomes of its own type.

/// One run of an operation that loads a value for a publisher, and the callers that wait for it.
///
/// Callers join and leave under the lock of the publisher, so that one who joins is never left alone by
/// a load that has just been abandoned.
final class PublisherLoad<Value: Sendable>: Sendable {
  /// What has to follow the departure of a caller, with no lock held.
  struct Departure: Sendable {
    fileprivate let departure: Flight.Departure
    fileprivate var flight: Flight?

    /// Whether the caller was there until now.
    var hasLeft: Bool { departure.hasLeft }
    /// Whether it was the last one.
    var isLast: Bool { departure.isLast }

    /// Resumes the caller, and cancels the operation if it was the last one.
    func perform() {
      departure.resume()
      flight?.cancel()
    }
  }

  let id: LoadID
  private let flight = Flight()

  init(id: LoadID) {
    self.id = id
  }

  /// Takes a place for a caller.
  func join() -> WaitPlace {
    flight.join()
  }

  /// Starts the operation in a task of its own.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - completion: Called with its result.
  func start(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value,
    completion: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    flight.raise(to: Task.currentPriority)
    flight.start { [flight] in
      do {
        completion(.success(try await FlightScope.local.withValue(flight, operation: operation)))
      } catch {
        completion(.failure(error))
      }
    }
  }

  /// Waits for the outcome.
  ///
  /// - Parameters:
  ///   - place: The place that the caller has taken.
  ///   - begin: Called before, if the caller may wait.
  ///   - leave: Called when the caller has to leave: see ``leave(_:)``. It returns whether the caller
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
    if let scope, WaitGraph.wait(scope, for: flight) != nil {
      _ = leave()
      flight.withdraw(place)
      throw LoadError.recursiveLoad
    }
    begin()
    let outcome = await flight.wait(
      in: place,
      onCancel: {
        if leave(), let scope { WaitGraph.stopWaiting(scope, for: flight) }
      }
    )
    guard let outcome else { throw CancellationError() }
    if let scope { WaitGraph.stopWaiting(scope, for: flight) }
    return unsafe unsafeDowncast(try outcome.get(), to: ValueOutcome<Value>.self).value
  }

  /// Removes a caller, unless the outcome is there already; the last one gives the load up.
  func leave(_ place: WaitPlace) -> Departure {
    let departure = flight.leave(place)
    guard departure.isLast else { return Departure(departure: departure) }
    flight.settle()
    // It is cancelled with no lock held; if it has not started yet, it is as soon as it does.
    return Departure(departure: departure, flight: flight)
  }

  /// Marks the outcome as known, although some callers have not been resumed yet.
  ///
  /// It is called before any task can see the outcome.
  func settle() {
    flight.settle()
  }

  /// Gives every caller the outcome; called with no lock held.
  func finish(_ result: Result<Value, any Error>) {
    flight.end()
    switch result {
    case .success(let value): flight.finish(ValueOutcome(value))
    case .failure(let error): flight.finish(Outcome(.failure, error: error))
    }
  }
}
