import Plexus

/// The board as a screen sees it: what is on it, and the screen's own filter.
typealias BoardPage = PageStore<BoardState, BoardAction, FilterState, FilterAction>

/// The board: it follows what happens on the day, and has its rows ask what they need to know.
///
/// Everything on it is in its store, which screens follow. When the board is released, questions that
/// are under way are given up.
@MainActor
final class Board {
  /// What is on the board.
  let store: Store<BoardState, BoardAction>

  /// Whether no moment is over before all rows have been answered.
  private let waitsForAnswers: Bool
  private let tally: @Sendable () -> LookupTally
  private let observations = ObservationBag()

  /// Creates an empty board.
  ///
  /// - Parameters:
  ///   - waitsForAnswers: Whether no moment is over before all rows have been answered.
  ///   - tally: What tells how much has been looked up.
  ///   - lookUp: What returns the details of a flight.
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

  /// The state of the board at this moment.
  var state: BoardState {
    store.state
  }

  /// Creates what a screen follows.
  ///
  /// - Parameter filter: The words that rows must contain to begin with.
  /// - Returns: The page, which keeps the store.
  func page(filter: String = "") -> BoardPage {
    let reducer: Reducer<FilterState, FilterAction> = { state, action in state.apply(action) }
    return store.page({ _ in FilterState(filter) }, reducer: reducer)
  }

  /// Follows the events of a day from now on, until it is stopped or released.
  func follow(_ bus: EventBus) {
    bus.observe(FlightChange.self) { [store] change in
      store.dispatch(.flight(change))
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

  /// Waits until every row that has asked has its answer, unless the task is cancelled, and gives the last
  /// report.
  func finish() async {
    // Whoever subscribes takes a turn behind what was dispatched before, the last moment included.
    let asking = store.subscription(toChangesOf: \.askingCount)
    for await change in asking where change.new == 0 { break }
    // Whoever has answered last may still be at it, and would show the end only after this had returned.
    await store.dispatchAndWait(.end(tally()))
  }

  /// Follows no events any more, and lets go of whoever waits for answers.
  func stop() {
    observations.cancelAll()
  }
}

extension Middleware<BoardState, BoardAction> {
  /// Has rows ask for their details when the clock has moved, each in an effect of its own.
  fileprivate static func asking(
    _ lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) -> Self {
    Middleware { action, context, next in
      next(action)
      guard case .clock = action else { return }
      let flights = context.state.flightsToAsk
      guard !flights.isEmpty else { return }
      // Not dispatched: another moment may be waiting already, and would have them ask again.
      next(.asked(flights.map(\.id)))
      for flight in flights {
        context.run { context.dispatch(.answered(await lookUp(flight), for: flight.id)) }
      }
    }
  }
}
