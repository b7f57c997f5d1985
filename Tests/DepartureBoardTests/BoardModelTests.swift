import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import DepartureBoard

@MainActor
@Suite(.fewAtOnce) struct `The board` {
  private let bus = EventBus()
  private let gate = Gate()

  /// Returns a board whose lookups are answered once the gate is open; cancelled lookups are not answered.
  private func board(waitsForAnswers: Bool) -> Board {
    let board = Board(flights: [.sample(0), .sample(1)]) { [gate] _ in
      (try? await gate.wait()) == nil ? RowDetails() : .complete
    }
    board.follow(bus, waitsForAnswers: waitsForAnswers)
    return board
  }

  private func announce(_ ids: Flight.ID..., at time: String = "09:00") async {
    for id in ids { await bus.postAndWait(FlightChange(id, .scheduled)) }
    await bus.postAndWait(MomentReached(moment: .at(time)))
  }

  @Test func `requests and shows the details of announced flights`() async {
    let board = board(waitsForAnswers: false)
    await announce(0, 1)
    #expect(board.store.state.time == .at("09:00"))
    #expect(board.store.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    let end = Task { await board.finish() }
    // The jobs of the main actor run in order, so the call has begun and waits.
    for _ in 0..<5 { await Task {}.value }
    #expect(!board.store.state.bulletin.isLast)
    gate.open()
    await end.value
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
    #expect(board.store.state.bulletin.isLast)
  }

  @Test func `in waiting mode, delays a moment until all rows are answered`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    #expect(bulletins.elements.count <= 1)
    #expect(board.store.state.bulletin == Bulletin())
    gate.open()
    await day.value
    #expect(board.store.state.bulletin.time == .at("09:00"))
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `requests the details of each row once, and reports it once`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    gate.open()
    await announce(0)
    await announce(1, at: "09:01")
    await bus.postAndWait(FlightChange(0, .cancelled))
    await announce(at: "09:30")
    await announce(at: "09:31")
    await gate.arrivals(2)
    #expect(await bulletins.first(5).map { $0.new.rows.map(\.id) } == [[], [], [], [0], []])
  }

  /// Blocks the store of a board with an action of another thread, until the semaphore is signaled.
  private func holdUp(_ board: Board) async throws -> DispatchSemaphore {
    let entered = Gate()
    let turnstile = DispatchSemaphore(value: 0)
    let store = board.store
    let changes = store.changes(of: { state in
      guard !state.isOriginOnline else { return 0 }
      entered.open()
      turnstile.wait()
      turnstile.signal()
      return 0
    })
    Thread.detachNewThread {
      store.dispatch(.origin(isOnline: false))
      withExtendedLifetime(changes) {}
    }
    try await entered.wait()
    return turnstile
  }

  @Test func `ends after it has processed the last moment`() async throws {
    let board = board(waitsForAnswers: false)
    let turnstile = try await holdUp(board)
    await announce(0, 1)
    let isEnded = Gate()
    let end = Task {
      await board.finish()
      isEnded.open()
    }
    for _ in 0..<5 { await Task {}.value }
    turnstile.signal()
    // Both rows wait for their details.
    await gate.arrivals(2)
    for _ in 0..<5 { await Task {}.value }
    #expect(!isEnded.isOpen)
    gate.open()
    await end.value
    #expect(board.store.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `requests details once even if moments arrive faster than it can process them`()
    async throws
  {
    let questions = Messenger<Flight.ID>()
    let asked = Recorder(questions.subscription())
    let board = Board(flights: [.sample(0), .sample(1)]) { flight in
      questions.send(flight.id)
      return .complete
    }
    board.follow(bus, waitsForAnswers: false)
    let turnstile = try await holdUp(board)
    await announce(0)
    await announce(1, at: "09:01")
    await announce(at: "09:02")
    turnstile.signal()
    await board.finish()
    questions.finish()
    #expect(await asked.finished().sorted() == [0, 1])
  }

  @Test func `shows the changes that other boards share, and not its own again`() async {
    let board = board(waitsForAnswers: false)
    await bus.postAndWait(SharedChange(board: board.name, change: FlightChange(0, .cancelled)))
    #expect(board.store.state.rows.isEmpty)
    await bus.postAndWait(SharedChange(board: "other", change: FlightChange(1, .cancelled)))
    #expect(board.store.state.rows.map(\.id) == [1])
    #expect(board.store.state.heardCount == 1)
  }

  @Test func `ends pending requests when it is stopped`() async {
    let board = board(waitsForAnswers: true)
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    board.stop()
    await day.value
    #expect(board.store.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    #expect(bus.subscriberCount(for: FlightChange.self) == 0)
    #expect(bus.subscriberCount(for: MomentReached.self) == 0)
  }

  @Test func `cancels its requests when it is released`() async {
    var board: Board? = board(waitsForAnswers: false)
    await announce(0, 1)
    await gate.arrivals(2)
    weak let store = board?.store
    #expect(store != nil)
    board = nil
    #expect(store == nil)
    #expect(bus.subscriberCount(for: FlightChange.self) == 0)
  }
}
