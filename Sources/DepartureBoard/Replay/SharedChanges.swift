import Plexus
import Synchronization

/// The flight changes that several boards share.
///
/// The changes of this board are published in order, and those of other boards are posted on its bus as
/// ``HeardChange``. The replay waits for neither: a board works without the server, too.
final class SharedChanges: Sendable {
  private struct State: Sendable {
    /// The changes that other boards have announced, which need not be published again.
    var heard: Set<FlightNews> = []
    var queuedCount = 0
    var sentCount = 0
    var isClosing = false
  }

  /// The bus that is connected with the other boards.
  private let shared = EventBus()
  private let connection: ObservationToken
  private let hearing: ObservationToken
  private let queueing: ObservationToken
  private let queue: AsyncStream<FlightNews>.Continuation
  private let publishing: Task<Void, Never>
  private let state: StateBox

  /// Allows closures to share the state.
  private final class StateBox: Sendable {
    let value = Mutex(State())
  }

  /// Begins to share changes.
  ///
  /// - Parameters:
  ///   - link: The link to the other boards.
  ///   - flights: The timetable.
  ///   - bus: The bus of this board.
  init(over link: any EventLink, flights: [Flight], bus: EventBus) {
    let board = String(UInt64.random(in: .min ... .max), radix: 36)
    let state = StateBox()
    let (queued, queue) = AsyncStream.makeStream(of: FlightNews.self)
    self.state = state
    self.queue = queue
    hearing = shared.observe(FlightNews.self) { news in
      // What is published here is posted here, too.
      guard news.board != board, let heard = news.heard(flights) else { return }
      let own = FlightNews(heard.change, by: board)
      guard state.value.withLock({ $0.heard.insert(own).inserted }) else { return }
      bus.post(heard)
    }
    connection = shared.connect(
      FlightNews.self,
      as: "departures-changes",
      over: link,
      .everyNode()
    )
    queueing = bus.observe(FlightChange.self) { change in
      let news = FlightNews(change, by: board)
      let isNew = state.value.withLock { state in
        guard !state.heard.contains(news) else { return false }
        state.queuedCount += 1
        return true
      }
      if isNew { queue.yield(news) }
    }
    publishing = Task.detached { [shared] in
      for await news in queued {
        do {
          try await shared.publish(news)
          state.value.withLock { $0.sentCount += 1 }
        } catch {
          // A board that ends does not wait for each of its changes.
          if state.value.withLock(\.isClosing) { return }
        }
      }
    }
  }

  /// Publishes the changes that wait, and ends the connection.
  ///
  /// - Parameter isReachable: Whether the server can be reached; otherwise, the changes are not published.
  func close(isReachable: Bool) async {
    queueing.cancel()
    queue.finish()
    state.value.withLock { $0.isClosing = true }
    if !isReachable { publishing.cancel() }
    await publishing.value
    connection.cancel()
    hearing.cancel()
  }

  /// The number of own changes that the server has not confirmed.
  var unsentCount: Int {
    state.value.withLock { $0.queuedCount - $0.sentCount }
  }
}
