/// The time of a clock since the engine was created.
struct ElapsedTime: Sendable {
  private let read: @Sendable () -> Duration
  private let wait: @Sendable (Duration) async throws -> Void

  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    read = { start.duration(to: clock.now) }
    wait = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }

  /// The present time.
  var now: Duration { read() }

  /// Sleeps until a time, which does not move if the clock advances before the call.
  func sleep(until end: Duration) async throws {
    try await wait(end)
  }
}
