import Foundation
import Plexus

/// A time of the replayed day in New York.
///
/// Times after the following midnight continue the count: 24:05 is five past midnight and is displayed as 00:05.
struct ClockTime: InstantProtocol, Codable {
  /// The times of a day whose flights leave from the evening before to the next evening.
  static let range = ClockTime(minutes: -24 * 60)..<ClockTime(minutes: 48 * 60)

  /// The time since the midnight at which the day begins.
  let sinceMidnight: Duration

  init(sinceMidnight: Duration) {
    self.sinceMidnight = sinceMidnight
  }

  init(minutes: Int) {
    sinceMidnight = .minutes(minutes)
  }

  /// Parses `HH:MM`, from `00:00` to `24:00`.
  init?(_ text: String) {
    guard
      let match = text.wholeMatch(of: /([0-9]{1,2}):([0-5][0-9])/),
      let hour = Int(match.1), let minute = Int(match.2), hour * 60 + minute <= 24 * 60
    else { return nil }
    self.init(minutes: hour * 60 + minute)
  }

  /// The number of whole minutes since midnight.
  var minutes: Int {
    Int(sinceMidnight.components.seconds) / 60
  }

  /// The displayed hour, from 0 to 23.
  var hour: Int {
    minuteOfDay / 60
  }

  /// The time as a date of 8 February 2013, which began at 05:00 UTC in New York.
  var date: Date {
    Date(timeIntervalSince1970: 1_360_299_600 + sinceMidnight / .seconds(1))
  }

  /// Returns the time that clocks in a time zone show.
  func local(in zone: TimeZone) -> Self {
    advanced(by: .seconds(zone.secondsFromGMT(for: date)) + .minutes(5 * 60))
  }

  func advanced(by duration: Duration) -> Self {
    Self(sinceMidnight: sinceMidnight + duration)
  }

  func duration(to other: Self) -> Duration {
    other.sinceMidnight - sinceMidnight
  }

  static func < (left: Self, right: Self) -> Bool {
    left.sinceMidnight < right.sinceMidnight
  }

  private var minuteOfDay: Int {
    // No flight leaves more than a day before.
    let seconds = Int(sinceMidnight.components.seconds) + 24 * 3600
    return seconds / 60 % (24 * 60)
  }
}

extension ClockTime: CustomStringConvertible {
  /// The time as `HH:MM`.
  var description: String {
    String(format: "%02d:%02d", hour, minuteOfDay % 60)
  }
}

extension Duration {
  /// Returns a number of minutes.
  static func minutes(_ count: Int) -> Self {
    .seconds(60 * count)
  }
}

/// A clock that follows the replayed day, so that fetched values expire in the time of the day.
final class DayClock: Clock {
  let minimumResolution: Swift.Duration = .milliseconds(1)
  private let time: CurrentValue<ClockTime>

  /// Creates a clock that shows a time until it is advanced.
  init(at time: ClockTime) {
    self.time = CurrentValue(time)
  }

  var now: ClockTime {
    time.value
  }

  /// Moves the clock forward.
  func advance(to time: ClockTime) {
    self.time.value = time
  }

  /// Waits until the clock reaches a deadline.
  ///
  /// - Parameters:
  ///   - deadline: The time to wait for.
  ///   - tolerance: Ignored, because the clock moves in steps.
  /// - Throws: A `CancellationError` if the task is cancelled first.
  func sleep(until deadline: ClockTime, tolerance: Duration?) async throws {
    for await time in time.subscription() where time >= deadline { break }
    try Task.checkCancellation()
  }
}
