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
    let offset = offset.withLock { $0 }
    try await manual.sleep(until: deadline.advanced(by: .zero - offset), tolerance: tolerance)
  }

  /// Changes what the clock shows; those who sleep notice nothing.
  func set(by duration: Duration) {
    offset.withLock { $0 += duration }
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
