// `unsafeDowncast` replaces a cast: only the publisher that has created a load finishes it, with outcomes of its own
// type.

/// Loads of publishers.
///
/// Callers join and leave under the lock of the publisher, so that a caller never joins a load that has just been
/// abandoned.
extension Flight {
  /// Creates a load for the current task, which has joined in ``WaitPlace/first``.
  @usableFromInline
  static func ofCaller() -> Flight {
    Flight(priority: .current, hasCaller: true)
  }

  /// Runs the operation as work of the load.
  @inlinable
  @inline(__always)
  final func result<Value: Sendable>(
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
  ///   - leave: Called when the caller has to leave: see ``leaveLoad(_:)``. It returns whether the caller was still
  ///     waiting.
  /// - Returns: An outcome with a value.
  /// - Throws: The error of the operation; a `CancellationError` if the caller has left;
  ///   ``LoadError/recursiveLoad`` if it would wait for itself.
  @usableFromInline
  final func loadOutcome(
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

  /// Removes a caller, unless there is an outcome; without callers the flight gets none.
  ///
  /// - Returns: The departure of the caller. If it was the last one, the load has to be cancelled with no lock held.
  @usableFromInline
  final func leaveLoad(_ place: WaitPlace) -> Departure {
    let departure = leave(place)
    if departure.isLast { settle() }
    return departure
  }
}

extension Outcome {
  /// Returns the value of a load.
  @inlinable
  func value<Value: Sendable>(of type: Value.Type) -> Value {
    unsafe unsafeDowncast(self, to: ValueOutcome<Value>.self).value
  }
}
