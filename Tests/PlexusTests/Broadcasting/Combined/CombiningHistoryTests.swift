import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Random graphs of states, parts, maps and combinations, whose sources change on several threads.
@Suite(.fewAtOnce) struct `Histories of combinations` {
  /// The versions of the sources from which an element is made.
  struct Trace: Hashable, Sendable {
    /// The versions of each source that lead to this element.
    var ranges: [Int: ClosedRange<Int>] = [:]
    /// Whether it is made from two versions of one source.
    var isTorn = false

    init(_ source: Int, _ version: Int) {
      ranges = [source: version...version]
    }

    /// The element of a part that changes with every few versions only.
    func part(_ size: Int) -> Trace {
      var trace = self
      trace.ranges = ranges.mapValues { range in
        range.lowerBound / size * size...range.upperBound / size * size + size - 1
      }
      return trace
    }

    func combined(with other: Trace) -> Trace {
      var trace = self
      trace.isTorn = isTorn || other.isTorn
      for (source, range) in other.ranges {
        guard let own = trace.ranges[source] else {
          trace.ranges[source] = range
          continue
        }
        if own.overlaps(range) {
          trace.ranges[source] = own.clamped(to: range)
        } else {
          trace.isTorn = true
        }
      }
      return trace
    }
  }

  typealias Node = any StatefulBroadcaster<Trace>

  /// The sources of a graph: values, a store, and a page of it.
  struct Sources: Sendable {
    let values = (0..<3).map { _ in CurrentValue(0) }
    let store = Store<Int, Int>(0) { $0 += $1 }
    let page: PageStore<Int, Int, Int, Int>

    init() {
      page = store.page({ _ in 0 }, reducer: { $0 += $1 })
    }

    static let count = 5

    func change(_ source: Int) {
      switch source {
      case 0..<3: values[source].update { $0 += 1 }
      case 3: store.dispatch(1)
      default: page.dispatch(1)
      }
    }

    func leaf(_ source: Int) -> Node {
      switch source {
      case 0..<3: values[source].map { Trace(source, $0) }
      case 3: store.select { Trace(3, $0) }
      default: page.map { Trace(3, $0.app).combined(with: Trace(4, $0.page)) }
      }
    }

    func version(_ source: Int) -> Int {
      switch source {
      case 0..<3: values[source].value
      case 3: store.state
      default: page.state
      }
    }
  }

  private static func part(of node: some StatefulBroadcaster<Trace>, _ size: Int) -> Node {
    node.select { $0.part(size) }
  }

  private static func map(of node: some StatefulBroadcaster<Trace>) -> Node {
    node.map { $0 }
  }

  private static func pair(
    _ left: some StatefulBroadcaster<Trace>,
    _ right: some StatefulBroadcaster<Trace>
  ) -> Node {
    combine(left, right) { $0.combined(with: $1) }
  }

  private static func triple(
    _ first: some StatefulBroadcaster<Trace>,
    _ second: some StatefulBroadcaster<Trace>,
    _ third: some StatefulBroadcaster<Trace>
  ) -> Node {
    combine(first, second, third) { $0.combined(with: $1).combined(with: $2) }
  }

  /// Returns the last node of a random graph.
  private static func graph(of sources: Sources, _ random: inout SeededRandom) -> Node {
    var nodes = (0..<Sources.count).map { sources.leaf($0) }
    var last = nodes[0]
    for _ in 0..<Int.random(in: 3...12, using: &random) {
      let picked = (0..<3).compactMap { _ in nodes.randomElement(using: &random) }
      switch Int.random(in: 0..<5, using: &random) {
      case 0: last = part(of: picked[0], Int.random(in: 2...4, using: &random))
      case 1: last = map(of: picked[0])
      case 2: last = triple(picked[0], picked[1], picked[2])
      default: last = pair(picked[0], picked[1])
      }
      nodes.append(last)
    }
    let other = nodes.randomElement(using: &random) ?? last
    return pair(last, other)
  }

  /// Reads until the sources have their last versions, and checks every element.
  private static func check(
    _ subscription: Subscription<Trace>,
    from first: Trace?,
    until last: [Int: Int],
    _ seed: UInt64
  ) async {
    var former = first
    var count = 0
    for await trace in subscription {
      count += 1
      #expect(!trace.isTorn, "seed \(seed): \(trace)")
      if let former {
        for (source, range) in trace.ranges {
          guard let old = former.ranges[source] else { continue }
          #expect(old.lowerBound <= range.lowerBound, "seed \(seed): out of order")
          let isNext = range.lowerBound <= old.upperBound + 1
          // Before the first element, versions can have passed that are not for the subscriber.
          #expect(isNext || count == 1, "seed \(seed): \(trace) follows \(former)")
        }
      }
      former = trace
      if trace.ranges.allSatisfy({ $0.value.contains(last[$0.key] ?? -1) }) { break }
    }
    #expect(former != nil)
  }

  @Test(
    .guarantee(.partsAreCombinedConsistently),
    .guarantee(.combinationsPublishEveryChange),
    arguments: 0..<(Effort.isFull ? 120 : 40) as Range<UInt64>
  )
  func `every element of a random graph is consistent, in order, and none is missing`(
    seed: UInt64
  )
    async
  {
    var random = SeededRandom(seed: seed)
    let sources = Sources()
    let node = Self.graph(of: sources, &random)
    let plans = (0..<3).map { _ in
      (0..<60).map { _ in Int.random(in: 0..<Sources.count, using: &random) }
    }
    var last: [Int: Int] = [:]
    for source in plans.joined() { last[source, default: 0] += 1 }
    for source in 0..<Sources.count where last[source] == nil { last[source] = 0 }
    let versions = last
    let changes = sources.store.subscription(toChangesOf: { $0 / 3 })
    let early = node.subscription(bufferingPolicy: .unbounded)
    await withTaskGroup { group in
      for plan in plans {
        group.addTask { for source in plan { sources.change(source) } }
      }
      group.addTask { await Self.check(early, from: nil, until: versions, seed) }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<10 {
            let current = node.current
            #expect(!current.isTorn, "seed \(seed)")
            let late = node.subscription(bufferingPolicy: .unbounded)
            await Self.check(late, from: current, until: versions, seed)
          }
        }
      }
    }
    // A task can still have to process the actions that the callers have enqueued.
    await sources.store.dispatchAndWait(0)
    await sources.page.dispatchAndWait(0)
    for source in 0..<Sources.count { #expect(sources.version(source) == versions[source]) }
    #expect(node.subscriberCount == 1)
    withExtendedLifetime((early, changes)) {}
  }
}
