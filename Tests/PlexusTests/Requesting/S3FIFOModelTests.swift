import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The choice of evicted values` {
  @Test(.guarantee(.frequentValuesOutliveOthers), arguments: [0, 1, 2, 3, 10, 100], [false, true])
  func `the choice of evicted values is that of a naive model with arrays, after any history`(
    limit: Int,
    costsVary: Bool
  ) {
    for seed in UInt64(0)..<3 {
      var run = Run(limit: limit, costsVary: costsVary, seed: seed << 32 | UInt64(limit))
      for step in 0..<2_000 {
        run.step()
        guard run.isAsPredicted else {
          Issue.record("seed \(seed), step \(step): \(run.history.suffix(12))")
          return
        }
      }
    }
  }

  @Test func `eviction keeps frequently used values when very many are requested only once`() {
    var run = Table(limit: 100)
    for key in 0..<50 { run.keep(key) }
    for key in 0..<50 { for _ in 0..<3 { run.use(key) } }
    for key in 1_000..<3_000 {
      run.keep(key)
      if key % 100 == 0 { for key in 0..<50 { run.use(key) } }
    }
    #expect((0..<50).allSatisfy { run.places[$0] != nil })
  }

  @Test(arguments: [1, 2, 3, 10])
  func `eviction does not remove at once what room was made for`(limit: Int) {
    var random = SeededRandom(seed: UInt64(limit))
    var run = Table(limit: limit)
    for _ in 0..<2_000 {
      let key = Int.random(in: 0..<limit * 2, using: &random)
      run.keep(key)
      if run.places[key] == nil { Issue.record("\(key) has gone at once") }
      for key in run.keys where Bool.random(using: &random) { run.use(key) }
    }
  }

  @Test func `eviction gives new values more room when recently evicted keys return`() {
    var run = Table(limit: 1_000)
    #expect(run.policy.smallLimit == 100)
    for key in 0..<1_050 { run.keep(key) }
    #expect(run.policy.ghostCount == 50)
    for key in 0..<10 { run.keep(key) }
    #expect(run.policy.smallLimit > 100)
    for round in 0..<20 { for key in 0..<2_000 { run.keep(key + round % 2 * 1_000) } }
    #expect(run.policy.smallLimit <= 500, "Never more than half")
  }

  @Test func `eviction gives new values less room when frequently used keys return`() {
    var run = Table(limit: 1_000)
    for _ in 0..<10 {
      // One and a half times as many frequently used keys as there is room for.
      for key in 0..<1_500 {
        run.keep(key)
        run.use(key)
        run.use(key)
      }
    }
    #expect(run.policy.smallLimit < 100)
    #expect(run.policy.smallLimit >= 10, "Never less than a hundredth")
  }

  @Test func `eviction remembers no more keys than there are values`() {
    var run = Table(limit: 100)
    for key in 0..<5_000 {
      run.keep(key)
      if run.policy.ghostCount > run.policy.count { Issue.record("\(run.policy.ghostCount)") }
    }
    #expect(run.policy.ghostCount == 100)
    run.policy.removeAll()
    #expect(run.policy.ghostCount == 0, "Nothing is left behind when everything is removed")
  }
}

@Suite(.fewAtOnce) struct `The keys that have left` {
  @Test(arguments: [1, 3, 50])
  func `the keys that have left are remembered as a list would, in little memory`(keys: UInt64) {
    var random = SeededRandom(seed: keys)
    var ghosts = S3FIFO.GhostList()
    var model: [UInt64] = []
    for _ in 0..<10_000 {
      let hash = UInt64.random(in: 0..<keys, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0...2:
        ghosts.append(hash)
        model.removeAll { $0 == hash }
        model.append(hash)
      case 3:
        let wasThere = model.contains(hash)
        model.removeAll { $0 == hash }
        let isFound = ghosts.remove(hash)
        #expect(isFound == wasThere)
      default:
        let isFound = ghosts.removeOldest()
        #expect(isFound == !model.isEmpty)
        if !model.isEmpty { model.removeFirst() }
      }
      #expect(ghosts.count == model.count)
      #expect(ghosts.order.count <= 2 * ghosts.count + 65)
    }
    for hash in model {
      let isFound = ghosts.remove(hash)
      #expect(isFound)
    }
    let isFound = ghosts.removeOldest()
    #expect(!isFound)
  }
}

extension `The keys that have left` {
  @Test func `the keys that have left need little memory also when all of them return`() {
    var ghosts = S3FIFO.GhostList()
    for hash in UInt64(0)..<5_000 {
      ghosts.append(hash)
      let isFound = ghosts.remove(hash)
      #expect(isFound)
    }
    #expect(ghosts.order.count <= 65)
  }
}

/// A table of keys that follows the policy like the tables of a map: a removed key is replaced by the last one.
private struct Table {
  private(set) var keys: [Int] = []
  private(set) var places: [Int: Int] = [:]
  var policy: S3FIFO

  init(limit: Int) {
    policy = S3FIFO(limit: limit)
  }

  mutating func use(_ key: Int) {
    if let index = places[key] { policy.use(index) }
  }

  /// Stores a value, and removes the evicted keys.
  mutating func keep(_ key: Int) {
    policy.keep(place(of: key), hash: UInt64(key), cost: 1)
    while let victim = policy.nextVictim(hash: { [keys] in UInt64(keys[$0]) }) {
      remove(at: victim.index)
    }
  }

  /// The place of a key, which is added if necessary.
  mutating func place(of key: Int) -> Int {
    if let index = places[key] { return index }
    policy.append()
    places[key] = keys.count
    keys.append(key)
    return keys.count - 1
  }

  mutating func remove(at index: Int) {
    policy.remove(at: index)
    places[keys[keys.count - 1]] = index
    places[keys[index]] = nil
    keys[index] = keys[keys.count - 1]
    keys.removeLast()
  }

  mutating func removeAll() {
    policy.removeAll()
    keys = []
    places = [:]
  }
}

/// A random history of the policy and of its model.
private struct Run {
  private(set) var history: [String] = []
  private var random: SeededRandom
  private var table: Table
  private var model: NaivePolicy
  private let costsVary: Bool
  private(set) var isAsPredicted = true

  init(limit: Int, costsVary: Bool, seed: UInt64) {
    random = SeededRandom(seed: seed)
    table = Table(limit: limit)
    model = NaivePolicy(limit: limit)
    self.costsVary = costsVary
  }

  // Few hashes, so that some keys share one.
  private static func hash(_ key: Int) -> UInt64 { UInt64(key % 97) }

  mutating func step() {
    let universe = max(5, min(model.limit * 3, 200))
    let key = Int.random(in: 0..<universe, using: &random)
    let index = table.places[key]
    switch Int.random(in: 0..<40, using: &random) {
    case 0..<16: keep(key)
    case 16..<32:
      guard let index, model.holds(key) else { return keep(key) }
      history.append("use \(key)")
      table.policy.use(index)
      model.use(key)
    case 32..<35:
      guard let index else { return }
      history.append("remove \(key)")
      table.remove(at: index)
      model.discard(key)
    case 35..<38:
      guard let index else { return }
      history.append("discard \(key)")
      table.policy.discard(index)
      model.discard(key)
    case 38 where key == 0:
      history.append("remove all")
      table.removeAll()
      model.removeAll()
    default: break
    }
    check()
  }

  private mutating func keep(_ key: Int) {
    let cost = costsVary ? Int.random(in: 0...max(1, model.limit / 3), using: &random) : 1
    guard cost <= model.limit else { return }
    history.append("keep \(key) for \(cost)")
    table.policy.keep(table.place(of: key), hash: Self.hash(key), cost: cost)
    model.keep(key, hash: Self.hash(key), cost: cost)
    while true {
      let victim = table.policy.nextVictim { [table] in Self.hash(table.keys[$0]) }
      let expected = model.nextVictim(hash: Self.hash)
      guard victim.map({ table.keys[$0.index] }) == expected?.key,
        victim?.queue == expected?.queue
      else {
        isAsPredicted = false
        return
      }
      guard let victim else { break }
      history.append("\(table.keys[victim.index]) goes")
      // An entry that is being fetched stays, without a value.
      if Bool.random(using: &random) { table.remove(at: victim.index) }
    }
    if table.policy.cost > model.limit { isAsPredicted = false }
  }

  private mutating func check() {
    let policy = table.policy
    if policy.cost != model.cost || policy.count != model.count
      || policy.smallLimit != model.smallLimit || policy.ghostCount != model.ghosts.count
      || policy.nodes.count != table.keys.count
    {
      isAsPredicted = false
    }
    for (index, key) in table.keys.enumerated() where policy.nodes[index].queue != model.queue(key)
    {
      isAsPredicted = false
    }
  }
}

/// The same choice, with arrays of keys, the oldest first.
private struct NaivePolicy {
  struct Ghost {
    let hash: UInt64
    let queue: S3FIFO.Queue
  }

  let limit: Int
  var small: [Int] = []
  var main: [Int] = []
  var costs: [Int: Int] = [:]
  var uses: [Int: Int] = [:]
  var ghosts: [Ghost] = []
  var newcomer: (key: Int, queue: S3FIFO.Queue)?
  var smallLimit: Int

  init(limit: Int) {
    self.limit = limit
    smallLimit = max(1, limit / 10)
  }

  var count: Int { small.count + main.count + (newcomer == nil ? 0 : 1) }
  var cost: Int { sum(small) + sum(main) + (newcomer.map { costs[$0.key, default: 0] } ?? 0) }

  func sum(_ keys: [Int]) -> Int { keys.reduce(0) { $0 + costs[$1, default: 0] } }

  func holds(_ key: Int) -> Bool { queue(key) != .none }

  func queue(_ key: Int) -> S3FIFO.Queue {
    if small.contains(key) { return .small }
    return main.contains(key) ? .main : .none
  }

  mutating func use(_ key: Int) { uses[key] = min(3, uses[key, default: 0] + 1) }

  mutating func keep(_ key: Int, hash: UInt64, cost: Int) {
    costs[key] = cost
    guard !holds(key) else { return use(key) }
    uses[key] = 0
    func number(of queue: S3FIFO.Queue) -> Int { ghosts.count { $0.queue == queue } }
    if let index = ghosts.firstIndex(where: { $0.hash == hash && $0.queue == .small }) {
      ghosts.remove(at: index)
      let step = number(of: .main) / max(1, number(of: .small))
      adapt(by: min(16, max(1, step)))
      newcomer = (key, .main)
    } else if let index = ghosts.firstIndex(where: { $0.hash == hash && $0.queue == .main }) {
      ghosts.remove(at: index)
      let step = number(of: .small) / max(1, number(of: .main))
      adapt(by: -min(16, max(1, step)))
      newcomer = (key, .main)
    } else {
      newcomer = (key, .small)
    }
  }

  /// The new entry is counted, but its cost is not yet.
  mutating func adapt(by values: Int) {
    let average = max(1, cost / (count + 1))
    let lowest = max(1, limit / 100)
    smallLimit = max(lowest, min(max(lowest, limit / 2), smallLimit + average * values))
  }

  mutating func discard(_ key: Int) {
    small.removeAll { $0 == key }
    main.removeAll { $0 == key }
  }

  mutating func removeAll() {
    small = []
    main = []
    ghosts = []
  }

  mutating func nextVictim(hash: (Int) -> UInt64) -> (key: Int, queue: S3FIFO.Queue)? {
    guard cost > limit else {
      if newcomer?.queue == .small { small.append(newcomer?.key ?? 0) }
      if newcomer?.queue == .main { main.append(newcomer?.key ?? 0) }
      newcomer = nil
      return nil
    }
    let arriving = newcomer?.queue == .small ? sum([newcomer?.key ?? 0]) : 0
    while true {
      if let key = small.first, sum(small) + arriving > smallLimit || main.isEmpty {
        small.removeFirst()
        if uses[key, default: 0] < 2 { return leave(key, .small, hash(key)) }
        uses[key] = 0
        main.append(key)
      } else {
        let key = main.removeFirst()
        if uses[key, default: 0] == 0 { return leave(key, .main, hash(key)) }
        uses[key, default: 0] -= 1
        main.append(key)
      }
    }
  }

  mutating func leave(
    _ key: Int,
    _ queue: S3FIFO.Queue,
    _ hash: UInt64
  ) -> (key: Int, queue: S3FIFO.Queue) {
    ghosts.removeAll { $0.hash == hash && $0.queue == queue }
    ghosts.append(Ghost(hash: hash, queue: queue))
    while ghosts.count > max(1, count) {
      let smallOnes = ghosts.count { $0.queue == .small }
      let longer: S3FIFO.Queue = smallOnes >= ghosts.count - smallOnes ? .small : .main
      if let oldest = ghosts.firstIndex(where: { $0.queue == longer }) { ghosts.remove(at: oldest) }
    }
    return (key, queue)
  }
}
