/// The state of the board at a moment of the day.
///
/// Actions change it, and it determines the rows to look up. It uses no task, clock or network.
struct BoardState: Equatable, Sendable {
  /// The time before a stale or missing answer is looked up again, in day time.
  static let patience = Duration.seconds(10 * 60)

  /// The time of the day.
  private(set) var now = Duration.zero
  /// Whether the origin is reachable.
  private(set) var isOriginOnline = true
  /// The number of flights announced so far.
  private(set) var flightCount = 0
  private(set) var departedCount = 0
  private(set) var cancelledCount = 0
  /// The number of stale answers so far.
  private(set) var staleAnswers = 0
  /// The number of lookups, as of the last report.
  private(set) var tally = LookupTally()
  /// The last report.
  private(set) var bulletin = Bulletin()
  private var rowsByID: [Flight.ID: BoardRow] = [:]

  /// The time of the day, as a clock shows it.
  var time: ClockTime {
    ClockTime(sinceMidnight: now)
  }

  /// The rows of the board, in the expected order of departure.
  var rows: [BoardRow] {
    rowsByID.values.sorted { ($0.expected, $0.id) < ($1.expected, $1.id) }
  }

  /// Whether the day is over.
  var isOver: Bool {
    bulletin.isLast
  }

  /// The number of rows with a lookup in flight.
  var askingCount: Int {
    rowsByID.values.count { $0.isAsking }
  }

  /// The flights to look up now: new ones, and ones with stale or missing answers.
  var flightsToAsk: [Flight] {
    rowsByID.values.filter(hasToAsk).map(\.flight).sorted { $0.id < $1.id }
  }

  /// Applies an action; the reducer of the board's store.
  mutating func apply(_ action: BoardAction) {
    switch action {
    case .flight(let change):
      apply(change)
    case .origin(let isOnline):
      isOriginOnline = isOnline
    case .clock(let moment):
      now = moment
      rowsByID = rowsByID.filter { !hasLeftTheBoard($0.value) }
    case .asked(let ids):
      for id in ids {
        rowsByID[id]?.askedAt = now
        rowsByID[id]?.isAsking = true
      }
    case .answered(let details, let id):
      // An answer counts even if its row has left the board.
      staleAnswers += details.staleCount
      rowsByID[id]?.details = details
      rowsByID[id]?.isAsking = false
    case .report(let tally):
      report(tally, isLast: false)
    case .end(let tally):
      report(tally, isLast: true)
    }
  }

  private mutating func apply(_ change: FlightChange) {
    switch change {
    case .scheduled(let flight):
      guard rowsByID[flight.id] == nil else { return }
      rowsByID[flight.id] = BoardRow(flight)
      flightCount += 1
    case .delayed(let id, let time):
      postpone(id, until: time)
    case .departed(let id, let time):
      guard decide(id, .departed(at: time)) else { return }
      departedCount += 1
    case .cancelled(let id):
      guard decide(id, .cancelled) else { return }
      cancelledCount += 1
    }
  }

  private mutating func report(_ tally: LookupTally, isLast: Bool) {
    self.tally = tally
    let reports = rows.filter {
      $0.isDecided && $0.askedAt != nil && !$0.isAsking && !$0.isReported
    }
    for row in reports { rowsByID[row.id]?.isReported = true }
    bulletin = Bulletin(time: time, isOriginOnline: isOriginOnline, rows: reports, isLast: isLast)
  }

  private mutating func postpone(_ id: Flight.ID, until time: ClockTime) {
    guard rowsByID[id]?.isDecided == false else { return }
    rowsByID[id]?.status = .delayed(until: time)
  }

  private mutating func decide(_ id: Flight.ID, _ status: BoardRow.Status) -> Bool {
    guard let row = rowsByID[id], !row.isDecided else { return false }
    rowsByID[id]?.status = status
    return true
  }

  private func hasToAsk(_ row: BoardRow) -> Bool {
    guard !row.isAsking else { return false }
    guard let askedAt = row.askedAt else { return true }
    return row.details.isWanting && now >= askedAt + Self.patience
  }

  private func hasLeftTheBoard(_ row: BoardRow) -> Bool {
    row.isReported && row.isDecided && now >= (row.expected + BoardRow.afterglow).sinceMidnight
  }
}
