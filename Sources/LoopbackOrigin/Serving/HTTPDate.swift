/// Returns a time in the HTTP date format: `Fri, 08 Feb 2013 06:00:00 GMT`.
///
/// - Parameter seconds: The time since 1 January 1970 without leap seconds, not negative.
/// - Returns: The formatted time.
func httpDate(secondsSince1970 seconds: Int) -> String {
  let (days, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
  // Years that begin in March end with the leap day; 400 of them have 146,097 days.
  let shifted = days + 719_468
  let (era, dayOfEra) = shifted.quotientAndRemainder(dividingBy: 146_097)
  let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let month = (5 * dayOfYear + 2) / 153
  let day = dayOfYear - (153 * month + 2) / 5 + 1
  let isAfterDecember = month >= 10
  let year = era * 400 + yearOfEra + (isAfterDecember ? 1 : 0)

  let months = ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"]
  // 1 January 1970 was a Thursday.
  let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days % 7]
  let clock = [second / 3_600, second / 60 % 60, second % 60].map(twoDigits).joined(separator: ":")
  return "\(weekday), \(twoDigits(day)) \(months[month]) \(year) \(clock) GMT"
}

private func twoDigits(_ number: Int) -> String {
  number < 10 ? "0\(number)" : "\(number)"
}
