/// What a row shows of its flight beside the timetable: the answers to five questions, and a badge.
struct RowDetails: Hashable, Sendable {
  var airline = Cell<Airline>.pending
  /// Absent as well if no aircraft was ever assigned.
  var aircraft = Cell<Aircraft>.pending
  var origin = Cell<Airport>.pending
  var destination = Cell<Airport>.pending
  var weather = Cell<Weather>.pending
  /// The badge of the airline; nobody misses it if there is none.
  var badge: Badge?

  /// The number of stale answers.
  var staleCount: Int {
    [airline.isStale, aircraft.isStale, origin.isStale, destination.isStale, weather.isStale]
      .count { $0 }
  }

  /// Whether asking again could bring something better.
  var isWanting: Bool {
    airline.isWanting || aircraft.isWanting || origin.isWanting || destination.isWanting
      || weather.isWanting
  }

  /// Whether each question has an answer, if not a fresh one.
  var isAnswered: Bool {
    airline.isAnswered && aircraft.isAnswered && origin.isAnswered && destination.isAnswered
      && weather.isAnswered
  }
}
