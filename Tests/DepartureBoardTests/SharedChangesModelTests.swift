import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `Flight changes of several boards` {
  /// One board: its bus, and the changes that it has heard.
  private final class Board: Sendable {
    let bus = EventBus()
    let link: EventMemoryNode
    let changes: SharedChanges
    let heard = Log<FlightChange>()
    private let observation: ObservationToken

    init(_ engine: EventMemory) {
      link = engine.node()
      observation = bus.observe(HeardChange.self) { [heard] in heard.append($0.change) }
      changes = SharedChanges(over: link, flights: Self.flights, bus: bus)
    }

    static let flights = (0..<4).map { Flight.sample($0, at: "10:00") }

    /// Announces changes of its own.
    func announce(_ changes: FlightChange...) async {
      for change in changes { await bus.postAndWait(change) }
    }
  }

  private let engine = EventMemory()

  /// Returns boards that have heard of one another.
  private func boards(_ count: Int) async -> [Board] {
    let boards = (0..<count).map { _ in Board(engine) }
    // Until all are connected.
    let count = Guarded(0)
    await Program.wait { [engine] in
      let number = count.withLock { count in
        count += 1
        return count
      }
      engine.insert(
        .news("probe.\(number)", #"{"board":"x","flight":3,"status":{"cancelled":{}}}"#)
      )
      return boards.allSatisfy { $0.heard.count > 0 }
    }
    return boards
  }

  @Test func `reach every other board, in order, and no board twice`() async {
    let boards = await boards(3)
    let flight = Board.flights[0]
    let changes: [FlightChange] = [
      .scheduled(flight), .delayed(0, until: .at("10:30")), .departed(0, at: .at("10:31")),
    ]
    for change in changes { await boards[0].announce(change) }
    for board in boards.dropFirst() {
      #expect(await board.heard.first(4) == [.cancelled(3)] + changes)
    }
    let count = engine.messages(of: "departures-changes").count
    // What was heard is not published again when the own day is that far.
    for change in changes { await boards[1].announce(change) }
    await boards[1].announce(.scheduled(Board.flights[1]))
    await boards[0].heard.contains(.scheduled(Board.flights[1]))
    #expect(engine.messages(of: "departures-changes").count == count + 1)
    #expect(boards[0].heard.entries == [.cancelled(3), .scheduled(Board.flights[1])])
    for board in boards { await board.changes.close(isReachable: true) }
    #expect(boards.allSatisfy { $0.changes.unsentCount == 0 })
  }

  @Test func `are not shown if they are of another day, or not readable`() async {
    let boards = await boards(1)
    for body in [
      "garbage", "{}", #"{"board":"x","flight":99,"status":{"cancelled":{}}}"#,
      #"{"board":"x","flight":-1,"status":{"cancelled":{}}}"#,
      #"{"board":"x","flight":1,"status":{"departed":{"at":9223372036854775807}}}"#,
      #"{"board":"x","flight":1,"status":{"delayed":{"until":-9223372036854775808}}}"#,
      #"{"board":"x","flight":1,"status":{"departed":{"at":600}}}"#,
    ].enumerated() {
      engine.insert(.news("\(body.offset)", body.element))
    }
    #expect(await boards[0].heard.first(2) == [.cancelled(3), .departed(1, at: .at("10:00"))])
    await boards[0].changes.close(isReachable: true)
  }

  @Test func `that wait are published before a board ends`() async {
    let boards = await boards(2)
    for flight in Board.flights { await boards[0].announce(.scheduled(flight)) }
    await boards[0].changes.close(isReachable: true)
    #expect(boards[0].changes.unsentCount == 0)
    #expect(await boards[1].heard.first(5).count == 5)
    await boards[1].changes.close(isReachable: true)
  }

  @Test(arguments: [true, false])
  func `that cannot be published hold up no board`(isReachable: Bool) async {
    let boards = await boards(1)
    boards[0].link.cutOff()
    for flight in Board.flights { await boards[0].announce(.scheduled(flight)) }
    await boards[0].changes.close(isReachable: isReachable)
    #expect(boards[0].changes.unsentCount == 4)
  }
}

extension LinkMessage {
  /// A message of another program.
  fileprivate static func news(_ id: String, _ body: String) -> Self {
    Self(id: id, type: "departures-changes", version: 1, origin: "x", body: Array(body.utf8))
  }
}

extension EventMemory {
  fileprivate func insert(_ message: LinkMessage) {
    insert(message, into: "departures-changes")
  }
}
