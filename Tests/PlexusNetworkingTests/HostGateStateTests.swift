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
}

@Suite struct `The line at a host` {
  @Test func `as many go on as may, each host by itself`() {
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

  @Test func `those that somebody asks for go first, by urgency, then by arrival`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    for (id, key) in ["a", "b", "c", "d"].enumerated() {
      _ = line.enter("host", id: id + 1, for: key)
    }
    // What is prefetched becomes urgent while it waits, the most urgent of those who ask counts.
    line.state.want("c", urgency: 0)
    line.state.want("d", urgency: 0)
    line.state.want("d", urgency: 25)
    #expect((0..<4).map { _ in line.leave("host") } == [4, 3, 1, 2])
  }

  @Test func `who no longer asks no longer counts`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    _ = line.enter("host", id: 1, for: "a")
    _ = line.enter("host", id: 2, for: "b")
    line.state.want("b", urgency: 25)
    line.state.unwant("b", urgency: 25)
    #expect(line.leave("host") == 1)
  }

  @Test func `who leaves the line costs nobody a turn`() {
    let line = Line(limit: 1)
    _ = line.enter("host", id: 0, for: "blocker")
    _ = line.enter("host", id: 1, for: "a")
    _ = line.enter("host", id: 2, for: "b")
    line.state.cancel(1, at: "host")
    #expect(line.leave("host") == 2)
    #expect(line.leave("host") == nil)
    #expect(line.state.isEmpty)
  }
}
