import PlexusTesting
import TestSupport

/// A clock that can be set back and ahead like one on the wall.
final class WallClock: Clock, Sendable {
  typealias Instant = ManualClock.Instant

  let manual = ManualClock()
  private let offset = Guarded(Duration.zero)

  var now: Instant { manual.now.advanced(by: offset.withLock { $0 }) }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    while now < deadline {
      let remaining = now.duration(to: deadline)
      try await manual.sleep(until: manual.now.advanced(by: remaining), tolerance: tolerance)
    }
  }

  /// Changes what the clock shows; those who sleep notice when they wake.
  func set(by duration: Duration) {
    offset.withLock { $0 += duration }
  }
}

/// A manual clock on which something may happen between its reading and the use that is made of it.
final class InterruptedClock: Clock, Sendable {
  let manual = ManualClock()
  private let interruptions = Guarded<[@Sendable () -> Void]>([])

  var now: ManualClock.Instant {
    let now = manual.now
    interruptions.withLock { $0.popLast() }?()
    return now
  }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    try await manual.sleep(until: deadline, tolerance: tolerance)
  }

  /// Interrupts a reading.
  ///
  /// - Parameters:
  ///   - number: Which one, counted from the next.
  ///   - body: What happens before it is returned.
  func interrupt(_ number: Int, _ body: @escaping @Sendable () -> Void) {
    interruptions.withLock { $0 = [body] + Array(repeating: {}, count: number) }
  }
}

/// The clock of the system, which tells that somebody is about to sleep.
struct WatchedClock: Clock {
  let sleeps = Log<ContinuousClock.Instant>()

  var now: ContinuousClock.Instant { .now }

  var minimumResolution: Duration { ContinuousClock().minimumResolution }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    sleeps.append(deadline)
    try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
  }
}

/// A clock that does not let anybody sleep.
struct SleeplessClock: Clock {
  struct Awake: Error {}

  let manual = ManualClock()

  var now: ManualClock.Instant { manual.now }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    throw Awake()
  }
}

/// A clock whose sleepers do not notice that they are cancelled.
final class StubbornClock: Clock, Sendable {
  let manual = ManualClock()
  let sleepers = Log<CheckedContinuation<Void, Never>>()

  var now: ManualClock.Instant { manual.now }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    await withCheckedContinuation { sleepers.append($0) }
  }
}

/// A manual clock that counts what it is asked for.
final class CountingClock: Clock, Sendable {
  let manual = ManualClock()
  let sleeps = Guarded(0)

  var now: ManualClock.Instant { manual.now }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    sleeps.countUp()
    try await manual.sleep(until: deadline, tolerance: tolerance)
  }
}
