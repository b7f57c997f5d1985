import Plexus

/// An action that changes the board.
enum BoardAction: Sendable {
  case flight(FlightChange)
  /// Another board has announced a change.
  case heard(FlightChange)
  /// The origin has become reachable or unreachable.
  case origin(isOnline: Bool)
  /// The clock has advanced.
  case clock(ClockTime)
  /// The details of rows are being looked up.
  case lookedUp([Flight.ID])
  /// The details of a row have arrived.
  case answered(RowDetails, for: Flight.ID)
  /// A moment has been processed and is reported.
  case report(CacheStatistics, isLast: Bool)
}

/// One row of the board: a flight with its status and its details.
struct BoardRow: Hashable, Identifiable, Sendable {
  let flight: Flight
  var status = FlightChange.Status.scheduled
  var details = RowDetails()
  /// The time of the last lookup; `nil` before the first.
  var lookedUpAt: ClockTime?
  /// Whether a lookup is in flight.
  var isPending = false
  /// Whether the final status of the row has been reported.
  var isReported = false
  /// Whether the status was announced by another board first.
  var isHeard = false

  /// The id of the flight.
  var id: Flight.ID {
    flight.id
  }

  /// The actual or expected departure, or the scheduled one of a cancelled flight.
  var expected: ClockTime {
    status.time ?? flight.scheduled
  }
}

/// The news since the last bulletin, for output line by line.
struct Bulletin: Hashable, Sendable {
  var time = ClockTime(minutes: 0)
  var isOriginOnline = true
  /// The rows that have reached their final status, in the order of departure.
  var rows: [BoardRow] = []
  /// Whether the day is over.
  var isLast = false
}

/// The state of the board at a moment of the day.
///
/// Actions change it, and it determines the rows to look up. It uses no task, clock or network.
struct BoardState: Equatable, Sendable {
  /// The time before a stale or missing answer is looked up again.
  private static let patience = Duration.minutes(10)
  /// The time for which a row stays on the board after its flight has left or should have left.
  private static let afterglow = Duration.minutes(10)

  /// The time of the day.
  private(set) var time = ClockTime(minutes: 0)
  /// Whether the origin is reachable.
  private(set) var isOriginOnline = true
  private(set) var departedCount = 0
  private(set) var cancelledCount = 0
  /// The number of changes that another board has announced first.
  private(set) var heardCount = 0
  /// The number of stale answers so far.
  private(set) var staleCount = 0
  /// The number of requests, as of the last report.
  private(set) var statistics = CacheStatistics()
  /// The last report.
  private(set) var bulletin = Bulletin()
  private let flights: [Flight]
  private var rowsByID: [Flight.ID: BoardRow] = [:]
  /// The flights announced so far, also the ones whose rows have left the board.
  private var statuses: [Flight.ID: FlightChange.Status] = [:]

  /// Creates the empty board of a timetable.
  init(flights: [Flight]) {
    self.flights = flights
  }

  /// The number of flights announced so far.
  var flightCount: Int {
    statuses.count
  }

  /// The rows of the board, in the expected order of departure.
  var rows: [BoardRow] {
    rowsByID.values.sorted { ($0.expected, $0.id) < ($1.expected, $1.id) }
  }

  /// Returns the row of a flight, or one without details if the flight is not on the board.
  func row(of flight: Flight) -> BoardRow {
    rowsByID[flight.id] ?? BoardRow(flight: flight, status: statuses[flight.id] ?? .scheduled)
  }

  /// The number of rows with a lookup in flight.
  var pendingCount: Int {
    rowsByID.values.count { $0.isPending }
  }

  /// The flights to look up now: new ones, and ones with stale or missing answers.
  var flightsToLookUp: [Flight] {
    let rows = rowsByID.values.filter { row in
      guard !row.isPending else { return false }
      guard let lookedUpAt = row.lookedUpAt else { return true }
      return row.details.isIncomplete && time >= lookedUpAt.advanced(by: Self.patience)
    }
    return rows.map(\.flight).sorted { $0.id < $1.id }
  }

  /// Applies an action; the reducer of the board's store.
  mutating func apply(_ action: BoardAction) {
    switch action {
    case .flight(let change):
      apply(change, isHeard: false)
    case .heard(let change):
      // Another program can have written it.
      guard change.status.time.map(ClockTime.range.contains) ?? true else { return }
      if apply(change, isHeard: true) { heardCount += 1 }
    case .origin(let isOnline):
      isOriginOnline = isOnline
    case .clock(let moment):
      time = moment
      rowsByID = rowsByID.filter { id, row in
        !row.isReported || time < row.expected.advanced(by: Self.afterglow)
      }
    case .lookedUp(let ids):
      for id in ids {
        rowsByID[id]?.lookedUpAt = time
        rowsByID[id]?.isPending = true
      }
    case .answered(let details, let id):
      // An answer counts even if its row has left the board.
      staleCount += details.staleCount
      rowsByID[id]?.details = details
      rowsByID[id]?.isPending = false
    case .report(let statistics, let isLast):
      self.statistics = statistics
      report(isLast: isLast)
    }
  }

  /// Applies a change, unless it is known, or precedes a known one of its flight.
  ///
  /// - Returns: Whether it was new.
  @discardableResult
  private mutating func apply(_ change: FlightChange, isHeard: Bool) -> Bool {
    let id = change.flight
    guard flights.indices.contains(id) else { return false }
    let isNewFlight = statuses[id] == nil
    if isNewFlight {
      statuses[id] = .scheduled
      rowsByID[id] = BoardRow(flight: flights[id], isHeard: isHeard)
    }
    guard let row = rowsByID[id], !row.status.isFinal, row.status != change.status,
      change.status != .scheduled
    else { return isNewFlight }
    statuses[id] = change.status
    rowsByID[id]?.status = change.status
    rowsByID[id]?.isHeard = isHeard
    switch change.status {
    case .departed: departedCount += 1
    case .cancelled: cancelledCount += 1
    case .scheduled, .delayed: break
    }
    return true
  }

  private mutating func report(isLast: Bool) {
    let reported = rows.filter { row in
      row.status.isFinal && row.lookedUpAt != nil && !row.isPending && !row.isReported
    }
    for row in reported { rowsByID[row.id]?.isReported = true }
    bulletin = Bulletin(time: time, isOriginOnline: isOriginOnline, rows: reported, isLast: isLast)
  }
}
