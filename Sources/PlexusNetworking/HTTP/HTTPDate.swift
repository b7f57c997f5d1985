/// A moment as HTTP writes it (RFC 9110, 5.6.7), in seconds since 1970-01-01T00:00Z.
enum HTTPDate {
  /// Returns the seconds of a date in any of the three forms that a recipient has to understand.
  ///
  /// - Parameter text: For instance `Sun, 06 Nov 1994 08:49:37 GMT`.
  /// - Returns: The seconds; `nil` if it is no date.
  static func seconds(_ text: String) -> Int? {
    let words = text.split { " ,-:\t".contains($0) }
    guard words.count >= 7 else { return nil }
    // The oldest form has the month before the day, and the year at the end.
    if let month = month(words[1]) {
      return seconds(
        year: words[6],
        month: month,
        day: words[2],
        time: words[3...5].compactMap { Int($0) }
      )
    }
    guard let month = month(words[2]) else { return nil }
    // Whatever is not Greenwich time is none of the forms.
    guard words.count > 7, ["gmt", "utc"].contains(words[7].lowercased()) else { return nil }
    return seconds(
      year: words[3],
      month: month,
      day: words[1],
      time: words[4...6].compactMap { Int($0) }
    )
  }

  private static func month(_ name: Substring) -> Int? {
    let names = [
      "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    return names.firstIndex(of: name.lowercased()).map { $0 + 1 }
  }

  private static func seconds(
    year: Substring,
    month: Int,
    day: Substring,
    time: [Int]
  ) -> Int? {
    guard var year = Int(year), let day = Int(day), time.count == 3 else { return nil }
    // Two digits are of the year 1970 to 2069.
    if (0..<100).contains(year) { year += year < 70 ? 2000 : 1900 }
    guard
      (1...9999).contains(year), (1...31).contains(day), (0...23).contains(time[0]),
      (0...59).contains(time[1]), (0...60).contains(time[2])
    else { return nil }
    return days(year: year, month: month, day: day) * 86_400
      + time[0] * 3600 + time[1] * 60 + time[2]
  }

  /// The days since 1970-01-01 in the Gregorian calendar, counted from March so that a leap day ends a year.
  private static func days(year: Int, month: Int, day: Int) -> Int {
    let years = month > 2 ? year : year - 1
    let months = (month + 9) % 12
    let leapDays = years / 4 - years / 100 + years / 400
    return 365 * years + leapDays + (153 * months + 2) / 5 + day - 1 - 719_468
  }
}
