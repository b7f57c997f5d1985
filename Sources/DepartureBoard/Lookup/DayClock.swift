import Foundation
import Plexus
import Synchronization

/// A clock that runs with the replayed day, so that what is fetched goes stale in day time.
///
/// Who moves it decides how fast a day goes by.
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

  /// Creates a clock that stands still at a moment of the day.
  init(at moment: Duration) {
    milliseconds = Atomic(Self.milliseconds(moment))
  }

  var now: Instant {
    Instant(sinceMidnight: .milliseconds(milliseconds.load(ordering: .acquiring)))
  }

  var minimumResolution: Duration {
    .milliseconds(1)
  }

  /// The moment in the history of the world.
  var date: Date {
    CalendarDay.blizzard.date(now.sinceMidnight)
  }

  /// Moves the clock forward; a moment that has passed leaves it where it is.
  func advance(to moment: Duration) {
    let target = Self.milliseconds(moment)
    let (_, time) = milliseconds.max(target, ordering: .acquiringAndReleasing)
    moves.send(Instant(sinceMidnight: .milliseconds(time)))
  }

  /// Waits until the clock has been moved to a deadline or past it.
  ///
  /// - Parameters:
  ///   - deadline: The moment to wait for.
  ///   - tolerance: Of no importance: the clock goes in steps.
  /// - Throws: A `CancellationError` if the task is cancelled first.
  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    // Subscribed before the clock is read, the wait cannot miss a move.
    let moves = moves.subscription()
    if now < deadline {
      for await moment in moves where moment >= deadline { break }
    }
    try Task.checkCancellation()
  }

  private static func milliseconds(_ duration: Duration) -> Int {
    // Dividing durations would go through floating point, and lose a millisecond now and then.
    let (seconds, attoseconds) = duration.components
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}
