import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A wait graph` {
  private var graph = WaitGraph.State<String>()

  private mutating func wait(
    _ node: String,
    for target: String,
    over: Set<String> = [],
    predecessors: [String: String] = [:]
  ) -> [String]? {
    graph.wait(node, for: target, isSettled: over.contains) { predecessors[$0] }
  }

  @Test mutating func `a wait graph finds a node that would wait for itself`() {
    #expect(wait("a", for: "a") == ["a"])
    #expect(graph.isEmpty, "What is refused is not recorded")
  }

  @Test mutating func `a wait graph finds a cycle and returns its path`() {
    #expect(wait("a", for: "b") == nil)
    #expect(wait("b", for: "c") == nil)
    #expect(wait("c", for: "a") == ["a", "b", "c"])
    #expect(wait("c", for: "d") == nil)
  }

  @Test mutating func `a wait graph finds the cycle among several waits of one node`() {
    for target in ["x", "y", "b", "z"] { #expect(wait("a", for: target) == nil) }
    #expect(wait("b", for: "a") == ["a", "b"])
    #expect(wait("z", for: "y") == nil, "Two ways to one node are no circle")
  }

  @Test mutating func `a wait graph removes one wait at a time`() {
    _ = wait("a", for: "b")
    _ = wait("a", for: "b")
    graph.stopWaiting("a", for: "b")
    #expect(wait("b", for: "a") == ["a", "b"])
    graph.stopWaiting("a", for: "b")
    #expect(graph.isEmpty)
    #expect(wait("b", for: "a") == nil)
    graph.stopWaiting("x", for: "y")
    graph.stopWaiting("b", for: "y")
    #expect(wait("a", for: "b") == ["b", "a"])
  }

  @Test
  mutating func `a wait graph follows the predecessor of a node, and does not return it twice`() {
    let predecessors = ["queued": "running"]
    #expect(wait("running", for: "queued", predecessors: predecessors) == ["running"])
    _ = wait("running", for: "b")
    #expect(wait("b", for: "queued", predecessors: predecessors) == ["running", "b"])
  }

  @Test mutating func `a wait graph finds a node that waits for another one`() {
    _ = wait("a", for: "b")
    _ = wait("b", for: "c")
    #expect(graph.waiter(for: "c") { $0 == "a" } == "a")
    _ = wait("x", for: "c")
    #expect(graph.waiter(for: "c") { $0 == "x" } == "x", "Also one that is recorded later")
    #expect(graph.waiter(for: "b") { $0 == "x" } == nil)
    #expect(graph.waiter(for: "c") { $0 == "c" } == nil)
    #expect(graph.waiter(for: "c", isSettled: { $0 == "b" }, where: { $0 == "a" }) == nil)
    #expect(graph.waiter(for: "c", isSettled: { $0 == "a" }, where: { $0 == "a" }) == nil)
    graph.stopWaiting("a", for: "b")
    #expect(graph.waiter(for: "c") { $0 == "a" } == nil)
    let others = ["d": ["c"], "e": ["d"]]
    #expect(
      graph.waiter(for: "e", others: { node, _ in others[node] ?? [] }, where: { $0 == "x" }) == "x"
    )
    #expect(
      graph.nodes(reachableFrom: "b", others: { ["c": ["d"], "d": ["a"]][$0] ?? [] }).sorted()
        == ["a", "b", "c", "d"]
    )
    #expect(graph.nodes(reachableFrom: "x").sorted() == ["c", "x"])
  }

  @Test func `a wait graph looks at no other nodes than the ones that lead to the given one`() {
    var graph = WaitGraph.State<Int>()
    for node in 1...1_000 { _ = graph.wait(node, for: 0, predecessor: { _ in nil }) }
    _ = graph.wait(2_000, for: 2_001, predecessor: { _ in nil })
    var visited: [Int] = []
    let found = graph.waiter(for: 2_001) { node in
      visited.append(node)
      return false
    }
    #expect(found == nil)
    #expect(visited == [2_000])
    #expect(graph.waiter(for: 3_000) { _ in true } == nil)
  }

  @Test func `a wait graph finds a waiter exactly if there is one, after any history`() {
    var random = SeededRandom(seed: 12)
    for round in 0..<100 {
      var graph = WaitGraph.State<Int>()
      var edges: [(Int, Int)] = []
      for step in 0..<60 {
        if Int.random(in: 0..<4, using: &random) == 0, !edges.isEmpty {
          let (node, target) = edges.remove(at: .random(in: edges.indices, using: &random))
          graph.stopWaiting(node, for: target)
        } else {
          let node = Int.random(in: 0..<8, using: &random)
          let target = Int.random(in: 0..<8, using: &random)
          if graph.wait(node, for: target, predecessor: { _ in nil }) == nil {
            edges.append((node, target))
          }
        }
        // The first search comes after some waits.
        guard step >= round % 20 else { continue }
        let node = Int.random(in: 0..<8, using: &random)
        let target = Int.random(in: 0..<8, using: &random)
        let isFound = graph.waiter(for: target) { $0 == node } != nil
        #expect(isFound == (node != target && reaches(target, from: node, by: edges)))
      }
    }
  }

  @Test func `a wait graph follows implicit waits of a node`() {
    var graph = WaitGraph.State<String>()
    let others = ["post": ["idle", "handler"]]
    func wait(_ node: String, for target: String) -> [String]? {
      graph.wait(
        node,
        for: target,
        isSettled: { _ in false },
        predecessor: { _ in nil },
        others: { others[$0] ?? [] }
      )
    }
    #expect(wait("fetch", for: "post") == nil)
    #expect(wait("handler", for: "fetch") == ["fetch", "post", "handler"])
    #expect(wait("handler", for: "post") == ["post", "handler"])
    #expect(wait("idle", for: "handler") == nil)
  }

  @Test mutating func `a wait graph ignores a settled node whose waits are still recorded`() {
    _ = wait("a", for: "b")
    _ = wait("b", for: "c")
    #expect(wait("c", for: "a", over: ["b"]) == nil)
  }

  @Test func `a wait graph rejects exactly the waits that close a cycle, after any history`() {
    var random = SeededRandom(seed: 11)
    for _ in 0..<200 {
      var graph = WaitGraph.State<Int>()
      var edges: [(Int, Int)] = []
      for _ in 0..<60 {
        if Int.random(in: 0..<4, using: &random) == 0, !edges.isEmpty {
          let (node, target) = edges.remove(at: .random(in: edges.indices, using: &random))
          graph.stopWaiting(node, for: target)
          continue
        }
        let node = Int.random(in: 0..<8, using: &random)
        let target = Int.random(in: 0..<8, using: &random)
        let way = graph.wait(
          node,
          for: target,
          isSettled: { _ in false },
          predecessor: { _ in nil }
        )
        #expect((way != nil) == reaches(node, from: target, by: edges))
        if let way {
          #expect(way.first == target && way.last == node)
          for (from, to) in zip(way, way.dropFirst()) {
            #expect(edges.contains { $0 == (from, to) })
          }
        } else {
          edges.append((node, target))
        }
      }
    }
  }

  private func reaches(_ goal: Int, from start: Int, by edges: [(Int, Int)]) -> Bool {
    var reached: Set = [start]
    for _ in 0..<8 {
      for (from, to) in edges where reached.contains(from) { reached.insert(to) }
    }
    return reached.contains(goal)
  }

  @Test mutating func `a wait graph finds no cycle with a settled node`() {
    _ = wait("a", for: "b")
    #expect(wait("b", for: "a", over: ["b"]) == nil)
  }
}
