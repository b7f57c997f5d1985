/// The schedule of announcements on the replayed day.
///
/// The data does not contain the times of announcements. Here, a flight is announced an hour before its
/// scheduled departure, a late one is reported as delayed at its scheduled departure, and a cancelled one as
/// cancelled half an hour before it.
struct Script: Sendable {
  /// The time between an announcement and the scheduled departure, in minutes.
  static let announcementLead = 60
  /// The time between a cancellation and the scheduled departure, in minutes.
  static let cancellationLead = 30

  /// A change of a flight and the time of its announcement.
  struct Entry: Hashable, Sendable {
    let time: ClockTime
    let change: FlightChange
  }

  /// The entries of the whole day by time, then by position in the timetable.
  let entries: [Entry]

  init(flights: [Flight]) {
    entries = flights.flatMap(Self.entries).sorted { $0.time < $1.time }
  }

  /// The time of the first announcement, or midnight if there is none.
  var begin: ClockTime {
    entries.first?.time ?? ClockTime(minutes: 0)
  }

  /// The time of the last announcement, or midnight if there is none.
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
