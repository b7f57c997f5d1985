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
  /// The number of changes that another board has announced first.
  private(set) var heardCount = 0
  /// The number of stale answers so far.
  private(set) var staleAnswers = 0
  /// The number of lookups, as of the last report.
  private(set) var tally = LookupTally()
  /// The last report.
  private(set) var bulletin = Bulletin()
  private var rowsByID: [Flight.ID: BoardRow] = [:]
  /// The flights announced so far, also the ones whose rows have left the board.
  private var announced: Set<Flight.ID> = []

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
      apply(change, isHeard: false)
    case .heard(let heard):
      hear(heard)
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

  /// Applies a change, unless it is known, or precedes a known one of its flight.
  ///
  /// - Returns: Whether it was new.
  @discardableResult
  private mutating func apply(_ change: FlightChange, isHeard: Bool) -> Bool {
    switch change {
    case .scheduled(let flight):
      guard announced.insert(flight.id).inserted else { return false }
      rowsByID[flight.id] = BoardRow(flight)
      rowsByID[flight.id]?.isHeard = isHeard
      flightCount += 1
      return true
    case .delayed(let id, let time):
      return set(.delayed(until: time), of: id, isHeard: isHeard)
    case .departed(let id, let time):
      guard set(.departed(at: time), of: id, isHeard: isHeard) else { return false }
      departedCount += 1
      return true
    case .cancelled(let id):
      guard set(.cancelled, of: id, isHeard: isHeard) else { return false }
      cancelledCount += 1
      return true
    }
  }

  /// Applies a change of another board, which can be ahead of this one.
  private mutating func hear(_ heard: HeardChange) {
    let isNewFlight = apply(.scheduled(heard.flight), isHeard: true)
    let isNewStatus = apply(heard.change, isHeard: true)
    if isNewFlight || isNewStatus { heardCount += 1 }
  }

  private mutating func report(_ tally: LookupTally, isLast: Bool) {
    self.tally = tally
    let reports = rows.filter {
      $0.isDecided && $0.askedAt != nil && !$0.isAsking && !$0.isReported
    }
    for row in reports { rowsByID[row.id]?.isReported = true }
    bulletin = Bulletin(time: time, isOriginOnline: isOriginOnline, rows: reports, isLast: isLast)
  }

  /// Sets the status of a flight that is not decided.
  ///
  /// - Returns: Whether it was another one.
  private mutating func set(
    _ status: BoardRow.Status,
    of id: Flight.ID,
    isHeard: Bool
  ) -> Bool {
    guard let row = rowsByID[id], !row.isDecided, row.status != status else { return false }
    rowsByID[id]?.status = status
    rowsByID[id]?.isHeard = isHeard
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
