/// The details of a flight beside its timetable: five lookups, and a badge.
struct RowDetails: Hashable, Sendable {
  var airline = Cell<Airline>.pending
  /// It is also absent if no aircraft was ever assigned.
  var aircraft = Cell<Aircraft>.pending
  var origin = Cell<Airport>.pending
  var destination = Cell<Airport>.pending
  var weather = Cell<Weather>.pending
  /// The badge of the airline, which is optional.
  var badge: Badge?

  /// The number of stale answers.
  var staleCount: Int {
    [airline.isStale, aircraft.isStale, origin.isStale, destination.isStale, weather.isStale]
      .count { $0 }
  }

  /// Whether another lookup could improve an answer.
  var isWanting: Bool {
    airline.isWanting || aircraft.isWanting || origin.isWanting || destination.isWanting
      || weather.isWanting
  }

  /// Whether all lookups have an answer, fresh or stale.
  var isAnswered: Bool {
    airline.isAnswered && aircraft.isAnswered && origin.isAnswered && destination.isAnswered
      && weather.isAnswered
  }
}
