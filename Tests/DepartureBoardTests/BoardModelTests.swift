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

  /// Returns a board whose requests are answered once the gate is open; cancelled requests are not answered.
  private func board(waitsForAnswers: Bool) -> Board {
    let board = Board(waitsForAnswers: waitsForAnswers) { [gate] _ in
      (try? await gate.wait()) == nil ? RowDetails() : .complete
    }
    board.follow(bus)
    return board
  }

  private func announce(_ ids: Flight.ID..., at time: String = "09:00") async {
    for id in ids { await bus.postAndWait(FlightChange.scheduled(.sample(id, at: "10:00"))) }
    await bus.postAndWait(MomentReached(moment: .at(time)))
  }

  @Test func `requests and shows the details of announced flights`() async {
    let board = board(waitsForAnswers: false)
    await announce(0, 1)
    #expect(board.state.now == .at("09:00"))
    #expect(board.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    let end = Task { await board.finish() }
    // The jobs of the main actor run in order, so the call has begun and waits.
    for _ in 0..<5 { await Task {}.value }
    #expect(!board.state.isOver)
    gate.open()
    await end.value
    #expect(board.state.rows.map(\.details) == [.complete, .complete])
    #expect(board.state.isOver)
  }

  @Test func `in waiting mode, delays a moment until all rows are answered`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    #expect(bulletins.elements.count <= 1)
    #expect(board.state.bulletin == Bulletin())
    gate.open()
    await day.value
    #expect(board.state.bulletin.time == .at("09:00"))
    #expect(board.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `requests the details of each row once, and reports it once`() async {
    let board = board(waitsForAnswers: true)
    let bulletins = Recorder(board.store.subscription(toChangesOf: \.bulletin))
    gate.open()
    await announce(0)
    await announce(1, at: "09:01")
    await bus.postAndWait(FlightChange.cancelled(0))
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
    #expect(board.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `requests details once even if moments arrive faster than it can process them`()
    async throws
  {
    let questions = Messenger<Flight.ID>()
    let asked = Recorder(questions.subscription())
    let board = Board(waitsForAnswers: false) { flight in
      questions.send(flight.id)
      return .complete
    }
    board.follow(bus)
    let turnstile = try await holdUp(board)
    await announce(0)
    await announce(1, at: "09:01")
    await announce(at: "09:02")
    turnstile.signal()
    await board.finish()
    questions.finish()
    #expect(await asked.finished().sorted() == [0, 1])
  }

  @Test func `records whether the origin is online`() async {
    let board = board(waitsForAnswers: false)
    await bus.postAndWait(OriginChange(isOnline: false))
    #expect(!board.state.isOriginOnline)
  }

  @Test func `ends pending requests when it is stopped`() async {
    let board = board(waitsForAnswers: true)
    let day = Task { await announce(0, 1) }
    await gate.arrivals(2)
    board.stop()
    await day.value
    #expect(board.state.rows.map(\.details) == [RowDetails(), RowDetails()])
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

@MainActor
@Suite(.fewAtOnce) struct `A replay` {
  /// The state changes of an origin during a day.
  @MainActor
  private final class Log {
    var entries: [String] = []
  }

  /// Replays a day; returns the bulletins, and the changes of the origin with the number of flights at that time.
  private func run(
    outage: Outage? = nil,
    until: ClockTime? = nil
  ) async throws -> (bulletins: [String], origin: [String]) {
    let script = Script(flights: [
      .sample(0, at: "10:00", departed: "10:05"), .sample(1, at: "10:00"),
    ])
    let timeline = Timeline(script: script, outage: outage, until: until)
    let clock = DayClock(at: timeline.begin)
    let bus = EventBus()
    let log = Log()
    let board = Board(waitsForAnswers: true) { _ in .complete }
    board.follow(bus)
    let changes = board.store.subscription(toChangesOf: \.bulletin)
    let replay = Replay(
      script: script,
      timeline: timeline,
      pace: .maximum,
      clock: clock,
      bus: bus,
      setOrigin: { isOnline in
        // All earlier changes have been processed, so no request is pending.
        #expect(board.state.askingCount == 0)
        #expect(board.state.rows.allSatisfy { $0.details == .complete })
        let time = ClockTime(sinceMidnight: clock.now.sinceMidnight)
        log.entries.append("\(time) \(isOnline) \(board.state.flightCount)")
      }
    )
    try await replay.run()
    await board.finish()
    var bulletins: [String] = []
    for await change in changes {
      let bulletin = change.new
      bulletins.append("\(bulletin.time) \(bulletin.isOriginOnline) \(bulletin.rows.map(\.id))")
      if bulletin.isLast { break }
    }
    return (bulletins, log.entries)
  }

  @Test func `reports every ten minutes, after all changes and answers`() async throws {
    let day = try await run()
    #expect(
      day.bulletins.dropFirst() == [
        "09:00 true []", "09:10 true []", "09:20 true []", "09:30 true [1]", "09:40 true []",
        "09:50 true []", "10:00 true []", "10:05 true [0]", "10:05 true []",
      ]
    )
    #expect(day.origin.isEmpty)
  }

  @Test func `posts a moment after all handlers of earlier changes have returned`() async throws {
    let script = Script(flights: [.sample(0, at: "10:00")])
    let bus = EventBus()
    let gate = Gate()
    let moments = Recorder(bus.subscription(to: MomentReached.self))
    let reader = bus.observe(FlightChange.self) { _ in try await gate.wait() }
    let replay = Replay(
      script: script,
      timeline: Timeline(script: script, outage: nil, until: .at("09:00")),
      pace: .maximum,
      clock: DayClock(at: .at("09:00")),
      bus: bus,
      setOrigin: { _ in }
    )
    let day = Task { try await replay.run() }
    await gate.arrivals(1)
    for _ in 0..<5 { await Task {}.value }
    // No subscriber has received the moment, not even one that does not observe flights.
    let late = MomentReached(moment: .at("23:00"))
    await bus.postAndWait(late)
    #expect(await moments.first(1) == [late])
    gate.open()
    try await day.value
    #expect(await moments.first(2) == [late, MomentReached(moment: .at("09:00"))])
    reader.cancel()
  }

  @Test func `switches the origin off and on to the minute`() async throws {
    let outage = Outage(begin: .at("09:05"), end: .at("09:12"))
    let day = try await run(outage: outage, until: .at("09:20"))
    #expect(day.origin == ["09:05 false 2", "09:12 true 2"])
    #expect(
      day.bulletins.dropFirst() == [
        "09:00 true []", "09:05 false []", "09:12 true []", "09:20 true []", "09:20 true []",
      ]
    )
  }

  @Test func `does not request details after the start of an outage`() async throws {
    let away = Outage(begin: .at("09:00"), end: .at("09:12"))
    let day = try await run(outage: away, until: .at("09:05"))
    #expect(day.origin == ["09:00 false 0"])
    #expect(day.bulletins.dropFirst() == ["09:00 false []", "09:05 false []", "09:05 false []"])
  }

  @Test func `ends when its task is cancelled`() async {
    let task = Task { _ = try await run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
