/// The news since the last bulletin, for output line by line.
struct Bulletin: Hashable, Sendable {
  /// The time of the bulletin.
  var time = ClockTime(minutes: 0)
  var isOriginOnline = true
  /// The rows that have reached their final status, in the order of departure.
  var rows: [BoardRow] = []
  /// Whether the day is over.
  var isLast = false
}
