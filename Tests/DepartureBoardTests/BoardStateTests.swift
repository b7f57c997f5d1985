import Foundation
import Plexus
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The state of the board` {
  private var state = BoardState(flights: (0..<4).map { Flight.sample($0) })

  private mutating func announce(_ changes: FlightChange...) {
    for change in changes { state.apply(.flight(change)) }
  }

  private mutating func hear(_ changes: FlightChange...) {
    for change in changes { state.apply(.heard(change)) }
  }

  private mutating func clock(_ time: String) {
    state.apply(.clock(.at(time)))
  }

  private func departed(_ time: String) -> FlightChange.Status { .departed(at: .at(time)) }

  private func delayed(_ time: String) -> FlightChange.Status { .delayed(until: .at(time)) }

  @Test mutating func `counts each announced flight once`() {
    for id in 0..<3 { announce(.init(id, .scheduled)) }
    announce(.init(0, departed("10:00")), .init(1, .cancelled))
    announce(.init(0, departed("10:00")), .init(0, .cancelled), .init(1, .cancelled))
    announce(.init(1, departed("10:00")), .init(0, .scheduled))
    announce(.init(99, departed("10:00")), .init(-1, .cancelled))
    #expect(state.flightCount == 3)
    #expect(state.departedCount == 1)
    #expect(state.cancelledCount == 1)
    #expect(state.rows.map(\.status) == [departed("10:00"), .cancelled, .scheduled])
  }

  @Test mutating func `has its rows in the order in which flights are expected to leave`() {
    state = BoardState(flights: [.sample(0), .sample(1, at: "09:00"), .sample(2), .sample(3)])
    for id in 0..<4 { announce(.init(id, .scheduled)) }
    #expect(state.rows.map(\.id) == [1, 0, 2, 3])
    announce(.init(1, delayed("10:30")), .init(3, departed("09:55")), .init(2, .cancelled))
    #expect(state.rows.map(\.id) == [3, 0, 2, 1])
  }

  @Test mutating func `shows each change of another board once, and its own repetition not again`()
  {
    hear(.init(0, .scheduled), .init(0, delayed("10:30")))
    #expect(state.rows.map(\.status) == [delayed("10:30")])
    #expect(state.rows.map(\.isHeard) == [true])
    announce(.init(0, .scheduled), .init(0, delayed("10:30")))
    hear(.init(0, .scheduled), .init(0, delayed("10:30")))
    #expect(state.flightCount == 1)
    #expect(state.heardCount == 2)
    #expect(state.rows.map(\.isHeard) == [true])
    announce(.init(0, departed("10:31")))
    hear(.init(0, departed("10:31")), .init(0, delayed("10:40")), .init(0, .cancelled))
    #expect(state.rows.map(\.status) == [departed("10:31")])
    #expect(state.rows.map(\.isHeard) == [false])
    #expect(state.departedCount == 1 && state.cancelledCount == 0 && state.heardCount == 2)
  }

  @Test mutating func `shows a change of a flight that it has not announced itself`() {
    hear(.init(3, departed("10:02")))
    #expect(state.flightCount == 1 && state.departedCount == 1 && state.heardCount == 1)
    announce(.init(3, .scheduled), .init(3, delayed("10:02")), .init(3, departed("10:02")))
    #expect(state.flightCount == 1 && state.departedCount == 1)
    #expect(state.rows.map(\.status) == [departed("10:02")])
  }

  @Test mutating func `does not show changes of other programs that are not of this day`() {
    let end = Duration(secondsComponent: .max, attosecondsComponent: 0)
    for time in [ClockTime(sinceMidnight: end), ClockTime(sinceMidnight: .zero - end)] {
      hear(.init(0, .departed(at: time)), .init(0, .delayed(until: time)))
    }
    hear(.init(4, .cancelled), .init(-1, .cancelled))
    #expect(state.rows.isEmpty && state.heardCount == 0)
  }

  @Test mutating func `does not show a flight again that has left the board`() {
    announce(.init(0, .scheduled), .init(0, departed("10:00")))
    clock("10:00")
    state.answerAll()
    _ = state.report()
    clock("11:00")
    #expect(state.rows.isEmpty)
    hear(.init(0, .scheduled), .init(0, departed("10:00")), .init(0, .cancelled))
    #expect(state.rows.isEmpty)
    #expect(state.flightCount == 1 && state.heardCount == 0)
  }

  @Test mutating func `looks up the details of each row once if it is answered`() {
    clock("09:00")
    announce(.init(1, .scheduled), .init(0, .scheduled))
    #expect(state.lookUp().map(\.id) == [0, 1])
    #expect(state.pendingCount == 2)
    clock("23:00")
    #expect(state.lookUp().isEmpty)
    state.apply(.answered(.complete, for: 0))
    #expect(state.pendingCount == 1)
    clock("23:30")
    #expect(state.lookUp().isEmpty)
    #expect(state.rows.map(\.details) == [.complete, RowDetails()])
  }

  @Test(arguments: [
    RowDetails.unanswered, .stale, RowDetails(aircraft: .answered(nil, isStale: true)),
  ])
  mutating func `repeats a lookup with a stale or missing answer after ten minutes`(
    details: RowDetails
  ) {
    clock("09:00")
    announce(.init(0, .scheduled))
    state.answerAll(details)
    clock("09:09")
    #expect(state.lookUp().isEmpty)
    clock("09:10")
    #expect(state.lookUp().map(\.id) == [0])
  }

  @Test mutating func `counts stale answers, also of rows that have left`() {
    announce(.init(0, .scheduled), .init(1, .scheduled))
    _ = state.lookUp()
    state.apply(.answered(.stale, for: 0))
    state.apply(.answered(.complete, for: 1))
    state.apply(.answered(.stale, for: 99))
    #expect(state.staleCount == 4)
  }

  @Test mutating func `reports a row once, when its outcome is known and its lookup is answered`() {
    announce(.init(0, .scheduled))
    state.answerAll()
    #expect(state.report().isEmpty)
    announce(.init(0, .cancelled))
    #expect(state.report().map(\.id) == [0])
    #expect(state.report().isEmpty)
    announce(.init(1, .scheduled), .init(1, departed("10:00")))
    #expect(state.report().isEmpty)
    _ = state.lookUp()
    #expect(state.report().isEmpty)
    state.apply(.answered(.unanswered, for: 1))
    #expect(state.report().map(\.id) == [1])
  }

  @Test mutating func `removes a reported row ten minutes after its flight has departed`() {
    for id in 0..<3 { announce(.init(id, .scheduled)) }
    announce(.init(0, departed("10:05")), .init(1, .cancelled))
    clock("23:00")
    #expect(state.rows.count == 3)
    state.answerAll()
    _ = state.report()
    for (time, ids) in [("10:09", [1, 2, 0]), ("10:10", [2, 0]), ("10:15", [2]), ("23:00", [2])] {
      clock(time)
      #expect(state.rows.map(\.id) == ids)
    }
  }

  @Test mutating func `reports the time, the origin, the requests and the end`() {
    clock("09:07")
    state.apply(.origin(isOnline: false))
    state.apply(.report(CacheStatistics(hits: 5), isLast: false))
    #expect(state.statistics.requests == 5)
    #expect(state.bulletin == Bulletin(time: .at("09:07"), isOriginOnline: false))
    state.apply(.report(CacheStatistics(hits: 6), isLast: true))
    #expect(state.statistics.requests == 6)
    #expect(state.bulletin.isLast)
  }
}

// MARK: - Samples

extension BoardState {
  /// Starts the lookups of all incomplete rows.
  mutating func lookUp() -> [Flight] {
    let flights = flightsToLookUp
    apply(.lookedUp(flights.map(\.id)))
    return flights
  }

  /// Answers all pending lookups.
  mutating func answerAll(_ details: RowDetails = .complete) {
    for flight in lookUp() { apply(.answered(details, for: flight.id)) }
  }

  /// The rows of the next bulletin.
  mutating func report() -> [BoardRow] {
    apply(.report(CacheStatistics(), isLast: false))
    return bulletin.rows
  }
}

extension ClockTime {
  /// Returns the time of an `HH:MM` string, or the distant future for other strings.
  static func at(_ text: String) -> Self {
    Self(text) ?? Self(minutes: 1_000_000)
  }
}

extension Flight {
  /// A flight from Newark to Honolulu.
  static func sample(
    _ id: Int,
    at scheduled: String = "10:00",
    departed: String? = nil,
    tailNumber: String? = "N76065"
  ) -> Self {
    Self(
      id: id,
      scheduled: .at(scheduled),
      departed: departed.map(ClockTime.at),
      carrier: "UA",
      number: 15,
      tailNumber: tailNumber,
      origin: "EWR",
      destination: "HNL",
      minutesInTheAir: 660
    )
  }
}

extension FlightChange {
  init(_ flight: Flight.ID, _ status: Status) {
    self.init(flight: flight, status: status)
  }
}

extension RowDetails {
  /// Details with fresh answers only.
  static let complete = details(isStale: false)

  /// Details with stale answers for the airport of departure and its weather, and fresh answers otherwise.
  static let stale = details(isStale: true)

  /// Details without any answer.
  static let unanswered = RowDetails(
    airline: .unanswered,
    aircraft: .unanswered,
    origin: .unanswered,
    destination: .unanswered,
    weather: .unanswered
  )

  private static func details(isStale: Bool) -> Self {
    let newark = Airport(name: "Newark Liberty", timeZone: "America/New_York")
    let honolulu = Airport(name: "Honolulu", timeZone: "Pacific/Honolulu")
    let weather = Weather(temperature: 35.06, windSpeed: 10.4, visibility: 10)
    return RowDetails(
      airline: .answered(Airline(name: "United Air Lines"), isStale: false),
      aircraft: .answered(Aircraft(name: "Boeing 767-424ER"), isStale: false),
      origin: .answered(newark, isStale: isStale),
      destination: .answered(honolulu, isStale: false),
      weather: .answered(weather, isStale: isStale)
    )
  }
}
