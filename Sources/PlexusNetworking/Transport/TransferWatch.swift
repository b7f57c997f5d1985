internal import Plexus
internal import PlexusSupport

/// The time limits of a request with its redirects.
final class TransferWatch: Sendable {
  /// A request that has taken too long, or is too slow.
  struct Elapsed: Error {}

  private let clock: any Clock<Duration>
  private let elapsed: @Sendable () -> Duration
  private let rate: HTTPRate?
  private let total: Duration?
  private let count = Locked(0)

  /// Creates the limits of a request that begins now.
  init(clock: any Clock<Duration>, rules: HTTPRules) {
    self.clock = clock
    elapsed = clock.stopwatch()
    rate = rules.minimumRate
    total = rules.totalTimeout
  }

  /// Counts bytes of the body.
  func receive(_ bytes: Int) {
    count.withLock { $0 += bytes }
  }

  /// Sends one of the requests.
  ///
  /// - Parameter send: A closure that sends it, and ends soon after its task was cancelled.
  /// - Throws: ``Elapsed`` if it takes too long, or is too slow; an error of the closure.
  func during(_ send: @escaping @concurrent @Sendable () async throws -> Void) async throws {
    guard rate != nil || total != nil else { return try await send() }
    count.withLock { $0 = 0 }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await send() }
      group.addTask { try await self.waitForEnd() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Returns never: it throws ``Elapsed``, or ends with its task.
  private func waitForEnd() async throws {
    while true {
      let left = total.map { $0 - elapsed() }
      if let left, left <= .zero { throw Elapsed() }
      let step = [rate?.duration, left].compactMap(\.self).min() ?? .zero
      try await clock.wait(step)
      guard let rate, step == rate.duration else { continue }
      let received = count.withLock { count in
        defer { count = 0 }
        return count
      }
      if received < rate.bytes { throw Elapsed() }
    }
  }
}

extension Clock<Duration> {
  /// Returns a closure that returns the time since this call.
  fileprivate func stopwatch() -> @Sendable () -> Duration {
    let begin = now
    return { begin.duration(to: now) }
  }
}
