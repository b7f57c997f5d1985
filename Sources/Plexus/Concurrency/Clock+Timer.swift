extension Clock<Duration> {
  /// Calls a closure after some time, unless the returned task is cancelled.
  ///
  /// - Parameters:
  ///   - duration: The time.
  ///   - firesAlways: Whether the closure is also called, early, if the sleep ends with an error.
  ///   - fire: The closure.
  /// - Returns: The task that waits.
  func timer(
    _ duration: Duration,
    firesAlways: Bool = false,
    _ fire: @escaping @Sendable () -> Void
  ) -> Task<Void, Never> {
    let deadline = deadline(after: duration)
    return Task.detached {
      do {
        try await sleep(until: deadline, tolerance: nil)
        fire()
      } catch {
        // The work was faster, or was cancelled.
        if firesAlways { fire() }
      }
    }
  }
}
