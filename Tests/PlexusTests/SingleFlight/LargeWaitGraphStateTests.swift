import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A large wait graph` {
  private var graph = WaitGraph.State<Int>()

  @Test mutating func `a large wait graph finds no path through a settled node`() {
    #expect(wait(1, for: 2) == nil)
    #expect(wait(2, for: 3) == nil)
    let way = graph.wait(3, for: 1, isSettled: { $0 == 2 }, predecessor: { _ in nil })
    #expect(way == nil)
  }

  @Test mutating func `a large wait graph is fast for a node with many waits`() {
    for number in 1...100_000 {
      _ = wait(0, for: number)
    }
    for number in 1...100_000 {
      graph.stopWaiting(0, for: number)
    }
    #expect(graph.isEmpty)
  }

  private mutating func wait(_ node: Int, for target: Int) -> [Int]? {
    graph.wait(node, for: target, predecessor: { _ in nil })
  }
}
