import Foundation
import Plexus

/// The store of a screen: the state of the board, and the screen's own filter.
typealias BoardPage = PageStore<BoardState, BoardAction, FilterState, FilterAction>

/// The board, which follows the events of the day and looks up the details of its rows.
///
/// Its store holds the whole state, which screens follow. Releasing the board cancels lookups in flight.
@MainActor
final class Board {
  /// The name of the board, which no other board has.
  let name = UUID().uuidString
  /// The store of the board.
  let store: Store<BoardState, BoardAction>

  private let statistics: @Sendable () -> CacheStatistics
  private let observations = ObservationBag()

  /// Creates an empty board.
  ///
  /// - Parameters:
  ///   - flights: The timetable.
  ///   - statistics: Returns the number of requests so far.
  ///   - lookUp: Returns the details of a flight.
  init(
    flights: [Flight],
    statistics: @escaping @Sendable () -> CacheStatistics = { CacheStatistics() },
    lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) {
    self.statistics = statistics
    let lookups = Middleware<BoardState, BoardAction>.lookingUp(lookUp)
    store = Store(BoardState(flights: flights), middleware: [lookups]) { state, action in
      state.apply(action)
    }
  }

  /// Creates the store of a screen.
  ///
  /// - Parameter filter: The initial filter words.
  /// - Returns: The page, which keeps the store of the board alive.
  func page(filter: String = "") -> BoardPage {
    let reducer: Reducer<FilterState, FilterAction> = { state, action in state.apply(action) }
    return store.page({ _ in FilterState(filter) }, reducer: reducer)
  }

  /// Follows the events of a day from now on, until the board is stopped or released.
  ///
  /// - Parameters:
  ///   - bus: The bus of the events.
  ///   - waitsForAnswers: Whether a moment ends only when all rows have been answered.
  func follow(_ bus: EventBus, waitsForAnswers: Bool) {
    bus.observe(FlightChange.self) { [store] change in
      store.dispatch(.flight(change))
    }.store(in: observations)
    bus.observe(SharedChange.self) { [store, name] shared in
      // The own changes arrive here, too.
      if shared.board != name { store.dispatch(.heard(shared.change)) }
    }.store(in: observations)
    bus.observe(OriginChange.self) { [store] change in
      store.dispatch(.origin(isOnline: change.isOnline))
    }.store(in: observations)
    bus.observe(MomentReached.self) { [store, statistics] event in
      if waitsForAnswers {
        await store.dispatchAndWait(.clock(event.moment))
      } else {
        store.dispatch(.clock(event.moment))
      }
      store.dispatch(.report(statistics(), isLast: false))
    }.store(in: observations)
  }

  /// Waits until all lookups have ended or the task is cancelled, and dispatches the last report.
  func finish() async {
    // The subscription is queued behind earlier actions, including the last moment.
    for await change in store.subscription(toChangesOf: \.pendingCount) where change.new == 0 {
      break
    }
    // The last lookup can still be dispatching, and would show the end only after this method has returned.
    await store.dispatchAndWait(.report(statistics(), isLast: true))
  }

  /// Stops following events, and resumes the tasks that wait for answers.
  func stop() {
    observations.cancelAll()
  }
}

extension Middleware<BoardState, BoardAction> {
  /// Looks up the details of rows when the clock advances, each in its own effect.
  fileprivate static func lookingUp(
    _ lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) -> Self {
    Middleware { action, context, next in
      next(action)
      guard case .clock = action else { return }
      let flights = context.state.flightsToLookUp
      guard !flights.isEmpty else { return }
      // Passed on rather than dispatched: another moment may be queued, and would look them up again.
      next(.lookedUp(flights.map(\.id)))
      for flight in flights {
        context.run { context.dispatch(.answered(await lookUp(flight), for: flight.id)) }
      }
    }
  }
}
