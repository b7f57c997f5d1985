/// The moments at which the replay stops.
///
/// No step skips the beginning or end of an outage or the end of the day.
struct Timeline: Sendable {
  let begin: Duration
  let end: Duration
  private let outage: Range<Duration>?

  /// Creates the timeline of a script.
  ///
  /// - Parameters:
  ///   - script: The schedule of announcements.
  ///   - outage: The outage of the origin, if any.
  ///   - until: The time at which to stop, or `nil` to stop after the last announcement.
  init(script: Script, outage: Outage?, until: ClockTime?) {
    begin = script.begin.sinceMidnight
    let end = (until ?? script.end).sinceMidnight
    self.end = max(begin, end)
    self.outage = outage.map { $0.begin.sinceMidnight..<$0.end.sinceMidnight }
  }

  /// Returns the moment that follows another one.
  ///
  /// - Parameters:
  ///   - moment: The previous moment.
  ///   - step: The maximum distance to the next one.
  /// - Returns: A later moment, or `nil` at the end.
  func moment(after moment: Duration, step: Duration) -> Duration? {
    guard moment < end else { return nil }
    let stops = [outage?.lowerBound, outage?.upperBound].compactMap { $0 }.filter { $0 > moment }
    return ([moment + step, end] + stops).min()
  }

  /// Returns whether the origin is available at a moment.
  func isOnline(at moment: Duration) -> Bool {
    outage?.contains(moment) != true
  }
}
