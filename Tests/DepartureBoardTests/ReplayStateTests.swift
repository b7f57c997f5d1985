import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import DepartureBoard

@MainActor
@Suite(.fewAtOnce) struct `A replay` {
  private func replay(
    _ flights: [Flight],
    outage: Range<ClockTime>? = nil,
    until: ClockTime? = nil
  ) -> Replay {
    var options = Options()
    options.speed = .infinity
    options.offline = outage?.lowerBound
    options.online = outage?.upperBound
    options.until = until
    return Replay(flights, options)
  }

  private func entries(_ flight: Flight) -> [String] {
    replay([flight]).entries.map { "\($0.time) \($0.change.status.words)" }
  }

  @Test func `a replay announces a flight, its delay and its departure or cancellation`() {
    #expect(entries(.sample(0, departed: "09:55")) == ["09:00 on time", "09:55 departed 09:55"])
    #expect(entries(.sample(0, departed: "10:00")) == ["09:00 on time", "10:00 departed 10:00"])
    #expect(
      entries(.sample(0, departed: "10:01")) == [
        "09:00 on time", "10:00 delayed 10:01", "10:01 departed 10:01",
      ]
    )
    #expect(entries(.sample(0)) == ["09:00 on time", "09:30 cancelled"])
  }

  @Test func `a replay is in order of time, and announces each flight before its changes`() throws {
    let entries = replay(try Day().flights).entries
    for (entry, next) in zip(entries, entries.dropFirst()) { #expect(entry.time <= next.time) }
    var announced: Set<Flight.ID> = []
    for entry in entries {
      let isFirst = announced.insert(entry.change.flight).inserted
      #expect(isFirst == (entry.change.status == .scheduled))
    }
    #expect(announced.count == 930)
  }

  @Test(arguments: [
    (60, nil, nil, ["09:00", "10:00", "10:30"]), (1000, nil, nil, ["09:00", "10:30"]),
    (30, "09:40", nil, ["09:00", "09:30", "09:40"]), (30, "08:00", nil, ["09:00"]),
    (90, "11:00", nil, ["09:00", "10:30", "11:00"]),
    (1000, nil, "09:10", ["09:00", "09:10", "09:20", "10:30"]),
    (1000, nil, "08:00", ["09:00", "09:20", "10:30"]),
  ])
  func `a replay skips neither the ends of an outage nor the end of the day`(
    minutes: Int,
    until: String?,
    offline: String?,
    moments: [String]
  ) {
    let outage = offline.map { ClockTime.at($0)..<ClockTime.at("09:20") }
    let flight = Flight.sample(0, departed: "10:30")
    let replay = replay([flight], outage: outage, until: until.map(ClockTime.at))
    var times = [replay.begin]
    while let last = times.last, let next = replay.moment(after: last, step: .minutes(minutes)) {
      times.append(next)
    }
    #expect(times.map(\.description) == moments)
  }

  /// Replays a day; returns the bulletins, and the changes of the origin with the number of flights at that time.
  private func run(
    outage: Range<ClockTime>? = nil,
    until: ClockTime? = nil
  ) async throws -> (bulletins: [String], origin: [String]) {
    let flights = [Flight.sample(0, departed: "10:05"), .sample(1)]
    let replay = replay(flights, outage: outage, until: until)
    let clock = DayClock(at: replay.begin)
    let bus = EventBus()
    let origin = Log<String>()
    let board = Board(flights: flights) { _ in .complete }
    board.follow(bus, waitsForAnswers: true)
    let changes = board.store.subscription(toChangesOf: \.bulletin)
    try await replay.run(clock: clock, bus: bus) { isOnline in
      // All earlier changes have been processed, so no request is pending.
      #expect(board.store.state.rows.allSatisfy { $0.details == .complete && !$0.isPending })
      origin.append("\(clock.now) \(isOnline) \(board.store.state.flightCount)")
    }
    await board.finish()
    var bulletins: [String] = []
    for await change in changes {
      let bulletin = change.new
      bulletins.append("\(bulletin.time) \(bulletin.isOriginOnline) \(bulletin.rows.map(\.id))")
      if bulletin.isLast { break }
    }
    return (Array(bulletins.dropFirst()), origin.entries)
  }

  @Test func `a replay reports every ten minutes, after all changes and answers`() async throws {
    let day = try await run()
    #expect(
      day.bulletins == [
        "09:00 true []", "09:10 true []", "09:20 true []", "09:30 true [1]", "09:40 true []",
        "09:50 true []", "10:00 true []", "10:05 true [0]", "10:05 true []",
      ]
    )
    #expect(day.origin.isEmpty)
  }

  @Test func `a replay switches the origin off and on to the minute`() async throws {
    let day = try await run(outage: .at("09:05")..<(.at("09:12")), until: .at("09:20"))
    #expect(day.origin == ["09:05 false 2", "09:12 true 2"])
    #expect(
      day.bulletins == [
        "09:00 true []", "09:05 false []", "09:12 true []", "09:20 true []", "09:20 true []",
      ]
    )
    let early = try await run(outage: .at("09:00")..<(.at("09:12")), until: .at("09:05"))
    #expect(early.origin == ["09:00 false 0"])
  }

  @Test func `a replay posts a moment after all handlers of earlier changes have returned`()
    async throws
  {
    let bus = EventBus()
    let gate = Gate()
    let moments = Recorder(bus.subscription(to: MomentReached.self))
    let reader = bus.observe(FlightChange.self) { _ in try await gate.wait() }
    let replay = replay([.sample(0)], until: .at("09:00"))
    let day = Task {
      try await replay.run(clock: DayClock(at: .at("09:00")), bus: bus) { _ in }
    }
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

  @Test func `a replay ends when its task is cancelled`() async {
    let task = Task { _ = try await run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}

@Suite(.fewAtOnce) struct `The clock of the day` {
  @MainActor
  @Test func `the clock of the day wakes sleepers when it is advanced to their deadline`()
    async throws
  {
    let clock = DayClock(at: .at("00:00"))
    var woken = false
    let sleeper = Task {
      try await clock.sleep(until: .at("09:00"), tolerance: nil)
      woken = true
    }
    // The jobs of the main actor run in order, so the sleeper sleeps after this one.
    await Task {}.value
    clock.advance(to: .at("08:59"))
    await Task {}.value
    await Task {}.value
    #expect(!woken)
    clock.advance(to: .at("09:00"))
    try await sleeper.value
    #expect(woken && clock.now == .at("09:00"))
    try await clock.sleep(until: .at("08:00"), tolerance: nil)
  }

  @Test func `the clock of the day resumes a cancelled sleeper`() async {
    let clock = DayClock(at: .at("00:00"))
    let sleeper = Task { try await clock.sleep(for: .seconds(10)) }
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
  }
}

@Suite(.fewAtOnce) struct `A clock time` {
  @Test(arguments: [("00:00", 0), ("9:05", 545), ("09:05", 545), ("23:59", 1439), ("24:00", 1440)])
  func `a clock time is parsed from HH:MM`(text: String, minutes: Int) {
    #expect(ClockTime(text) == ClockTime(minutes: minutes))
  }

  @Test(arguments: [
    "", ":", "9", "0905", "9:5", "9:60", "24:01", "-1:00", "+9:00", "9:05:00", "९:00",
  ])
  func `a clock time is not parsed from a text of another form`(text: String) {
    #expect(ClockTime(text) == nil)
  }

  @Test(arguments: [(0, "00:00"), (545, "09:05"), (1440, "00:00"), (1445, "00:05"), (-5, "23:55")])
  func `a clock time is formatted as HH:MM, regardless of the day`(minutes: Int, text: String) {
    #expect(ClockTime(minutes: minutes).description == text)
    #expect(ClockTime(minutes: minutes).advanced(by: .seconds(59)).description == text)
  }

  @Test(arguments: [
    ("America/New_York", "12:00"), ("America/Chicago", "11:00"), ("America/Phoenix", "10:00"),
    ("America/Los_Angeles", "09:00"), ("Pacific/Honolulu", "07:00"),
  ])
  func `noon in a New York winter is an earlier clock time farther west`(
    zone: String,
    local: String
  ) throws {
    let zone = try #require(TimeZone(identifier: zone))
    #expect(ClockTime.at("12:00").local(in: zone).description == local)
    #expect(ClockTime.at("12:00").date.ISO8601Format() == "2013-02-08T17:00:00Z")
  }
}
