import TestSupport
import Testing

@testable import PlexusNetworking

/// A line whose members may be called in an expectation.
private final class Line {
  var state: HostGateState<String>

  init(limit: Int) { state = HostGateState(limit: limit) }

  func enter(_ host: String, id: Int, for key: String) -> Bool {
    state.enter(host, id: id, for: key)
  }

  func leave(_ host: String) -> Int? { state.leave(host) }

  func want(_ key: String, urgency: Int) -> Bool { state.want(key, urgency: urgency) }

  func unwant(_ key: String, urgency: Int) -> Bool { state.unwant(key, urgency: urgency) }
}

@Suite(.fewAtOnce) struct `The line at a host` {
  @Test func `as many transfers run as the limit allows, for each host by itself`() {
    let line = Line(limit: 2)
    #expect(line.enter("host", id: 1, for: "a"))
    #expect(line.enter("host", id: 2, for: "b"))
    #expect(!line.enter("host", id: 3, for: "c"))
    #expect(line.enter("other", id: 4, for: "d"))
    #expect(line.leave("host") == 3)
    #expect(line.leave("host") == nil)
    #expect(line.leave("host") == nil)
    #expect(line.leave("other") == nil)
    #expect(line.state.isEmpty)
  }

  @Test func `transfers with callers go first, by urgency, then by arrival`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    for (id, key) in ["a", "b", "c", "d"].enumerated() {
      _ = line.enter("host", id: id + 1, for: key)
    }
    // A prefetched key becomes urgent while it waits; its most urgent caller counts.
    _ = line.want("c", urgency: 0)
    _ = line.want("d", urgency: 0)
    _ = line.want("d", urgency: 25)
    #expect((0..<4).map { _ in line.leave("host") } == [4, 3, 1, 2])
  }

  @Test func `who no longer asks no longer counts`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    _ = line.enter("host", id: 1, for: "a")
    _ = line.enter("host", id: 2, for: "b")
    _ = line.want("b", urgency: 25)
    _ = line.unwant("b", urgency: 25)
    #expect(line.leave("host") == 1)
  }

  @Test func `a transfer that leaves the line costs no other one its turn`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    _ = line.enter("host", id: 1, for: "a")
    _ = line.enter("host", id: 2, for: "b")
    line.state.cancel(1)
    #expect(line.leave("host") == 2)
    #expect(line.leave("host") == nil)
    #expect(line.state.isEmpty)
  }

  @Test func `a key is as urgent as to the one to whom it is most urgent`() {
    let line = Line(limit: 1)
    #expect(line.state.urgency(of: "a") == nil)
    #expect(line.want("a", urgency: 9))
    #expect(line.want("a", urgency: 25))
    #expect(!line.want("a", urgency: 25))
    #expect(!line.want("a", urgency: 17))
    #expect(line.state.urgency(of: "a") == 25)
    #expect(!line.unwant("a", urgency: 25))
    #expect(line.unwant("a", urgency: 25))
    #expect(line.state.urgency(of: "a") == 17)
    #expect(!line.unwant("a", urgency: 9))
    #expect(!line.unwant("a", urgency: 9))
    #expect(line.unwant("a", urgency: 17))
    #expect(line.state.isEmpty)
  }

  @Test func `a line does not grow with transfers that come and go`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    _ = line.enter("host", id: 1, for: "a")
    for id in 2..<10_000 {
      _ = line.enter("host", id: id, for: "b")
      _ = line.want("a", urgency: id % 3)
      _ = line.unwant("a", urgency: id % 3)
      line.state.cancel(id)
    }
    #expect(line.state.entryCount < 40)
    #expect(line.leave("host") == 1)
    #expect(line.leave("host") == nil)
    #expect(line.state.isEmpty)
  }

  /// The same rules without any structure, in the plainest way.
  private struct Reference {
    var running = 0
    var line: [(id: Int, key: String)] = []
    var demand: [(key: String, urgency: Int)] = []

    mutating func leave() -> Int? {
      let ranks = line.map { one in
        demand.filter { $0.key == one.key }.map(\.urgency).max() ?? -1
      }
      guard let best = ranks.max(), let index = ranks.firstIndex(of: best) else {
        running = max(0, running - 1)
        return nil
      }
      return line.remove(at: index).id
    }
  }

  @Test(arguments: 0..<20)
  func `turns are given as a list that is searched would give them`(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    func next(_ limit: Int) -> Int { .random(in: 0..<limit, using: &random) }
    let line = Line(limit: 2)
    var reference = Reference()
    for id in 0..<2_000 {
      let key = ["a", "b", "c", "d", "e"][next(5)]
      switch next(6) {
      case 0, 1:
        let goesOn = reference.running < 2
        if goesOn { reference.running += 1 } else { reference.line.append((id, key)) }
        #expect(line.enter("host", id: id, for: key) == goesOn)
      case 2:
        let urgency = next(4)
        reference.demand.append((key, urgency))
        _ = line.want(key, urgency: urgency)
      case 3 where !reference.demand.isEmpty:
        let gone = reference.demand.remove(at: next(reference.demand.count))
        _ = line.unwant(gone.key, urgency: gone.urgency)
      case 4 where !reference.line.isEmpty:
        line.state.cancel(reference.line.remove(at: next(reference.line.count)).id)
      default:
        guard reference.running > 0 else { continue }
        #expect(line.leave("host") == reference.leave())
      }
    }
  }
}
