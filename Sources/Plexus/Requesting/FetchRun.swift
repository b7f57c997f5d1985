/// One flight's work: the fetch, its timeout and its retries.
struct FetchRun<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let core: RequestCore<Key, Value>
  let launch: Launch<Key, Value>

  private var policy: CachePolicy { core.policy }
  private var flight: Flight<Key, Value> { launch.flight }

  /// Fetches, as often as the policy allows.
  ///
  /// - Returns: How it has ended.
  func outcome() async -> FetchEnding<Value> {
    var attempt = 1
    while true {
      if flight.work.isCancelled { return .cancelled(CancellationError()) }
      do {
        return try ending(with: await fetch(attempt: attempt))
      } catch {
        if error is CancellationError || flight.work.isCancelled { return .cancelled(error) }
        let chance = policy.retry.jitter > 0 ? Double.random(in: -1...1) : 0
        // Nobody needs another try if a value was stored in the meantime.
        guard let wait = policy.retry.wait(after: attempt, chance: chance), !flight.mark.isSettled,
          await sleep(for: wait)
        else { return failure(error) }
        attempt += 1
      }
    }
  }

  private func failure(_ error: any Error) -> FetchEnding<Value> {
    if flight.work.isCancelled { return .cancelled(error) }
    return .failure(
      error,
      usesValue: policy.usesCachedValue(error),
      memory: Nanoseconds(saturating: policy.failureTimeToLive)
    )
  }

  /// Waits, unless the flight is cancelled before.
  private func sleep(for duration: Duration) async -> Bool {
    do {
      try await core.clock.wait(for: duration)
      return true
    } catch {
      return false
    }
  }

  private func ending(with result: FetchResult<Value>) throws -> FetchEnding<Value> {
    switch result {
    case .value(let value, let timeToLive, let validator):
      let own = timeToLive.map { Nanoseconds(saturating: $0) }
      return .value(value, validator: validator, lifetime: core.lifetime(own: own))
    case .notModified(let timeToLive):
      guard let value = launch.previousValue else {
        throw MultiplexerError.notModifiedWithoutValue
      }
      let own = timeToLive.map { Nanoseconds(saturating: $0) } ?? launch.ownTimeToLive
      return .value(value, validator: launch.validator, lifetime: core.lifetime(own: own))
    }
  }

  private func fetch(attempt: Int) async throws -> FetchResult<Value> {
    let context = FetchContext(
      previousValue: launch.previousValue,
      validator: launch.validator,
      attempt: attempt
    )
    guard let timeout = policy.fetchTimeout else { return try await fetch(context) }
    return try await fetch(context, timeout: timeout)
  }

  /// Runs the user's fetch, known as the work of this flight.
  private func fetch(_ context: FetchContext<Value>) async throws -> FetchResult<Value> {
    try await FlightScope.$current.withValue(flight.mark) {
      try await core.fetch(flight.key, context)
    }
  }

  /// Runs the user's fetch for so long and not longer, whether it heeds cancellation or not.
  private func fetch(
    _ context: FetchContext<Value>,
    timeout: Duration
  ) async throws -> FetchResult<Value> {
    let first = OneShot<Result<FetchResult<Value>, any Error>>()
    let timer = core.clock.timer(timeout) {
      first.set(.failure(MultiplexerError.fetchTimedOut(after: timeout)))
    }
    let work = flight.work.start {
      do {
        first.set(.success(try await fetch(context)))
      } catch {
        first.set(.failure(error))
      }
    }
    defer {
      timer.cancel()
      work.cancel()
      flight.work.remove(work)
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
