import PlexusTesting
import Testing

@testable import PlexusRedis

@Suite struct `Registrations of nodes` {
  private typealias State = RegistrationsState<ManualClock.Instant>

  private let start = ManualClock().now
  private var state = State(trust: .seconds(2))

  private func node(_ beat: String, trust: Duration = .seconds(4)) -> Tier.Laggard {
    Tier.Laggard(node: "a", trust: trust, beat: beat)
  }

  @Test mutating func `are waited for as long as their own trust lasts without a heartbeat`() {
    var report = state.note([node("1")], loss: nil, isComplete: false, at: start)
    #expect(report.remaining == .seconds(4))
    let later = start.advanced(by: .seconds(3))
    report = state.note([node("1")], loss: nil, isComplete: false, at: later)
    #expect(report.remaining == .seconds(1))
    #expect(report.ended == [])
    let end = start.advanced(by: .seconds(4))
    report = state.note([node("1")], loss: nil, isComplete: false, at: end)
    #expect(report.remaining == .zero)
    #expect(report.ended == [node("1")])
  }

  @Test mutating func `are waited for again after each heartbeat`() {
    for number in 0..<5 {
      let time = start.advanced(by: .seconds(3 * number))
      let report = state.note([node("\(number)")], loss: nil, isComplete: false, at: time)
      #expect(report.remaining == .seconds(4))
      #expect(report.ended == [])
    }
  }

  @Test mutating func `are not waited for if they have been silent for long`() {
    _ = state.note([node("1")], loss: nil, isComplete: true, at: start)
    let later = start.advanced(by: .seconds(60))
    let report = state.note([node("1")], loss: nil, isComplete: false, at: later)
    #expect(report.remaining == .zero)
  }

  @Test mutating func `that were lost are waited for as long as the longest trust of any node`() {
    state.note(loss: "x", longestTrust: .seconds(9), at: start)
    let later = start.advanced(by: .seconds(8))
    var report = state.note([], loss: "x", isComplete: false, at: later)
    #expect(report.remaining == .seconds(1))
    #expect(report.endedLoss == nil)
    let end = start.advanced(by: .seconds(9))
    report = state.note([], loss: "x", isComplete: false, at: end)
    #expect(report.remaining == .zero)
    #expect(report.endedLoss == "x")
    // Another loss begins again.
    report = state.note([], loss: "y", isComplete: false, at: end)
    #expect(report.remaining == .seconds(9))
    report = state.note([], loss: nil, isComplete: false, at: end)
    #expect(report.remaining == .zero)
  }
}
