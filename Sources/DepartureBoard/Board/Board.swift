import Plexus

/// The store of a screen: the state of the board, and the screen's own filter.
typealias BoardPage = PageStore<BoardState, BoardAction, FilterState, FilterAction>

/// The board, which follows the events of the day and looks up the details of its rows.
///
/// Its store holds the whole state, which screens follow. Releasing the board cancels lookups in flight.
@MainActor
final class Board {
  /// The store of the board.
  let store: Store<BoardState, BoardAction>

  /// Whether a moment ends only when all rows have been answered.
  private let waitsForAnswers: Bool
  private let tally: @Sendable () -> LookupTally
  private let observations = ObservationBag()

  /// Creates an empty board.
  ///
  /// - Parameters:
  ///   - waitsForAnswers: Whether a moment ends only when all rows have been answered.
  ///   - tally: Returns the number of lookups so far.
  ///   - lookUp: Returns the details of a flight.
  init(
    waitsForAnswers: Bool,
    tally: @escaping @Sendable () -> LookupTally = { LookupTally() },
    lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) {
    self.waitsForAnswers = waitsForAnswers
    self.tally = tally
    let asking = Middleware<BoardState, BoardAction>.asking(lookUp)
    store = Store(BoardState(), middleware: [asking]) { state, action in state.apply(action) }
  }

  /// The current state of the board.
  var state: BoardState {
    store.state
  }

  /// Creates the store of a screen.
  ///
  /// - Parameter filter: The initial filter words.
  /// - Returns: The page, which keeps the store alive.
  func page(filter: String = "") -> BoardPage {
    let reducer: Reducer<FilterState, FilterAction> = { state, action in state.apply(action) }
    return store.page({ _ in FilterState(filter) }, reducer: reducer)
  }

  /// Follows the events of a day from now on, until the board is stopped or released.
  func follow(_ bus: EventBus) {
    bus.observe(FlightChange.self) { [store] change in
      store.dispatch(.flight(change))
    }.store(in: observations)
    bus.observe(HeardChange.self) { [store] heard in
      store.dispatch(.heard(heard))
    }.store(in: observations)
    bus.observe(OriginChange.self) { [store] change in
      store.dispatch(.origin(isOnline: change.isOnline))
    }.store(in: observations)
    bus.observe(MomentReached.self) { [store, tally, waitsForAnswers] event in
      if waitsForAnswers {
        await store.dispatchAndWait(.clock(event.moment))
      } else {
        store.dispatch(.clock(event.moment))
      }
      store.dispatch(.report(tally()))
    }.store(in: observations)
  }

  /// Waits until all lookups have ended or the task is cancelled, and dispatches the last report.
  func finish() async {
    // The subscription is queued behind earlier actions, including the last moment.
    let asking = store.subscription(toChangesOf: \.askingCount)
    for await change in asking where change.new == 0 { break }
    // The last lookup can still be dispatching, and would show the end only after this method has returned.
    await store.dispatchAndWait(.end(tally()))
  }

  /// Stops following events, and resumes the tasks that wait for answers.
  func stop() {
    observations.cancelAll()
  }
}

extension Middleware<BoardState, BoardAction> {
  /// Looks up the details of rows when the clock advances, each in its own effect.
  fileprivate static func asking(
    _ lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) -> Self {
    Middleware { action, context, next in
      next(action)
      guard case .clock = action else { return }
      let flights = context.state.flightsToAsk
      guard !flights.isEmpty else { return }
      // Passed on rather than dispatched: another moment may be queued, and would look them up again.
      next(.asked(flights.map(\.id)))
      for flight in flights {
        context.run { context.dispatch(.answered(await lookUp(flight), for: flight.id)) }
      }
    }
  }
}
