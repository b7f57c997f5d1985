// The attempts of one fetch: each under its time limit, with waits in between.

internal import Synchronization

extension CacheEngine {
  /// Runs attempts until one succeeds, as often as the policy allows, and notes the time that they have taken.
  ///
  /// It gives up early when no caller needs another attempt, because a value was stored or the flight was
  /// cancelled, and when the origin asks for a longer wait than the policy accepts.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - attempt: The fetch; it is given the flight and the number of the attempt, beginning with 1.
  /// - Returns: The outcome of the first successful attempt.
  /// - Throws: The error of the last attempt.
  @usableFromInline
  @inline(__always)
  final func attempts(
    of flight: Flight,
    _ attempt: @escaping Operations.Fetch
  ) async throws -> Outcome {
    guard flight.beginFetch() else { throw CancellationError() }
    if !flight.plan.isCounted { countFetch(flight, 1) }
    // A tick of the coarse clock would be too long for the duration of a fetch.
    let start = time.exactNow()
    defer {
      leaveOwnPlace(flight)
      flight.attempt.duration = .nanoseconds(max(0, time.exactNow().subtractingSaturating(start)))
    }
    var number = 1
    while true {
      flight.noteAttempt(at: time.now())
      flight.attempt.confirmationCount = confirmationCount
      if operations.work != nil {
        flight.attempt.lastRefresh = lastRefresh
        flight.attempt.fetchStart = fetchStart
      }
      do {
        guard let timeout = policy.fetchTimeout else { return try await attempt(flight, number) }
        return try await limited(to: timeout, flight, number, attempt)
      } catch {
        guard await waits(after: number, error, flight) else { throw error }
        number += 1
      }
    }
  }

  /// Waits for the time of the next attempt.
  ///
  /// - Parameters:
  ///   - number: The number of the attempt that has failed.
  ///   - error: Its error.
  ///   - flight: The flight.
  /// - Returns: Whether there is another attempt.
  private final func waits(after number: Int, _ error: any Error, _ flight: Flight) async -> Bool {
    guard !flight.isCancelled, !flight.isSettled, let wait = wait(after: number, error) else {
      return false
    }
    let limit = source.limit
    // The lease of a shared tier is kept, and so is the place.
    let hasPaused = limit?.isBeforeLeases == false && limit?.giveBack(placeOf: flight) == true
    guard await sleep(for: wait), !flight.isCancelled, !flight.isSettled else { return false }
    if let limit, await !hasPlace(for: flight, limit, hasPaused) { return false }
    return !flight.isCancelled && !flight.isSettled
  }

  /// Waits for the place of the next attempt, if the fetch has given back the one before, or if that is still in use: by a
  /// call that continues after its time limit, possibly for good.
  private final func hasPlace(
    for flight: Flight,
    _ limit: FetchLimit,
    _ hasPaused: Bool
  ) async -> Bool {
    guard limit.isHeld(flight) else {
      guard hasPaused else { return true }
      return await limit.takeBack(placeOf: flight, on: clock) == .granted
    }
    limit.leave(flight)
    let timeout = policy.fetchTimeout
    return await limit.takeBack(placeOf: flight, within: timeout, on: clock) == .granted
  }

  /// Leaves the place of a part of a fetch: one that only its own attempts use.
  private final func leaveOwnPlace(_ flight: Flight) {
    if let limit = source.limit, limit.isBeforeLeases, flight.whole !== flight {
      limit.leave(flight)
    }
  }

  private final func wait(after number: Int, _ error: any Error) -> Duration? {
    let chance = policy.retry.jitter > 0 ? Double.random(in: -1...1) : 0
    let advice = (error as? any RetryAdvice)?.retryAfter
    if let advice, advice > policy.maximumRetryAfter { return nil }
    return policy.retry.wait(after: number, chance: chance, advice: advice)
  }

  /// Waits, unless the fetch is cancelled before.
  private final func sleep(for duration: Duration) async -> Bool {
    do {
      try await clock.wait(for: duration)
      return true
    } catch {
      return false
    }
  }

  /// Runs one attempt within its time limit, even if it ignores cancellation.
  private final func limited(
    to timeout: Duration,
    _ flight: Flight,
    _ number: Int,
    _ attempt: @escaping Operations.Fetch
  ) async throws -> Outcome {
    let first = OneShot<Result<Outcome, any Error>>()
    let isInTime = OneShot<Bool>()
    // The task keeps them, and not the cache, which can be released before an attempt that never ends.
    let abandoned = abandoned
    let place = source.limit.flatMap { limit in limit.hold(flight).map { (limit, $0) } }
    let timer = clock.timer(timeout) {
      if isInTime.set(false) { abandoned.count.add(1, ordering: .relaxed) }
      first.set(.failure(MultiplexerError.fetchTimedOut(after: timeout)))
    }
    let task = flight.start {
      let result: Result<Outcome, any Error>
      do {
        result = .success(try await attempt(flight, number))
      } catch {
        result = .failure(error)
      }
      // Also after a cancellation: until then, the limit applies.
      timer.cancel()
      if !isInTime.set(true) { abandoned.count.subtract(1, ordering: .relaxed) }
      if let (limit, place) = place { limit.release(place) }
      first.set(result)
    }
    defer {
      task.cancel()
      flight.remove(task)
    }
    return try await withTaskCancellationHandler(
      operation: { await first.value() },
      onCancel: { first.set(.failure(CancellationError())) }
    ).get()
  }
}

extension CacheEngine {
  /// The number of attempts that continue after their time limit, because they ignore cancellation.
  final class AbandonedAttempts: Sendable {
    let count = Atomic<Int>(0)

    /// The number; an attempt can end before its limit is reported.
    var current: Int { max(0, count.load(ordering: .relaxed)) }
  }
}

extension Clock<Duration> {
  /// Sleeps for some time, however long.
  fileprivate func wait(for duration: Duration) async throws {
    try await sleep(until: deadline(after: duration), tolerance: nil)
  }
}
