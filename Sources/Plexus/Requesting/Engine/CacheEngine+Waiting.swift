extension CacheEngine {
  /// Waits for a flight.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - place: The place that the caller has taken.
  ///   - scope: The fetch or load that the caller works for, whose wait is recorded.
  ///   - isSoft: Whether a stale value is the answer once the soft timeout is over.
  /// - Returns: An outcome with a value.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller is cancelled.
  @usableFromInline
  final func wait(
    for flight: Flight,
    in place: WaitPlace,
    scope: WaitNode?,
    isSoft: Bool = false
  ) async throws -> Outcome {
    let soft = isSoft ? softTimeout([PendingPlace(flight: flight, place: place)], scope) : nil
    let outcome = await flight.wait(in: place) { self.leave(flight, place, scope: scope) }
    soft?.timer.cancel()
    if outcome == nil, let answer = soft?.answers[0] { return answer }
    guard let outcome else { throw CancellationError() }
    if let scope { WaitGraph.stopWaiting(scope, for: flight) }
    return try outcome.get()
  }

  /// Records that a fetch or load waits for a flight.
  ///
  /// - Returns: ``MultiplexerError/recursiveRequest(chain:)`` if it would wait for itself, in which case the place
  ///   is released.
  @usableFromInline
  final func enter(
    _ scope: WaitNode,
    waitingFor flight: Flight,
    in place: WaitPlace
  ) -> MultiplexerError? {
    guard let chain = WaitGraph.wait(scope, for: flight) else { return nil }
    leave(flight, place, scope: nil)
    flight.withdraw(place)
    return .recursiveRequest(chain: chain)
  }

  /// Removes a caller that no longer waits.
  final func leave(_ flight: Flight, _ place: WaitPlace, scope: WaitNode?) {
    let departure = flight.leave(place)
    if departure.hasLeft, let scope { WaitGraph.stopWaiting(scope, for: flight) }
    if departure.isLast, policy.whenUnobserved == .cancel || source.limit != nil {
      abandon(flight)
    }
    departure.resume()
  }

  /// The stale values that answer callers in place of their fetches.
  final class SoftAnswers: Sendable {
    private let outcomes = Locked<[Int: Outcome]>([:])

    subscript(index: Int) -> Outcome? {
      outcomes.withLock { $0[index] }
    }

    func set(_ outcome: Outcome, at index: Int) {
      outcomes.withLock { $0[index] = outcome }
    }
  }

  /// Answers callers with stale values after the soft timeout, unless their fetches have ended.
  final func softTimeout(
    _ places: [PendingPlace],
    _ scope: WaitNode?
  ) -> (timer: Task<Void, Never>, answers: SoftAnswers)? {
    guard let timeout = policy.softTimeout else { return nil }
    let answers = SoftAnswers()
    let timer = clock.timer(timeout) { [self] in
      for (index, place) in places.enumerated().reversed() {
        guard let answer = softAnswer(to: place.flight) else { continue }
        // Set before the caller can observe that it has left.
        answers.set(answer, at: index)
        let departure = place.flight.leave(place.place)
        if departure.hasLeft, let scope { WaitGraph.stopWaiting(scope, for: place.flight) }
        // It continues without callers, and waits for its place like others without them.
        if departure.isLast, let limit = source.limit { limit.updateCallers(of: place.flight) }
        departure.resume()
      }
    }
    return (timer, answers)
  }

  /// Returns the error of a request that must not wait.
  @usableFromInline
  final func refusal(isOwn: Bool, scope: WaitNode?) -> any Error {
    guard isOwn, let label = scope?.label else { return CancellationError() }
    return MultiplexerError.recursiveRequest(chain: [label, label])
  }
}
