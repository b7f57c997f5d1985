import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The script` {
  @Test(arguments: ["09:55", "10:00"])
  func `announces a flight an hour before its scheduled departure, and its departure`(time: String)
  {
    let flight = Flight.sample(0, at: "10:00", departed: time)
    let script = Script(flights: [flight])
    #expect(
      script.entries == [
        .init(time: .at("09:00"), change: .scheduled(flight)),
        .init(time: .at(time), change: .departed(0, at: .at(time))),
      ]
    )
    #expect(script.begin == .at("09:00"))
    #expect(script.end == .at(time))
  }

  @Test func `announces a delay at the scheduled departure`() {
    let script = Script(flights: [.sample(0, at: "10:00", departed: "10:01")])
    #expect(
      script.entries.dropFirst() == [
        .init(time: .at("10:00"), change: .delayed(0, until: .at("10:01"))),
        .init(time: .at("10:01"), change: .departed(0, at: .at("10:01"))),
      ]
    )
  }

  @Test func `announces a cancellation half an hour before the scheduled departure`() {
    let script = Script(flights: [.sample(0, at: "10:00", departed: nil)])
    #expect(
      script.entries.dropFirst() == [.init(time: .at("09:30"), change: .cancelled(0))]
    )
  }

  @Test func `is in order of time, and of the timetable at the same time`() throws {
    let script = Script(flights: try Day.bundled().flights)
    for (entry, next) in zip(script.entries, script.entries.dropFirst()) {
      #expect(entry.time <= next.time)
    }
    let first = Script(flights: [.sample(0, at: "10:00"), .sample(1, at: "10:00")])
    #expect(
      first.entries.map(\.change).prefix(2) == [
        .scheduled(.sample(0, at: "10:00")), .scheduled(.sample(1, at: "10:00")),
      ]
    )
  }

  @Test func `announces each flight before its changes`() throws {
    var announced: Set<Flight.ID> = []
    for entry in Script(flights: try Day.bundled().flights).entries {
      switch entry.change {
      case .scheduled(let flight): #expect(announced.insert(flight.id).inserted)
      case .delayed(let id, _), .departed(let id, _), .cancelled(let id):
        #expect(announced.contains(id))
      }
    }
    #expect(announced.count == 930)
  }

  @Test func `of no flights is empty`() {
    let script = Script(flights: [])
    #expect(script.entries.isEmpty)
    #expect(script.begin == script.end)
  }
}

@Suite(.fewAtOnce) struct `The timeline` {
  private func timeline(_ outage: Outage? = nil, until: ClockTime? = nil) -> Timeline {
    let flight = Flight.sample(0, at: "10:00", departed: "10:30")
    return Timeline(script: Script(flights: [flight]), outage: outage, until: until)
  }

  private func moments(_ timeline: Timeline, step: Int) -> [String] {
    var moments = [timeline.begin]
    while let last = moments.last,
      let next = timeline.moment(after: last, step: .seconds(step * 60))
    {
      moments.append(next)
    }
    return moments.map { ClockTime(sinceMidnight: $0).description }
  }

  @Test func `goes from the first announcement to the last`() {
    #expect(moments(timeline(), step: 60) == ["09:00", "10:00", "10:30"])
    #expect(moments(timeline(), step: 1000) == ["09:00", "10:30"])
  }

  @Test func `ends at the given time`() {
    #expect(moments(timeline(until: .at("09:40")), step: 30) == ["09:00", "09:30", "09:40"])
    #expect(moments(timeline(until: .at("11:00")), step: 90) == ["09:00", "10:30", "11:00"])
    #expect(moments(timeline(until: .at("08:00")), step: 30) == ["09:00"])
  }

  @Test func `never skips the ends of an outage`() {
    let outage = Outage(begin: .at("09:10"), end: .at("09:20"))
    let timeline = timeline(outage)
    #expect(moments(timeline, step: 1000) == ["09:00", "09:10", "09:20", "10:30"])
    #expect(
      ["09:09", "09:10", "09:19", "09:20"].map { timeline.isOnline(at: .at($0)) }
        == [true, false, false, true]
    )
  }

  @Test func `can begin in an outage`() {
    let timeline = timeline(Outage(begin: .at("08:00"), end: .at("09:20")))
    #expect(!timeline.isOnline(at: timeline.begin))
    #expect(moments(timeline, step: 1000) == ["09:00", "09:20", "10:30"])
  }
}

@Suite(.fewAtOnce) struct `The clock of the day` {
  @Test func `stands still until it is advanced, and never goes back`() {
    let clock = DayClock(at: .seconds(60))
    #expect(clock.now.sinceMidnight == .seconds(60))
    clock.advance(to: .milliseconds(90_500))
    #expect(clock.now.sinceMidnight == .milliseconds(90_500))
    clock.advance(to: .seconds(30))
    #expect(clock.now.sinceMidnight == .milliseconds(90_500))
  }

  @Test func `represents every minute of the day exactly`() {
    for minute in 0..<1600 {
      #expect(DayClock(at: .seconds(minute * 60)).now.sinceMidnight == .seconds(minute * 60))
    }
  }

  @MainActor
  @Test func `wakes sleepers when it is advanced to their deadline`() async throws {
    let clock = DayClock(at: .zero)
    var woken = false
    let sleeper = Task {
      try await clock.sleep(until: .init(sinceMidnight: .seconds(10)), tolerance: nil)
      woken = true
    }
    // The jobs of the main actor run in order, so the sleeper sleeps after this one.
    await Task {}.value
    clock.advance(to: .milliseconds(9999))
    await Task {}.value
    await Task {}.value
    #expect(!woken)
    clock.advance(to: .seconds(10))
    try await sleeper.value
    #expect(woken)
  }

  @Test func `does not suspend a task after its deadline`() async throws {
    let clock = DayClock(at: .seconds(10))
    try await clock.sleep(until: .init(sinceMidnight: .seconds(10)), tolerance: nil)
    try await clock.sleep(until: .init(sinceMidnight: .zero), tolerance: nil)
    #expect(clock.now.sinceMidnight == .seconds(10))
  }

  @Test func `resumes a cancelled sleeper`() async {
    let clock = DayClock(at: .zero)
    let sleeper = Task { try await clock.sleep(for: .seconds(10)) }
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
  }
}
