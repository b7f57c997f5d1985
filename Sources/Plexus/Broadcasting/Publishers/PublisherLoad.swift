// `unsafeDowncast` replaces a cast: only the publisher that has created a load finishes it, with outcomes of its own
// type.

/// A run of an operation that loads a value for a publisher, and its callers.
///
/// Callers join and leave under the lock of the publisher, so that a caller never joins a load that has just been
/// abandoned.
@usableFromInline
final class PublisherLoad: Flight, @unchecked Sendable {
  @usableFromInline let id: PublisherLoad.ID

  /// Creates a load for the current task, which has joined in ``WaitPlace/first``.
  @usableFromInline
  init(id: PublisherLoad.ID) {
    self.id = id
    super.init(priority: .current, hasCaller: true)
  }

  /// Starts the task of the load.
  ///
  /// - Parameter make: Makes the task with the priority of the callers. It gets the ``result(of:)`` of the operation,
  ///   and finishes the load.
  @usableFromInline
  func run(_ make: (TaskPriority?) -> Task<Void, Never>) {
    addTask(make)
  }

  /// Runs the operation as work of the load.
  @inlinable
  @inline(__always)
  func result<Value: Sendable>(
    of operation: @concurrent @Sendable () async throws -> Value
  ) async -> Result<Value, any Error> {
    do {
      return .success(try await WaitScope.local.withValue(self, operation: operation))
    } catch {
      return .failure(error)
    }
  }

  /// Waits for the outcome.
  ///
  /// - Parameters:
  ///   - place: The place of the caller.
  ///   - begin: Called before the wait, if the caller can wait.
  ///   - leave: Called when the caller has to leave: see ``depart(_:)``. It returns whether the caller was still
  ///     waiting.
  /// - Returns: An outcome with a value.
  /// - Throws: The error of the operation; a `CancellationError` if the caller has left;
  ///   ``LoadError/recursiveLoad`` if it would wait for itself.
  @usableFromInline
  func outcome(
    in place: WaitPlace,
    begin: () -> Void,
    leave: @Sendable () -> Bool
  ) async throws -> Outcome {
    let scope = WaitScope.awaited
    if let scope, WaitGraph.wait(scope, for: self) != nil {
      _ = leave()
      withdraw(place)
      throw LoadError.recursiveLoad
    }
    begin()
    let outcome = await wait(
      in: place,
      onCancel: {
        if leave(), let scope { WaitGraph.stopWaiting(scope, for: self) }
      }
    )
    guard let outcome else { throw CancellationError() }
    if let scope { WaitGraph.stopWaiting(scope, for: self) }
    if let error = outcome.error { throw error }
    return outcome
  }

  /// Removes a caller, unless there is an outcome; the last one abandons the load.
  ///
  /// - Returns: The effects, to be performed with no lock held.
  @usableFromInline
  func depart(_ place: WaitPlace) -> PublisherLoad.Departure {
    let departure = leave(place)
    guard departure.isLast else { return PublisherLoad.Departure(departure: departure) }
    settle()
    // It is cancelled with no lock held. If it has not started yet, it is cancelled when it starts.
    return PublisherLoad.Departure(departure: departure, flight: self)
  }

  /// Ends the load, and passes the outcome to every caller; called with no lock held, after ``Flight/noteOutcome()``.
  @inlinable
  func finish<Value: Sendable>(_ result: Result<Value, any Error>) {
    switch result {
    case .success(let value): end(with: ValueOutcome(value))
    case .failure(let error): end(with: Outcome(.failure, error: error))
    }
  }
}

extension PublisherLoad {
  /// The effects of the departure of a caller, performed with no lock held.
  @usableFromInline
  struct Departure: Sendable {
    fileprivate let departure: Flight.Departure
    fileprivate var flight: Flight?

    /// Whether the caller was still waiting.
    @usableFromInline var hasLeft: Bool { departure.hasLeft }
    /// Whether it was the last one.
    @usableFromInline var isLast: Bool { departure.isLast }

    /// Resumes the caller, and cancels the operation if it was the last one.
    @usableFromInline
    func perform() {
      departure.resume()
      flight?.cancel()
    }
  }
}

extension Outcome {
  /// Returns the value of a load.
  @inlinable
  func value<Value: Sendable>(of type: Value.Type) -> Value {
    unsafe unsafeDowncast(self, to: ValueOutcome<Value>.self).value
  }
}
