/// What has become known since the last one, for those who read the board line by line.
struct Bulletin: Hashable, Sendable {
  /// The time at which it is given.
  var time = ClockTime(minutes: 0)
  var isOriginOnline = true
  /// The rows whose fate has become known, in the order in which the flights left or should have.
  var rows: [BoardRow] = []
  /// Whether the day is over.
  var isLast = false
}
