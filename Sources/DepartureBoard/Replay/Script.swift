/// When what is announced on the replayed day.
///
/// The data does not say when a flight was announced, delayed or cancelled. Here a flight is announced
/// an hour before its scheduled departure; a late one is called delayed when it should have left, and
/// a cancelled one cancelled half an hour before that.
struct Script: Sendable {
  /// How long before its departure a flight is announced, in minutes.
  static let announcementLead = 60
  /// How long before its departure a flight is cancelled, in minutes.
  static let cancellationLead = 30

  /// What becomes known of a flight, and when.
  struct Entry: Hashable, Sendable {
    let time: ClockTime
    let change: FlightChange
  }

  /// The whole day, in order of time; at the same time in the order of the timetable.
  let entries: [Entry]

  init(flights: [Flight]) {
    entries = flights.flatMap(Self.entries).sorted { $0.time < $1.time }
  }

  /// When the first announcement is made; midnight if there is none.
  var begin: ClockTime {
    entries.first?.time ?? ClockTime(minutes: 0)
  }

  /// When the last announcement is made; midnight if there is none.
  var end: ClockTime {
    entries.last?.time ?? ClockTime(minutes: 0)
  }

  private static func entries(of flight: Flight) -> [Entry] {
    let announced = Entry(
      time: flight.scheduled - announcementLead,
      change: .scheduled(flight)
    )
    guard let departed = flight.departed else {
      let time = flight.scheduled - cancellationLead
      return [announced, Entry(time: time, change: .cancelled(flight.id))]
    }
    let departure = Entry(time: departed, change: .departed(flight.id, at: departed))
    guard departed > flight.scheduled else { return [announced, departure] }
    let delay = Entry(
      time: flight.scheduled,
      change: .delayed(flight.id, until: departed)
    )
    return [announced, delay, departure]
  }
}
