/// A moment as HTTP writes it (RFC 9110, 5.6.7), in seconds since 1970-01-01T00:00Z.
enum HTTPDate {
  /// Returns the seconds of a date in exactly one of the three forms that a recipient has to understand, in
  /// whatever case.
  ///
  /// - Parameters:
  ///   - text: For instance `Sun, 06 Nov 1994 08:49:37 GMT`.
  ///   - now: The present time. A year of two digits is less than fifty years ahead of it.
  /// - Returns: The seconds; `nil` if it is no date, or not one of Greenwich time.
  static func seconds(_ text: String, now: Int64? = nil) -> Int64? {
    let text = text.lowercased()
    return fixed(text) ?? obsolete(text, now: now) ?? asctime(text)
  }

  /// Returns the seconds of a date in a cookie, which is written in many ways (RFC 6265, 5.1.1).
  ///
  /// Its words count in any order: the first of each kind.
  static func cookieSeconds(_ text: String) -> Int64? {
    var (time, day, month, year) = ([Int]?.none, Int?.none, Int?.none, Int?.none)
    for word in text.lowercased().split(whereSeparator: { !isOfWord($0) }) {
      let digits = word.prefix { $0.isASCII && $0.isNumber }
      let parts = word.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
      if time == nil, parts.count == 3, !parts.contains(nil) {
        time = parts.compactMap(\.self)
      } else if day == nil, (1...2).contains(digits.count) {
        day = Int(digits)
      } else if month == nil, let number = Self.month(word.prefix(3)) {
        month = number
      } else if year == nil, (2...4).contains(digits.count) {
        year = Int(digits)
      }
    }
    guard let time, let day, let month, var year else { return nil }
    if (0..<100).contains(year) { year += year < 70 ? 2000 : 1900 }
    guard year >= 1601 else { return nil }
    return seconds(year: year, month: month, day: day, time: time)
  }

  private static func isOfWord(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == ":"
  }

  /// Reads `sun, 06 nov 1994 08:49:37 gmt`.
  private static func fixed(_ text: String) -> Int64? {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 6, words[0].last == ",", days.contains(words[0].dropLast()),
      words[5] == "gmt", let day = number(words[1], digits: 2), let month = month(words[2]),
      let year = number(words[3], digits: 4)
    else { return nil }
    return seconds(year: year, month: month, day: day, time: time(words[4]))
  }

  /// Reads `sunday, 06-nov-94 08:49:37 gmt`.
  private static func obsolete(_ text: String, now: Int64?) -> Int64? {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 4, words[0].last == ",", longDays.contains(words[0].dropLast()),
      words[3] == "gmt"
    else { return nil }
    let date = words[1].split(separator: "-", omittingEmptySubsequences: false)
    guard date.count == 3, let day = number(date[0], digits: 2), let month = month(date[1]),
      let short = number(date[2], digits: 2)
    else { return nil }
    // About: a year has 31,556,952 seconds.
    let present = now.map { 1970 + Int(clamping: $0 / 31_556_952) } ?? 2020
    var year = present / 100 * 100 + short
    if year > present + 50 { year -= 100 } else if year <= present - 50 { year += 100 }
    return seconds(year: year, month: month, day: day, time: time(words[2]))
  }

  /// Reads `sun nov  6 08:49:37 1994`.
  private static func asctime(_ text: String) -> Int64? {
    var words = text.split(separator: " ", omittingEmptySubsequences: false)
    // A day of one digit has a second space before it.
    let isShort = words.count == 6 && words[2].isEmpty
    if isShort { words.remove(at: 2) }
    guard words.count == 5, days.contains(words[0]), let month = month(words[1]),
      let day = number(words[2], digits: isShort ? 1 : 2), let year = number(words[4], digits: 4)
    else { return nil }
    return seconds(year: year, month: month, day: day, time: time(words[3]))
  }

  private static let days: Set<Substring> = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
  private static let longDays: Set<Substring> = [
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
  ]
  private static let months: [Substring] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]

  private static func month(_ name: Substring) -> Int? {
    months.firstIndex(of: name).map { $0 + 1 }
  }

  private static func number(_ text: Substring, digits: Int) -> Int? {
    guard text.utf8.count == digits, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
      return nil
    }
    return Int(text)
  }

  private static func time(_ text: Substring) -> [Int] {
    text.split(separator: ":", omittingEmptySubsequences: false)
      .compactMap { number($0, digits: 2) }
  }

  private static func seconds(year: Int, month: Int, day: Int, time: [Int]) -> Int64? {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    guard
      (1...9999).contains(year), (1...length).contains(day), time.count == 3,
      (0...23).contains(time[0]), (0...59).contains(time[1]), (0...60).contains(time[2])
    else { return nil }
    // After 2038, more seconds than a number of 32 bits holds.
    return Int64(daysSince1970(year: year, month: month, day: day)) * 86_400
      + Int64(time[0] * 3600 + time[1] * 60 + time[2])
  }

  /// The days since 1970-01-01 in the Gregorian calendar, counted from March so that a leap day ends a year.
  private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let years = month > 2 ? year : year - 1
    let months = (month + 9) % 12
    let leapDays = years / 4 - years / 100 + years / 400
    return 365 * years + leapDays + (153 * months + 2) / 5 + day - 1 - 719_468
  }
}
