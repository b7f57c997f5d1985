import Plexus
import PlexusSharedTesting
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `Flight changes of several boards` {
  /// One board: its bus, and the changes that it has received from others.
  private final class Board: Sendable {
    let bus = EventBus()
    let link: EventMemoryNode
    let changes: SharedChanges
    let heard = Log<FlightChange>()
    private let observation: ObservationToken

    init(_ name: String, _ engine: EventMemory, isReachable: Bool) {
      link = engine.node()
      observation = bus.observe(SharedChange.self) { [heard] shared in
        if shared.board != name { heard.append(shared.change) }
      }
      changes = SharedChanges(on: bus, of: name, over: link) { isReachable }
    }

    func announce(_ changes: [FlightChange]) async {
      for change in changes { await bus.postAndWait(change) }
    }
  }

  private static let probe = FlightChange(3, .cancelled)
  private let engine = EventMemory()

  /// Returns boards that have heard of one another.
  private func boards(_ count: Int, areReachable: Bool = true) async -> [Board] {
    let boards = (0..<count).map { Board("\($0)", engine, isReachable: areReachable) }
    let count = Guarded(0)
    await Program.wait { [engine] in
      let number = count.withLock { count in
        count += 1
        return count
      }
      let body = #"{"board":"x","change":{"flight":3,"status":{"cancelled":{}}}}"#
      engine.insert(.change("probe.\(number)", body), into: "departures")
      return boards.allSatisfy { $0.heard.count > 0 }
    }
    return boards
  }

  /// The changes of a board without probes.
  private func heard(_ board: Board) -> [FlightChange] {
    board.heard.entries.filter { $0 != Self.probe }
  }

  @Test func `shared flight changes reach every other board in order, even if their board ends`()
    async
  {
    let boards = await boards(3)
    let changes = [
      FlightChange(0, .scheduled), FlightChange(0, .delayed(until: .at("10:30"))),
      FlightChange(0, .departed(at: .at("10:31"))),
    ]
    await boards[0].announce(changes)
    #expect(await boards[0].changes.close() == 3)
    let last = FlightChange(1, .scheduled)
    await boards[1].announce([last])
    #expect(await boards[1].changes.close() == 1)
    await boards[2].heard.contains(last)
    #expect(heard(boards[2]) == changes + [last])
    #expect(heard(boards[0]).isEmpty)
    #expect(await boards[2].changes.close() == 0)
  }

  @Test func `shared flight changes that cannot be decoded are not received`() async {
    let boards = await boards(1)
    for (number, body) in ["garbage", "{}", #"{"board":"x","change":{"flight":1}}"#].enumerated() {
      engine.insert(.change("\(number)", body), into: "departures")
    }
    let body = #"{"board":"x","change":{"flight":1,"status":{"cancelled":{}}}}"#
    engine.insert(.change("last", body), into: "departures")
    await boards[0].heard.contains(FlightChange(1, .cancelled))
    #expect(heard(boards[0]) == [FlightChange(1, .cancelled)])
    _ = await boards[0].changes.close()
  }

  @Test(arguments: [true, false])
  func `shared flight changes that cannot be published delay no board`(isReachable: Bool) async {
    let boards = await boards(1, areReachable: isReachable)
    boards[0].link.cutOff()
    await boards[0].announce((0..<4).map { FlightChange($0, .scheduled) })
    #expect(await boards[0].changes.close() == 0)
  }
}

extension LinkMessage {
  /// A message of another program.
  fileprivate static func change(_ id: String, _ body: String) -> Self {
    Self(id: id, type: "departures", version: 1, origin: "x", body: Array(body.utf8))
  }
}
