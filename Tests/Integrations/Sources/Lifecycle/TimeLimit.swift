struct TimeLimitExceeded: Error {
  let limit: Duration
}

/// Performs an operation, also in a task that is cancelled, and returns after a time at most.
func within(
  _ limit: Duration,
  clock: any Clock<Duration> = ContinuousClock(),
  _ operation: @escaping @Sendable () async throws -> Void
) async throws {
  let (results, continuation) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
  let work = Task {
    do {
      continuation.yield(.success(try await operation()))
    } catch {
      continuation.yield(.failure(error))
    }
  }
  let timer = Task {
    try await clock.sleep(for: limit)
    continuation.yield(.failure(TimeLimitExceeded(limit: limit)))
  }
  // The first result counts. A task of its own waits for it, since that of the caller can be cancelled.
  let first = Task {
    for await result in results { return result }
    return .failure(CancellationError())
  }
  let result = await first.value
  timer.cancel()
  work.cancel()
  try result.get()
}
