import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `Registrations of nodes` {
  private typealias State = RegistrationsState<ManualClock.Instant>

  private let start = ManualClock().now
  private var state = State(trust: .seconds(2))
  private var found = State.Silences()

  private func node(_ beat: String, trust: Duration = .seconds(4)) -> Tier.Laggard {
    Tier.Laggard(node: "a", trust: trust, beat: beat)
  }

  private mutating func sweep(_ nodes: [Tier.Laggard], after seconds: Int) -> State.Report {
    let time = start.advanced(by: .seconds(seconds))
    return state.note(all: nodes, beatingWithin: .seconds(300), loss: nil, at: time)
  }

  private mutating func wait(
    for nodes: [Tier.Laggard],
    loss: String? = nil,
    after seconds: Int
  ) -> State.Report {
    state.note(nodes, of: &found, loss: loss, at: start.advanced(by: .seconds(seconds)))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `nodes are waited for as long as their own trust lasts without a heartbeat`() {
    var report = wait(for: [node("1")], after: 0)
    #expect(report.remaining == .seconds(4))
    report = wait(for: [node("1")], after: 3)
    #expect(report.remaining == .seconds(1))
    #expect(report.ended == [])
    report = wait(for: [node("1")], after: 4)
    #expect(report.remaining == .zero)
    #expect(report.ended == [node("1")])
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `registrations of nodes are waited for again after each heartbeat`() {
    for number in 0..<5 {
      let report = wait(for: [node("\(number)")], after: 3 * number)
      #expect(report.remaining == .seconds(4))
      #expect(report.ended == [])
    }
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `nodes are waited for from the mark on, however long they have been silent`() {
    var report = sweep([node("1")], after: 0)
    #expect(report.ended == [])
    report = wait(for: [node("1")], after: 60)
    #expect(report.remaining == .seconds(4))
    report = wait(for: [node("1")], after: 64)
    #expect(report.ended == [node("1")])
    // Another mark is announced later.
    found = State.Silences()
    report = wait(for: [node("1")], after: 64)
    #expect(report.remaining == .seconds(4))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `registrations of nodes are kept as long as their heartbeats can confirm them`() {
    let limit = HeartbeatTimes.patience + .seconds(4)
    #expect(limit == .seconds(304))
    var report = sweep([node("1")], after: 0)
    #expect(report.ended == [])
    report = sweep([node("1")], after: 303)
    #expect(report.ended == [])
    report = sweep([node("1")], after: 304)
    #expect(report.ended == [node("1")])
    report = sweep([node("2")], after: 304)
    #expect(report.ended == [])
    report = sweep([node("3")], after: 700)
    #expect(report.ended == [])
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `lost registrations are waited for as long as the longest trust of any node`() {
    let isNew = state.note(loss: "x", longestTrust: .seconds(9), at: start)
    #expect(isNew)
    var report = wait(for: [], loss: "x", after: 8)
    #expect(report.remaining == .seconds(1))
    #expect(report.endedLoss == nil)
    #expect(!report.hasNewLoss)
    report = wait(for: [], loss: "x", after: 9)
    #expect(report.remaining == .zero)
    #expect(report.endedLoss == "x")
    // Another loss begins again.
    report = wait(for: [], loss: "y", after: 9)
    #expect(report.remaining == .seconds(9))
    #expect(report.hasNewLoss)
    report = wait(for: [], after: 9)
    #expect(report.remaining == .zero)
    #expect(!report.hasNewLoss)
  }
}
