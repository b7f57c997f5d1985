import Foundation
import Plexus
import Synchronization

/// A clock that follows the replayed day, so that fetched values expire in the time of the day.
///
/// The caller of ``advance(to:)`` determines the speed.
final class DayClock: Clock, Sendable {
  /// A moment of the day.
  struct Instant: InstantProtocol {
    /// The time since the midnight at which the day begins.
    let sinceMidnight: Duration

    func advanced(by duration: Duration) -> Self {
      Self(sinceMidnight: sinceMidnight + duration)
    }

    func duration(to other: Self) -> Duration {
      other.sinceMidnight - sinceMidnight
    }

    static func < (left: Self, right: Self) -> Bool {
      left.sinceMidnight < right.sinceMidnight
    }
  }

  private let milliseconds: Atomic<Int>
  private let moves = Messenger<Instant>()

  /// Creates a clock that shows a moment of the day.
  init(at moment: Duration) {
    milliseconds = Atomic(Self.milliseconds(moment))
  }

  var now: Instant {
    Instant(sinceMidnight: .milliseconds(milliseconds.load(ordering: .acquiring)))
  }

  var minimumResolution: Duration {
    .milliseconds(1)
  }

  /// The moment as a date.
  var date: Date {
    CalendarDay.blizzard.date(now.sinceMidnight)
  }

  /// Moves the clock forward; has no effect on the time if the moment has passed.
  func advance(to moment: Duration) {
    let target = Self.milliseconds(moment)
    let (_, time) = milliseconds.max(target, ordering: .acquiringAndReleasing)
    moves.send(Instant(sinceMidnight: .milliseconds(time)))
  }

  /// Waits until the clock reaches a deadline.
  ///
  /// - Parameters:
  ///   - deadline: The moment to wait for.
  ///   - tolerance: Ignored, because the clock moves in steps.
  /// - Throws: A `CancellationError` if the task is cancelled first.
  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    // Subscribing before reading the clock ensures that no move is missed.
    let moves = moves.subscription()
    if now < deadline {
      for await moment in moves where moment >= deadline { break }
    }
    try Task.checkCancellation()
  }

  private static func milliseconds(_ duration: Duration) -> Int {
    // Dividing durations goes through floating point and can lose a millisecond.
    let (seconds, attoseconds) = duration.components
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}
