import Foundation
import Plexus
import PlexusTesting
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

  @Test mutating func `the state of a board counts each announced flight once`() {
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

  @Test
  mutating func `the rows of a board are in the order in which flights are expected to leave`() {
    state = BoardState(flights: [.sample(0), .sample(1, at: "09:00"), .sample(2), .sample(3)])
    for id in 0..<4 { announce(.init(id, .scheduled)) }
    #expect(state.rows.map(\.id) == [1, 0, 2, 3])
    announce(.init(1, delayed("10:30")), .init(3, departed("09:55")), .init(2, .cancelled))
    #expect(state.rows.map(\.id) == [3, 0, 2, 1])
  }

  @Test
  mutating func
    `the state of a board applies a change of another board once, and its own only once`()
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

  @Test
  mutating func
    `the state of a board applies a change of a flight that it has not announced itself`()
  {
    hear(.init(3, departed("10:02")))
    #expect(state.flightCount == 1 && state.departedCount == 1 && state.heardCount == 1)
    announce(.init(3, .scheduled), .init(3, delayed("10:02")), .init(3, departed("10:02")))
    #expect(state.flightCount == 1 && state.departedCount == 1)
    #expect(state.rows.map(\.status) == [departed("10:02")])
  }

  @Test
  mutating func `the state of a board ignores changes by other programs that are not of this day`()
  {
    let end = Duration(secondsComponent: .max, attosecondsComponent: 0)
    for time in [ClockTime(sinceMidnight: end), ClockTime(sinceMidnight: .zero - end)] {
      hear(.init(0, .departed(at: time)), .init(0, .delayed(until: time)))
    }
    hear(.init(4, .cancelled), .init(-1, .cancelled))
    #expect(state.rows.isEmpty && state.heardCount == 0)
  }

  @Test mutating func `a flight that has left the board is not shown again`() {
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

  @Test mutating func `the state of a board has the status of every flight of the day`() {
    announce(.init(0, .scheduled), .init(0, departed("10:00")), .init(1, .scheduled))
    clock("10:00")
    state.answerAll()
    _ = state.report()
    clock("11:00")
    let rows = (0..<3).map { state.row(of: .sample($0)) }
    #expect(rows.map(\.status) == [departed("10:00"), .scheduled, .scheduled])
    #expect(rows.map(\.details) == [RowDetails(), .complete, RowDetails()])
  }

  @Test
  mutating func
    `the state of a board looks up the details of a row once if the lookup is answered`()
  {
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
  mutating func `the state of a board repeats a lookup with a stale or no answer after ten minutes`(
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

  @Test mutating func `the state of a board counts stale answers, also for rows that have left`() {
    announce(.init(0, .scheduled), .init(1, .scheduled))
    _ = state.lookUp()
    state.apply(.answered(.stale, for: 0))
    state.apply(.answered(.complete, for: 1))
    state.apply(.answered(.stale, for: 99))
    #expect(state.staleCount == 4)
  }

  @Test
  mutating func `a row is reported once, when its outcome is known and its lookup is answered`() {
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

  @Test mutating func `a reported row is removed ten minutes after its flight has departed`() {
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

  @Test
  mutating func `the state of a board reports the time, the origin, the requests and the end`() {
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

@MainActor
@Suite(.fewAtOnce) struct `The board` {
  private let bus = EventBus()
  private let gate = Gate()

  /// Returns a board whose lookups are answered once the gate is open; cancelled lookups are not answered.
  private func board(waitsForAnswers: Bool) -> Board {
    let board = Board(flights: [.sample(0), .sample(1)]) { [gate] _ in
      (try? await gate.wait()) == nil ? RowDetails() : .complete
    }
    board.follow(bus, waitsForAnswers: waitsForAnswers)
    return board
  }

  private func announce(_ ids: Flight.ID..., at time: String = "09:00") async {
    for id in ids { await bus.postAndWait(FlightChange(id, .scheduled)) }
    await bus.postAndWait(MomentReached(moment: .at(time)))
  }

  @Test func `a board requests and shows the details of announced flights`() async {
    let board = board(waitsForAnswers: false)
    await announce(0, 1)
    #expect(board.store.state.time == .at("09:00"))
    #expect(board.store.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    let end = Task { await board.finish() }
    // The jobs of the main actor run in order, so the call has begun and waits.
    for _ in 0..<5 { await Task {}.value }
    #expect(!board.store.state.bulletin.isLast)
    gate.open()
    await end.value
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
    #expect(board.store.state.bulletin.isLast)
  }

  @Test func `a board in waiting mode delays a moment until all rows are answered`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    #expect(bulletins.elements.count <= 1)
    #expect(board.store.state.bulletin == Bulletin())
    gate.open()
    await day.value
    #expect(board.store.state.bulletin.time == .at("09:00"))
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `a board requests the details of each row once, and reports the row once`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    gate.open()
    await announce(0)
    await announce(1, at: "09:01")
    await bus.postAndWait(FlightChange(0, .cancelled))
    await announce(at: "09:30")
    await announce(at: "09:31")
    await gate.arrivals(2)
    #expect(await bulletins.first(5).map { $0.new.rows.map(\.id) } == [[], [], [], [0], []])
  }

  /// Blocks the store of a board with an action of another thread, until the semaphore is signaled.
  private func holdUp(_ board: Board) async throws -> DispatchSemaphore {
    let entered = Gate()
    let turnstile = DispatchSemaphore(value: 0)
    let store = board.store
    let changes = store.changes(of: { state in
      guard !state.isOriginOnline else { return 0 }
      entered.open()
      turnstile.wait()
      turnstile.signal()
      return 0
    })
    Thread.detachNewThread {
      store.dispatch(.origin(isOnline: false))
      withExtendedLifetime(changes) {}
    }
    try await entered.wait()
    return turnstile
  }

  @Test func `a board ends after it has processed the last moment`() async throws {
    let board = board(waitsForAnswers: false)
    let turnstile = try await holdUp(board)
    await announce(0, 1)
    let isEnded = Gate()
    let end = Task {
      await board.finish()
      isEnded.open()
    }
    for _ in 0..<5 { await Task {}.value }
    turnstile.signal()
    // Both rows wait for their details.
    await gate.arrivals(2)
    for _ in 0..<5 { await Task {}.value }
    #expect(!isEnded.isOpen)
    gate.open()
    await end.value
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `a board requests details once even if moments arrive faster than it processes them`()
    async throws
  {
    let questions = Messenger<Flight.ID>()
    let asked = Recorder(questions.subscription())
    let board = Board(flights: [.sample(0), .sample(1)]) { flight in
      questions.send(flight.id)
      return .complete
    }
    board.follow(bus, waitsForAnswers: false)
    let turnstile = try await holdUp(board)
    await announce(0)
    await announce(1, at: "09:01")
    await announce(at: "09:02")
    turnstile.signal()
    await board.finish()
    questions.finish()
    #expect(await asked.finished().sorted() == [0, 1])
  }

  @Test func `a board shows the changes that other boards share, and not its own again`() async {
    let board = board(waitsForAnswers: false)
    await bus.postAndWait(SharedChange(board: board.name, change: FlightChange(0, .cancelled)))
    #expect(board.store.state.rows.isEmpty)
    await bus.postAndWait(SharedChange(board: "other", change: FlightChange(1, .cancelled)))
    #expect(board.store.state.rows.map(\.id) == [1])
    #expect(board.store.state.heardCount == 1)
  }

  @Test func `a board ends its pending requests when it is stopped`() async {
    let board = board(waitsForAnswers: true)
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    board.stop()
    await day.value
    #expect(board.store.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    #expect(bus.subscriberCount(for: FlightChange.self) == 0)
    #expect(bus.subscriberCount(for: MomentReached.self) == 0)
  }

  @Test func `a board cancels its requests when it is released`() async {
    var board: Board? = board(waitsForAnswers: false)
    await announce(0, 1)
    await gate.arrivals(2)
    weak let store = board?.store
    #expect(store != nil)
    board = nil
    #expect(store == nil)
    #expect(bus.subscriberCount(for: FlightChange.self) == 0)
  }
}
