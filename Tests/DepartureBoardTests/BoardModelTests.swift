import Plexus
import PlexusTesting
import Testing

@testable import DepartureBoard

@MainActor
@Suite(.timeLimit(.minutes(5))) struct `The board` {
  private let announcements = Messenger<Announcement>()
  private let gate = Gate()

  /// A board whose questions are answered once the gate is open; a cancelled one is not.
  private func board(waitsForAnswers: Bool) -> Board {
    let board = Board(waitsForAnswers: waitsForAnswers) { [gate] _ in
      (try? await gate.wait()) == nil ? RowDetails() : .complete
    }
    board.follow(announcements)
    return board
  }

  private func announce(_ ids: Flight.ID..., at time: String = "09:00") {
    for id in ids { announcements.send(.scheduled(.sample(id, at: "10:00"))) }
    announcements.send(.clock(.at(time)))
  }

  @Test func `asks for the details of what is announced and shows them`() async {
    let board = board(waitsForAnswers: false)
    var moments = board.moments.subscription().makeAsyncIterator()
    announce(0, 1)
    #expect(await moments.next() == .at("09:00"))
    #expect(board.state.rows.map(\.details) == [RowDetails(), RowDetails()])
    gate.open()
    await board.settle()
    #expect(board.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `lets no moment pass before all rows are answered if it is to wait`() async {
    let board = board(waitsForAnswers: true)
    let moments = Recorder(board.moments.subscription())
    announce(0, 1)
    await gate.arrivals(2)
    #expect(moments.elements.isEmpty)
    gate.open()
    #expect(await moments.first(1) == [.at("09:00")])
    #expect(board.state.rows.map(\.details) == [.complete, .complete])
  }

  @Test func `asks once for each row, and reports it once`() async {
    let board = board(waitsForAnswers: true)
    var moments = board.moments.subscription().makeAsyncIterator()
    gate.open()
    announce(0)
    announce(1, at: "09:01")
    announcements.send(.cancelled(0))
    announce(at: "09:30")
    while let moment = await moments.next(), moment < .at("09:30") {}
    await gate.arrivals(2)
    #expect(board.takeReports().map(\.id) == [0])
    #expect(board.takeReports().isEmpty)
  }

  @Test func `gives up its questions when it is stopped`() async {
    let board = board(waitsForAnswers: false)
    announce(0, 1)
    await gate.arrivals(2)
    board.stop()
    await board.settle()
    #expect(board.state.rows.map(\.details) == [RowDetails(), RowDetails()])
  }
}

@MainActor
@Suite(.timeLimit(.minutes(5))) struct `A replay` {
  /// What an origin and a screen see of a day.
  @MainActor
  private final class Log {
    var entries: [String] = []

    func append(_ entry: String) {
      entries.append(entry)
    }
  }

  private func run(
    outage: Outage? = nil,
    until: ClockTime? = nil,
    logsQuestions: Bool = false
  ) async throws -> [String] {
    let script = Script(flights: [
      .sample(0, at: "10:00", departed: "10:05"), .sample(1, at: "10:00"),
    ])
    let timeline = Timeline(script: script, outage: outage, until: until)
    let clock = DayClock(at: timeline.begin)
    let log = Log()
    let board = Board(waitsForAnswers: true) { _ in
      if logsQuestions { await log.append("?") }
      return .complete
    }
    let replay = Replay(
      script: script,
      timeline: timeline,
      pace: .maximum,
      clock: clock,
      board: board,
      setOrigin: { isOnline in
        // Whoever has been told of the moment already has its answer before the origin goes or comes.
        for _ in 0..<5 { await Task {}.value }
        await board.settle()
        log.entries.append("\(isOnline)")
      },
      show: {
        let time = ClockTime(sinceMidnight: clock.now.sinceMidnight)
        #expect(board.state.time == time)
        #expect(board.state.rows.allSatisfy { $0.details == .complete })
        log.entries.append("\(time) \(board.state.departedCount) \(board.state.cancelledCount)")
        _ = board.takeReports()
      }
    )
    try await replay.run()
    return log.entries
  }

  @Test func `shows every ten minutes with everything announced and answered`() async throws {
    #expect(
      try await run() == [
        "09:00 0 0", "09:10 0 0", "09:20 0 0", "09:30 0 1", "09:40 0 1", "09:50 0 1", "10:00 0 1",
        "10:05 1 1", "10:05 1 1",
      ]
    )
  }

  @Test func `switches the origin off and on to the minute`() async throws {
    let outage = Outage(begin: .at("09:05"), end: .at("09:12"))
    #expect(
      try await run(outage: outage, until: .at("09:20")) == [
        "09:00 0 0", "false", "09:05 0 0", "true", "09:12 0 0", "09:20 0 0", "09:20 0 0",
      ]
    )
  }

  @Test func `lets nobody ask an origin that is to be away by then`() async throws {
    let away = Outage(begin: .at("09:00"), end: .at("09:12"))
    #expect(
      try await run(outage: away, until: .at("09:05"), logsQuestions: true) == [
        "false", "?", "?", "09:00 0 0", "09:05 0 0", "09:05 0 0",
      ]
    )
  }

  @Test func `ends when its task is cancelled`() async {
    let task = Task { try await run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
