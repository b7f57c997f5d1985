/// The moments at which the replay stops to look around.
///
/// However long the steps, none leaps over the beginning or the end of an outage, or over the end.
struct Timeline: Sendable {
  let begin: Duration
  let end: Duration
  private let outage: Range<Duration>?

  /// Creates the timeline of a script.
  ///
  /// - Parameters:
  ///   - script: What is announced when.
  ///   - outage: When the origin is away.
  ///   - until: When to stop; `nil` for after the last announcement.
  init(script: Script, outage: Outage?, until: ClockTime?) {
    begin = script.begin.sinceMidnight
    let end = (until ?? script.end).sinceMidnight
    self.end = max(begin, end)
    self.outage = outage.map { $0.begin.sinceMidnight..<$0.end.sinceMidnight }
  }

  /// The moment that follows another one after a step, at most.
  ///
  /// - Parameters:
  ///   - moment: The moment before.
  ///   - step: How far to go if nothing is in the way.
  /// - Returns: A later moment; `nil` at the end.
  func moment(after moment: Duration, step: Duration) -> Duration? {
    guard moment < end else { return nil }
    let stops = [outage?.lowerBound, outage?.upperBound].compactMap { $0 }.filter { $0 > moment }
    return ([moment + step, end] + stops).min()
  }

  /// Whether the origin answers at a moment.
  func isOnline(at moment: Duration) -> Bool {
    outage?.contains(moment) != true
  }
}
