/// A time of the replayed day in New York, with a resolution of a minute.
///
/// Times after the following midnight continue the count: 24:05 is five past midnight and is displayed as
/// 00:05.
struct ClockTime: Hashable, Comparable, Sendable {
  /// The minutes since the midnight at which the day begins; negative on the day before.
  var minutes: Int

  init(minutes: Int) {
    self.minutes = minutes
  }

  /// Creates a time by rounding a duration since midnight down to a minute.
  init(sinceMidnight: Duration) {
    minutes = Int((Double(sinceMidnight.components.seconds) / 60).rounded(.down))
  }

  /// Parses `hhmm` without leading zeros: `5` is 00:05 and `2400` is midnight at the end of the day.
  init?(hhmm: String) {
    guard (1...4).contains(hhmm.utf8.count), hhmm.isDigits, let number = Int(hhmm) else {
      return nil
    }
    self.init(hour: number / 100, minute: number % 100)
  }

  /// Parses `HH:MM`, from `00:00` to `24:00`.
  init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard
      parts.count == 2, parts.allSatisfy(\.isDigits),
      (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      let hour = Int(parts[0]), let minute = Int(parts[1])
    else { return nil }
    self.init(hour: hour, minute: minute)
  }

  private init?(hour: Int, minute: Int) {
    guard (0..<60).contains(minute), (0..<24).contains(hour) || (hour == 24 && minute == 0) else {
      return nil
    }
    minutes = hour * 60 + minute
  }

  /// The time since the midnight at which the day begins.
  var sinceMidnight: Duration {
    .seconds(minutes * 60)
  }

  /// The displayed hour, from 0 to 23.
  var hour: Int {
    minutesOfDay / 60
  }

  /// Returns whether two times are equal apart from the date.
  func isSameOnTheClock(as other: Self) -> Bool {
    minutesOfDay == other.minutesOfDay
  }

  static func + (time: Self, minutes: Int) -> Self {
    Self(minutes: time.minutes + minutes)
  }

  static func - (time: Self, minutes: Int) -> Self {
    Self(minutes: time.minutes - minutes)
  }

  static func < (left: Self, right: Self) -> Bool {
    left.minutes < right.minutes
  }

  private var minutesOfDay: Int {
    let rest = minutes % (24 * 60)
    return rest < 0 ? rest + 24 * 60 : rest
  }
}

extension ClockTime: CustomStringConvertible {
  /// The time as `HH:MM`.
  var description: String {
    let minute = minutesOfDay % 60
    return "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)"
  }
}

extension StringProtocol {
  /// Whether the text consists of the digits 0 to 9 only.
  fileprivate var isDigits: Bool {
    utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}
