import Plexus

/// The flight changes that several boards share over a link, such as that of a Redis server.
///
/// The changes of this board are published in order. The replay does not wait for that: a board works without the
/// server, too.
final class SharedChanges: Sendable {
  private let connection: ObservationToken
  private let observation: ObservationToken
  private let queue: AsyncStream<FlightChange>.Continuation
  private let publishing: Task<Int, Never>

  /// Begins to share changes.
  ///
  /// - Parameters:
  ///   - bus: The bus on which this board posts its changes, and on which those of all boards arrive.
  ///   - board: The name of this board.
  ///   - link: The link to the other boards.
  ///   - isReachable: Returns whether the link can be used. Otherwise, changes are not published.
  init(
    on bus: EventBus,
    of board: String,
    over link: any EventLink,
    isReachable: @escaping @Sendable () -> Bool
  ) {
    let (changes, queue) = AsyncStream.makeStream(of: FlightChange.self)
    self.queue = queue
    connection = bus.connect(SharedChange.self, as: "departures", over: link, .everyNode())
    observation = bus.observe(FlightChange.self) { change in queue.yield(change) }
    publishing = Task.detached {
      var sentCount = 0
      for await change in changes where isReachable() {
        do {
          try await bus.publish(SharedChange(board: board, change: change))
          sentCount += 1
        } catch {
          // The other boards announce the change when their own day is that far.
        }
      }
      return sentCount
    }
  }

  /// Publishes the changes that wait, and ends the connection.
  ///
  /// - Returns: The number of changes that the server has confirmed.
  func close() async -> Int {
    observation.cancel()
    queue.finish()
    let sentCount = await publishing.value
    connection.cancel()
    return sentCount
  }
}
