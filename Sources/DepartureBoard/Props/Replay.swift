import Plexus

/// The replay of the day, which moves the clock, posts events, and switches the origin off and on.
///
/// The data does not contain the times of announcements. Here, a flight is announced an hour before its scheduled
/// departure, a late one is reported as delayed at its scheduled departure, and a cancelled one as cancelled half an
/// hour before it.
///
/// Events of different types have no common order, and a moment must not end before all its events have been handled.
/// Each post is therefore awaited before the next one.
@MainActor
struct Replay {
  /// The step at maximum speed, where every response is awaited.
  ///
  /// It is shorter than the time for which failures are remembered, so that an outage shows their effect.
  private static let stepAtMaximum = Duration.minutes(10)
  /// The time between two moments of a live day.
  private static let beat = Duration.milliseconds(100)

  /// A change of a flight and the time of its announcement.
  struct Entry: Hashable, Sendable {
    let time: ClockTime
    let change: FlightChange
  }

  /// The entries of the day by time, then by position in the timetable.
  let entries: [Entry]
  /// The number of seconds of the day for each second; infinite for as fast as all requests are answered.
  let speed: Double
  /// The part of the day in which the origin is unavailable, if any.
  let outage: Range<ClockTime>?
  /// The time at which to stop, or `nil` to stop after the last announcement.
  let until: ClockTime?

  init(_ flights: [Flight], _ options: Options) {
    entries = flights.flatMap(Self.entries).sorted { $0.time < $1.time }
    speed = options.speed
    outage = options.outage
    until = options.until
  }

  /// The time of the first announcement.
  var begin: ClockTime {
    entries.first?.time ?? ClockTime(minutes: 0)
  }

  /// Replays the day to its end.
  ///
  /// - Parameters:
  ///   - clock: The clock of the day.
  ///   - bus: The bus for the events.
  ///   - setOrigin: A closure that switches the origin off and on.
  /// - Throws: A `CancellationError` if the task is cancelled, after the current moment has been handled, or the error of
  ///   switching the origin.
  func run(
    clock: DayClock,
    bus: EventBus,
    setOrigin: @MainActor (_ isOnline: Bool) async throws -> Void
  ) async throws {
    var entries = entries[...]
    var isOnline = true
    var beat = ContinuousClock.now
    var moment = begin
    while true {
      clock.advance(to: moment)
      if isOnline == (outage?.contains(moment) == true) {
        isOnline.toggle()
        try await setOrigin(isOnline)
        await bus.postAndWait(OriginChange(isOnline: isOnline))
      }
      while let entry = entries.first, entry.time <= moment {
        await bus.postAndWait(entry.change)
        entries.removeFirst()
      }
      await bus.postAndWait(MomentReached(moment: moment))
      try Task.checkCancellation()
      guard let next = self.moment(after: moment, step: try await step(&beat)) else { return }
      moment = next
    }
  }

  /// Returns the next moment, which skips neither the ends of an outage nor the end of the day, or `nil` at the end.
  func moment(after moment: ClockTime, step: Duration) -> ClockTime? {
    let end = until ?? entries.last?.time ?? begin
    let stops = [moment.advanced(by: step), outage?.lowerBound, outage?.upperBound, end]
    return moment < end ? stops.compactMap { $0 }.filter { $0 > moment }.min() : nil
  }

  /// Waits for the next moment and returns by how much the day has advanced.
  private func step(_ beat: inout ContinuousClock.Instant) async throws -> Duration {
    guard speed.isFinite else { return Self.stepAtMaximum }
    try await Task.sleep(until: beat + Self.beat, clock: .continuous)
    let now = ContinuousClock.now
    // The day pauses while the program is suspended, for example in the background.
    let passed = min(now - beat, Self.beat * 3)
    beat = now
    return passed * speed
  }

  private static func entries(of flight: Flight) -> [Entry] {
    func entry(_ time: ClockTime, _ status: FlightChange.Status) -> Entry {
      Entry(time: time, change: FlightChange(flight: flight.id, status: status))
    }
    let announced = entry(flight.scheduled.advanced(by: .minutes(-60)), .scheduled)
    guard let departed = flight.departed else {
      return [announced, entry(flight.scheduled.advanced(by: .minutes(-30)), .cancelled)]
    }
    let departure = entry(departed, .departed(at: departed))
    guard departed > flight.scheduled else { return [announced, departure] }
    return [announced, entry(flight.scheduled, .delayed(until: departed)), departure]
  }
}
