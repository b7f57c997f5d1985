/// The attempts of one fetch: each under its time limit, with waits in between.
struct RetryLoop: Sendable {
  let engine: CacheEngine
  let flight: Flight

  /// Runs attempts until one succeeds, as often as the policy allows.
  ///
  /// It gives up early when no caller needs another attempt, because a value was stored or the flight was
  /// cancelled, and when the origin asks for a longer wait than the policy accepts.
  ///
  /// - Parameter attempt: The fetch; it is given the flight and the number of the attempt, beginning with 1.
  /// - Returns: The outcome of the first successful attempt.
  /// - Throws: The error of the last attempt.
  @inline(__always)
  func run(_ attempt: @escaping CacheEngine.Operations.Fetch) async throws -> Outcome {
    var number = 1
    while true {
      if flight.isCancelled { throw CancellationError() }
      do {
        guard let timeout = engine.policy.fetchTimeout else {
          return try await attempt(flight, number)
        }
        return try await limited(to: timeout, attempt, number)
      } catch {
        guard await waits(after: number, error) else { throw error }
        number += 1
      }
    }
  }

  /// Waits for the time of the next attempt.
  ///
  /// - Parameters:
  ///   - number: The number of the attempt that has failed.
  ///   - error: Its error.
  /// - Returns: Whether there is another attempt.
  private func waits(after number: Int, _ error: any Error) async -> Bool {
    guard !flight.isCancelled, !flight.isSettled, let wait = wait(after: number, error),
      await sleep(for: wait)
    else { return false }
    return !flight.isCancelled && !flight.isSettled
  }

  private func wait(after number: Int, _ error: any Error) -> Duration? {
    let policy = engine.policy
    let chance = policy.retry.jitter > 0 ? Double.random(in: -1...1) : 0
    let advice = (error as? any RetryAdvice)?.retryAfter
    if let advice, advice > policy.maximumRetryAfter { return nil }
    return policy.retry.wait(after: number, chance: chance, advice: advice)
  }

  /// Waits, unless the fetch is cancelled before.
  private func sleep(for duration: Duration) async -> Bool {
    do {
      try await engine.clock.wait(for: duration)
      return true
    } catch {
      return false
    }
  }

  /// Runs one attempt within its time limit, even if it ignores cancellation.
  private func limited(
    to timeout: Duration,
    _ attempt: @escaping CacheEngine.Operations.Fetch,
    _ number: Int
  ) async throws -> Outcome {
    let first = OneShot<Result<Outcome, any Error>>()
    let timer = engine.clock.timer(timeout) {
      first.set(.failure(MultiplexerError.fetchTimedOut(after: timeout)))
    }
    let task = flight.start { [flight] in
      do {
        first.set(.success(try await attempt(flight, number)))
      } catch {
        first.set(.failure(error))
      }
    }
    defer {
      timer.cancel()
      task.cancel()
      flight.remove(task)
    }
    return try await withTaskCancellationHandler(
      operation: { await first.value() },
      onCancel: { first.set(.failure(CancellationError())) }
    ).get()
  }
}

extension Clock<Duration> {
  /// Sleeps for some time, however long.
  fileprivate func wait(for duration: Duration) async throws {
    try await sleep(until: deadline(after: duration), tolerance: nil)
  }
}
