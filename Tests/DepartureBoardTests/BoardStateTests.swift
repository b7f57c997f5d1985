import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The state of the board` {
  private var state = BoardState()

  private mutating func announce(_ changes: FlightChange...) {
    for change in changes { state.apply(.flight(change)) }
  }

  private mutating func clock(_ time: String) {
    state.apply(.clock(.at(time)))
  }

  /// Answers all pending requests.
  private mutating func answer(_ details: RowDetails = .complete) {
    state.answerAll(details)
  }

  @Test mutating func `counts each announced flight once`() {
    let flights = [Flight.sample(0, at: "10:00"), .sample(1, at: "10:00"), .sample(2, at: "10:00")]
    for flight in flights { announce(.scheduled(flight)) }
    announce(.departed(0, at: .at("10:00")), .cancelled(1))
    announce(
      .departed(0, at: .at("10:00")),
      .cancelled(0),
      .cancelled(1),
      .departed(1, at: .at("10:00"))
    )
    announce(.departed(99, at: .at("10:00")), .cancelled(99), .scheduled(flights[0]))
    #expect(state.flightCount == 3)
    #expect(state.departedCount == 1)
    #expect(state.cancelledCount == 1)
    #expect(
      state.rows.map(\.status) == [.departed(at: .at("10:00")), .cancelled, .onTime]
    )
  }

  @Test mutating func `has its rows in the order in which flights are expected to leave`() {
    announce(
      .scheduled(.sample(0, at: "10:00")),
      .scheduled(.sample(1, at: "09:00")),
      .scheduled(.sample(2, at: "10:00")),
      .scheduled(.sample(3, at: "11:00"))
    )
    #expect(state.rows.map(\.id) == [1, 0, 2, 3])
    announce(.delayed(1, until: .at("10:30")), .departed(3, at: .at("10:10")), .cancelled(2))
    #expect(state.rows.map(\.id) == [0, 2, 3, 1])
    #expect(
      state.rows.map(\.status) == [
        .onTime, .cancelled, .departed(at: .at("10:10")), .delayed(until: .at("10:30")),
      ]
    )
  }

  private mutating func hear(_ changes: FlightChange..., of flight: Flight) {
    for change in changes { state.apply(.heard(HeardChange(change: change, flight: flight))) }
  }

  @Test mutating func `shows each change of another board once, and its own repetition not again`()
  {
    let flight = Flight.sample(0, at: "10:00")
    clock("09:00")
    hear(.scheduled(flight), .delayed(0, until: .at("10:30")), of: flight)
    #expect(state.rows.map(\.status) == [.delayed(until: .at("10:30"))])
    #expect(state.rows.map(\.isHeard) == [true])
    announce(.scheduled(flight), .delayed(0, until: .at("10:30")))
    hear(.scheduled(flight), .delayed(0, until: .at("10:30")), of: flight)
    #expect(state.flightCount == 1)
    #expect(state.heardCount == 2)
    #expect(state.rows.map(\.isHeard) == [true])
    announce(.departed(0, at: .at("10:31")))
    hear(
      .departed(0, at: .at("10:31")),
      .delayed(0, until: .at("10:40")),
      .cancelled(0),
      of: flight
    )
    #expect(state.rows.map(\.status) == [.departed(at: .at("10:31"))])
    #expect(state.rows.map(\.isHeard) == [false])
    #expect(state.departedCount == 1 && state.cancelledCount == 0 && state.heardCount == 2)
  }

  @Test mutating func `shows a change of a flight that it has not announced itself`() {
    let flight = Flight.sample(7, at: "10:00")
    clock("06:00")
    hear(.departed(7, at: .at("10:02")), of: flight)
    #expect(state.flightCount == 1 && state.departedCount == 1 && state.heardCount == 1)
    #expect(state.rows.map(\.status) == [.departed(at: .at("10:02"))])
    announce(.scheduled(flight), .delayed(7, until: .at("10:02")), .departed(7, at: .at("10:02")))
    #expect(state.flightCount == 1 && state.departedCount == 1)
    #expect(state.rows.map(\.status) == [.departed(at: .at("10:02"))])
  }

  @Test mutating func `does not show a flight again that has left the board`() {
    let flight = Flight.sample(0, at: "10:00")
    announce(.scheduled(flight), .departed(0, at: .at("10:00")))
    clock("10:00")
    answer()
    state.apply(.report(LookupTally()))
    clock("11:00")
    #expect(state.rows.isEmpty)
    hear(.scheduled(flight), .departed(0, at: .at("10:00")), .cancelled(0), of: flight)
    #expect(state.rows.isEmpty)
    #expect(state.flightCount == 1 && state.heardCount == 0)
  }

  @Test mutating func `does not delay a departed flight`() {
    announce(
      .scheduled(.sample(0, at: "10:00")),
      .departed(0, at: .at("10:00")),
      .delayed(0, until: .at("11:00"))
    )
    #expect(state.rows.map(\.status) == [.departed(at: .at("10:00"))])
  }

  @Test mutating func `requests the details of each new row once`() {
    announce(.scheduled(.sample(1, at: "10:00")), .scheduled(.sample(0, at: "11:00")))
    #expect(state.ask().map(\.id) == [0, 1])
    #expect(state.ask().isEmpty)
    clock("23:00")
    #expect(state.ask().isEmpty)
  }

  @Test mutating func `does not repeat an answered request`() {
    clock("09:00")
    announce(.scheduled(.sample(0, at: "10:00")))
    answer()
    clock("09:50")
    #expect(state.ask().isEmpty)
    #expect(state.rows.map(\.details) == [.complete])
  }

  @Test(arguments: [RowDetails.unanswered, .stale, RowDetails(aircraft: .absent(isStale: true))])
  mutating func `repeats a request with a stale or missing answer after ten minutes`(
    details: RowDetails
  ) {
    clock("09:00")
    announce(.scheduled(.sample(0, at: "10:00")))
    answer(details)
    clock("09:09")
    #expect(state.ask().isEmpty)
    clock("09:10")
    #expect(state.ask().map(\.id) == [0])
    state.apply(.answered(.complete, for: 0))
    clock("09:30")
    #expect(state.ask().isEmpty)
  }

  @Test mutating func `counts stale answers`() {
    announce(.scheduled(.sample(0, at: "10:00")), .scheduled(.sample(1, at: "10:00")))
    _ = state.ask()
    state.apply(.answered(.stale, for: 0))
    state.apply(.answered(.complete, for: 1))
    #expect(state.staleAnswers == 2)
    state.apply(.answered(.stale, for: 99))
    #expect(state.staleAnswers == 4)
  }

  @Test mutating func `reports a row once, when its outcome is known and its request is answered`()
  {
    announce(.scheduled(.sample(0, at: "10:00")))
    answer()
    #expect(state.report().isEmpty)
    announce(.cancelled(0))
    #expect(state.report().map(\.id) == [0])
    #expect(state.report().isEmpty)

    announce(.scheduled(.sample(1, at: "10:00")), .departed(1, at: .at("10:00")))
    #expect(state.report().isEmpty)
    _ = state.ask()
    #expect(state.report().isEmpty)
    state.apply(.answered(.unanswered, for: 1))
    #expect(state.report().map(\.id) == [1])
  }

  @Test mutating func `removes a row ten minutes after its flight has departed`() {
    announce(
      .scheduled(.sample(0, at: "10:00")),
      .scheduled(.sample(1, at: "10:00")),
      .scheduled(.sample(2, at: "10:00")),
      .departed(0, at: .at("10:05")),
      .cancelled(1)
    )
    answer()
    _ = state.report()
    clock("10:09")
    #expect(
      state.rows.map(\.id) == [1, 2, 0]
    )
    clock("10:10")
    #expect(state.rows.map(\.id) == [2, 0])
    clock("10:15")
    #expect(state.rows.map(\.id) == [2])
    clock("23:00")
    #expect(state.rows.map(\.id) == [2])
  }

  @Test mutating func `keeps a row until it has been reported`() {
    announce(.scheduled(.sample(0, at: "10:00")), .departed(0, at: .at("10:00")))
    clock("23:00")
    #expect(state.rows.count == 1)
    answer()
    _ = state.report()
    clock("23:00")
    #expect(state.rows.isEmpty)
  }

  @Test mutating func `has the state of the origin and the time`() {
    #expect(state.isOriginOnline)
    state.apply(.origin(isOnline: false))
    #expect(!state.isOriginOnline)
    state.apply(.origin(isOnline: true))
    #expect(state.isOriginOnline)
    clock("09:07")
    #expect(state.time == .at("09:07"))
  }

  @Test mutating func `counts rows that wait for an answer`() {
    announce(.scheduled(.sample(0, at: "10:00")), .scheduled(.sample(1, at: "10:00")))
    #expect(state.askingCount == 0)
    _ = state.ask()
    #expect(state.askingCount == 2)
    state.apply(.answered(.unanswered, for: 1))
    #expect(state.askingCount == 1)
  }

  @Test mutating func `reports the time, the origin, the lookups and the end`() {
    clock("09:07")
    state.apply(.origin(isOnline: false))
    state.apply(.report(LookupTally(requests: 5)))
    #expect(state.tally.requests == 5)
    #expect(state.bulletin == Bulletin(time: .at("09:07"), isOriginOnline: false))
    #expect(!state.isOver)
    state.apply(.end(LookupTally(requests: 6)))
    #expect(state.tally.requests == 6)
    #expect(state.isOver && state.bulletin.isLast)
  }
}

@Suite(.fewAtOnce) struct `A cell` {
  @Test(arguments: [
    (Cell<Int>.pending, false, false, false), (.known(1, isStale: false), false, false, true),
    (.known(1, isStale: true), true, true, true), (.absent(isStale: false), false, false, true),
    (.absent(isStale: true), true, true, true), (.unanswered, false, true, false),
  ])
  func `is incomplete if stale or unanswered`(
    cell: Cell<Int>,
    isStale: Bool,
    isWanting: Bool,
    isAnswered: Bool
  ) {
    #expect(cell.isStale == isStale)
    #expect(cell.isWanting == isWanting)
    #expect(cell.isAnswered == isAnswered)
  }

  @Test func `returns its value, fresh or stale`() {
    #expect(Cell.known(1, isStale: true).value == 1)
    #expect(Cell<Int>.unanswered.value == nil)
  }
}

// MARK: - Samples

extension BoardState {
  /// Starts the requests of all incomplete rows.
  mutating func ask() -> [Flight] {
    let flights = flightsToAsk
    apply(.asked(flights.map(\.id)))
    return flights
  }

  /// Answers all pending requests.
  mutating func answerAll(_ details: RowDetails = .complete) {
    for flight in ask() { apply(.answered(details, for: flight.id)) }
  }

  /// The rows of the next bulletin.
  mutating func report() -> [BoardRow] {
    apply(.report(LookupTally()))
    return bulletin.rows
  }
}

extension ClockTime {
  /// Returns the time of an `HH:MM` string, or the distant future for other strings.
  static func at(_ text: String) -> Self {
    Self(text) ?? Self(minutes: -100_000)
  }
}

extension Duration {
  /// Returns the time from midnight to `HH:MM`.
  static func at(_ text: String) -> Self {
    ClockTime.at(text).sinceMidnight
  }
}

extension Flight {
  /// A flight from Newark to Honolulu.
  static func sample(
    _ id: Int,
    at scheduled: String,
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
    let aircraft = Aircraft(
      tailNumber: "N76065",
      year: 2002,
      manufacturer: "BOEING",
      model: "767-424ER",
      engines: 2,
      seats: 330
    )
    let newark = Airport(
      code: "EWR",
      name: "Newark Liberty Intl",
      latitude: 40,
      longitude: -74,
      altitude: 18,
      utcOffset: -5,
      timeZone: "America/New_York"
    )
    let honolulu = Airport(
      code: "HNL",
      name: "Honolulu Intl",
      latitude: 21,
      longitude: -157,
      altitude: 13,
      utcOffset: -10,
      timeZone: "Pacific/Honolulu"
    )
    let weather = Weather(
      origin: "EWR",
      hour: 10,
      temperature: 35.06,
      windSpeed: 10.4,
      precipitation: 0,
      visibility: 10
    )
    return RowDetails(
      airline: .known(Airline(carrier: "UA", name: "United Air Lines Inc."), isStale: false),
      aircraft: .known(aircraft, isStale: false),
      origin: .known(newark, isStale: isStale),
      destination: .known(honolulu, isStale: false),
      weather: .known(weather, isStale: isStale)
    )
  }
}
