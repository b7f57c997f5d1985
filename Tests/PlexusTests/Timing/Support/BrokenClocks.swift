import PlexusTesting
import TestSupport

/// A clock that can be set back and ahead, like a wall clock.
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

  /// Changes the time; sleepers observe the change when they wake.
  func set(by duration: Duration) {
    offset.withLock { $0 += duration }
  }
}

/// A manual clock that can call a closure between a reading and its use.
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
  ///   - number: The number of readings before it.
  ///   - body: The closure to call before the reading returns.
  func interrupt(_ number: Int, _ body: @escaping @Sendable () -> Void) {
    interruptions.withLock { $0 = [body] + Array(repeating: {}, count: number) }
  }
}

/// The system's clock with a log of its sleeps.
struct WatchedClock: Clock {
  let sleeps = Log<ContinuousClock.Instant>()

  var now: ContinuousClock.Instant { .now }

  var minimumResolution: Duration { ContinuousClock().minimumResolution }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    sleeps.append(deadline)
    try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
  }
}

/// A clock whose sleeps throw immediately.
struct SleeplessClock: Clock {
  struct Awake: Error {}

  let manual = ManualClock()

  var now: ManualClock.Instant { manual.now }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    throw Awake()
  }
}

/// A clock whose sleepers ignore cancellation.
final class StubbornClock: Clock, Sendable {
  let manual = ManualClock()
  let sleepers = Log<CheckedContinuation<Void, Never>>()

  var now: ManualClock.Instant { manual.now }

  var minimumResolution: Duration { manual.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    await withCheckedContinuation { sleepers.append($0) }
  }
}

/// A manual clock that counts its sleeps.
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
