import Foundation

/// A date in New York, which tells what clocks elsewhere show, summer time included.
struct CalendarDay: Sendable {
  /// The day that the board replays.
  static let blizzard = CalendarDay(year: 2013, month: 2, day: 8)

  private let midnight: Date
  private let home: TimeZone

  init(year: Int, month: Int, day: Int) {
    // Without a database of time zones the standard time of New York has to do.
    home = TimeZone(identifier: "America/New_York") ?? Self.zone(hoursFromUTC: -5)
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = home
    let components = DateComponents(year: year, month: month, day: day)
    midnight = calendar.date(from: components) ?? .distantPast
  }

  /// The moment some time after the midnight at which the day begins in New York.
  func date(_ sinceMidnight: Duration) -> Date {
    midnight.addingTimeInterval(Double(sinceMidnight.components.seconds))
  }

  /// What a clock at an airport shows when a clock in New York shows a time.
  ///
  /// - Parameters:
  ///   - time: The time in New York.
  ///   - airport: The airport, whose offset from UTC is taken where its time zone is not known.
  /// - Returns: The time there, on the next day past 24:00 and on the day before below zero.
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
