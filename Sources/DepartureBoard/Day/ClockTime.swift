/// A time of the replayed day by the clock of New York, to the minute.
///
/// A time after midnight of the following day counts on: five past midnight after a late evening is
/// 24:05, and is written 00:05.
struct ClockTime: Hashable, Comparable, Sendable {
  /// The minutes since the midnight at which the day begins; negative on the day before.
  var minutes: Int

  init(minutes: Int) {
    self.minutes = minutes
  }

  /// The minute that has begun a while after midnight.
  init(sinceMidnight: Duration) {
    minutes = Int((Double(sinceMidnight.components.seconds) / 60).rounded(.down))
  }

  /// Reads `hhmm` without leading zeros, as the data has it: `5` is 00:05 and `2400` is midnight at
  /// the end of the day.
  init?(hhmm: String) {
    guard (1...4).contains(hhmm.utf8.count), hhmm.isDigits, let number = Int(hhmm) else {
      return nil
    }
    self.init(hour: number / 100, minute: number % 100)
  }

  /// Reads `HH:MM`, from `00:00` to `24:00`.
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

  /// The hour on the face of the clock, from 0 to 23.
  var hour: Int {
    minutesOfDay / 60
  }

  /// Whether two times look the same on a clock that does not show the date.
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
  /// `HH:MM`, as a clock shows it.
  var description: String {
    let minute = minutesOfDay % 60
    return "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)"
  }
}

extension StringProtocol {
  /// Whether there is nothing in the text but the digits 0 to 9.
  fileprivate var isDigits: Bool {
    utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}
