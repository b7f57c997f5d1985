/// The attempts of one fetch: each under its time limit, with waits in between.
struct Attempts: Sendable {
  /// How they have ended.
  enum Ending<Result: Sendable>: Sendable {
    case success(Result)
    case failure(any Error)
    /// The fetch was cancelled, or gave up by itself, with this error.
    case cancelled(any Error)
  }

  let policy: CachePolicy
  let clock: any Clock<Duration>
  let work: FlightWork

  /// Tries as often as the policy allows.
  ///
  /// - Parameters:
  ///   - isSettled: Whether nobody needs another try, because a value was stored in the meantime.
  ///   - attempt: What to try; it is given the number of the attempt.
  /// - Returns: How it has ended.
  func run<Result: Sendable>(
    unless isSettled: @Sendable () -> Bool,
    _ attempt: @escaping @concurrent @Sendable (Int) async throws -> Result
  ) async -> Ending<Result> {
    var number = 1
    while true {
      if work.isCancelled { return .cancelled(CancellationError()) }
      do {
        return .success(try await limited(attempt, number))
      } catch {
        if error is CancellationError || work.isCancelled { return .cancelled(error) }
        let chance = policy.retry.jitter > 0 ? Double.random(in: -1...1) : 0
        let advice = (error as? any RetryAdvice)?.retryAfter
        guard
          let wait = policy.retry.wait(after: number, chance: chance, advice: advice),
          !isSettled(),
          await sleep(for: wait),
          !isSettled()
        else { return work.isCancelled ? .cancelled(error) : .failure(error) }
        number += 1
      }
    }
  }

  /// Waits, unless the fetch is cancelled before.
  private func sleep(for duration: Duration) async -> Bool {
    do {
      try await clock.wait(for: duration)
      return true
    } catch {
      return false
    }
  }

  /// Runs one attempt for so long as it may take and not longer, whether it heeds cancellation or not.
  private func limited<Result: Sendable>(
    _ attempt: @escaping @concurrent @Sendable (Int) async throws -> Result,
    _ number: Int
  ) async throws -> Result {
    guard let timeout = policy.fetchTimeout else { return try await attempt(number) }
    let first = OneShot<Swift.Result<Result, any Error>>()
    let timer = clock.timer(timeout) {
      first.set(.failure(MultiplexerError.fetchTimedOut(after: timeout)))
    }
    let task = work.start {
      do {
        first.set(.success(try await attempt(number)))
      } catch {
        first.set(.failure(error))
      }
    }
    defer {
      timer.cancel()
      task.cancel()
      work.remove(task)
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

  /// Calls a closure when so much time has passed since this call, unless the task is cancelled.
  fileprivate func timer(
    _ duration: Duration,
    _ fire: @escaping @Sendable () -> Void
  ) -> Task<Void, Never> {
    let deadline = deadline(after: duration)
    return Task.detached {
      do {
        try await sleep(until: deadline, tolerance: nil)
        fire()
      } catch {
        // The fetch was faster, or was cancelled.
      }
    }
  }
}
