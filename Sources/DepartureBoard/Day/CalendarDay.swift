import Foundation

/// A date in New York, used to convert clock times between time zones.
struct CalendarDay: Sendable {
  /// The day that the board replays.
  static let blizzard = CalendarDay(year: 2013, month: 2, day: 8)

  private let midnight: Date
  private let home: TimeZone

  init(year: Int, month: Int, day: Int) {
    // Without a time zone database, the standard time of New York is used.
    home = TimeZone(identifier: "America/New_York") ?? Self.zone(hoursFromUTC: -5)
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = home
    let components = DateComponents(year: year, month: month, day: day)
    midnight = calendar.date(from: components) ?? .distantPast
  }

  /// Returns the moment at an offset from the midnight at which the day begins in New York.
  func date(_ sinceMidnight: Duration) -> Date {
    midnight.addingTimeInterval(Double(sinceMidnight.components.seconds))
  }

  /// Returns the local time at an airport for a time in New York.
  ///
  /// - Parameters:
  ///   - time: The time in New York.
  ///   - airport: The airport. Its offset from UTC is used if its time zone is unknown.
  /// - Returns: The local time, which is past 24:00 on the next day and negative on the day before.
  func localTime(of time: ClockTime, at airport: Airport) -> ClockTime {
    let there = TimeZone(identifier: airport.timeZone) ?? Self.zone(hoursFromUTC: airport.utcOffset)
    let moment = midnight.addingTimeInterval(Double(time.minutes) * 60)
    let difference = there.secondsFromGMT(for: moment) - home.secondsFromGMT(for: moment)
    return time + difference / 60
  }

  private static func zone(hoursFromUTC hours: Int) -> TimeZone {
    TimeZone(secondsFromGMT: hours * 3600) ?? .gmt
  }
}
