/// The eviction policy of a bounded cache.
///
/// A new value enters a small queue. If it is used at least twice before it has passed through, it moves
/// to the main queue, where it gets another round for each use; otherwise it is evicted, and only its hash
/// is remembered for a while. A key that returns during that time enters the main queue at once. A hit
/// increments a counter, up to three.
///
/// The small queue gets more room when keys that were evicted from it return, and less when keys that were
/// evicted from the main queue do.
///
/// The queues are those of S3-FIFO: Juncheng Yang, Yazhuo Zhang, Ziyue Qiu, Yao Yue, K. V. Rashmi,
/// "FIFO Queues are All You Need for Cache Eviction", SOSP 2023. That the room of the small queue follows
/// the returning keys is the idea of ARC: Nimrod Megiddo, Dharmendra S. Modha, "ARC: A Self-Tuning, Low
/// Overhead Replacement Cache", FAST 2003.
///
/// The policy refers to entries by their indices in a table and follows the table when it moves them.
///
/// Invariants:
///
/// - There are as many nodes as the table has entries, with the same indices.
/// - A node is in a queue exactly while its entry has a value that counts. The newcomer is the exception: it
///   enters a queue after others were evicted for it, so that it is never evicted for itself.
@usableFromInline
struct S3FIFO: Sendable {
  /// The queue that an entry is in.
  @usableFromInline
  enum Queue: UInt8, Sendable {
    case none, small, main
  }

  @usableFromInline
  struct Node: Sendable {
    /// The neighbor that entered earlier, or -1.
    var older: Int32 = -1
    /// The neighbor that entered later, or -1.
    var newer: Int32 = -1
    @usableFromInline var cost = 0
    var queue = Queue.none
    @usableFromInline var uses: UInt8 = 0

    init() {}
  }

  /// The two ends of a queue, and the total cost of its entries.
  private struct Ends: Sendable {
    var oldest: Int32 = -1
    var newest: Int32 = -1
    var cost = 0
  }

  /// A value to evict.
  @usableFromInline
  struct Victim: Hashable, Sendable {
    /// The index of its entry.
    @usableFromInline let index: Int
    /// The queue that it was in.
    let queue: Queue
  }

  /// The largest total cost of all values.
  @usableFromInline let limit: Int
  @usableFromInline private(set) var nodes: ContiguousArray<Node> = []
  private var small = Ends()
  private var main = Ends()
  /// The index of the value that room is made for, and the queue that it will enter.
  private var newcomer: (place: Int, queue: Queue)?
  /// The total cost of the small queue above which its values are evicted first.
  private(set) var smallLimit: Int
  private var smallGhosts = GhostList()
  private var mainGhosts = GhostList()
  /// The number of entries in the queues.
  private(set) var count = 0

  /// - Parameter limit: The largest total cost of all values; not negative.
  @usableFromInline
  init(limit: Int) {
    self.limit = limit
    smallLimit = max(1, limit / 10)
  }

  /// The total cost of all values.
  var cost: Int { small.cost + main.cost + (newcomer.map { nodes[$0.place].cost } ?? 0) }

  /// The number of evicted keys that are remembered.
  var ghostCount: Int { smallGhosts.count + mainGhosts.count }

  // MARK: - Following the table

  /// Adds the node of a new last entry, without a value.
  @usableFromInline
  mutating func append() {
    nodes.append(Node())
  }

  /// Removes the node of an entry; the last one takes its index.
  @usableFromInline
  mutating func remove(at index: Int) {
    discard(index)
    let last = nodes.count - 1
    if index != last {
      if newcomer?.place == last { newcomer?.place = index }
      let moved = nodes[last]
      nodes[index] = moved
      let place = Int32(truncatingIfNeeded: index)
      if moved.queue != .none {
        withEnds(of: moved.queue) { nodes, ends in
          if moved.older >= 0 { nodes[Int(moved.older)].newer = place } else { ends.oldest = place }
          if moved.newer >= 0 { nodes[Int(moved.newer)].older = place } else { ends.newest = place }
        }
      }
    }
    nodes.removeLast()
  }

  /// Removes all nodes and remembered keys; the limit of the small queue stays.
  @usableFromInline
  mutating func removeAll() {
    nodes = []
    small = Ends()
    main = Ends()
    newcomer = nil
    count = 0
    smallGhosts = GhostList()
    mainGhosts = GhostList()
  }

  // MARK: - Using

  /// Counts a use of the value of an entry.
  @inlinable
  mutating func use(_ index: Int) {
    if nodes[index].uses < 3 { nodes[index].uses &+= 1 }
  }

  /// Records a new value of an entry.
  ///
  /// The caller then calls ``nextVictim(hash:)`` until there is none.
  ///
  /// - Parameters:
  ///   - index: The index of the entry.
  ///   - hash: The hash of its key.
  ///   - cost: The cost of the value; not negative and not more than the limit.
  @usableFromInline
  mutating func keep(_ index: Int, hash: UInt64, cost: Int) {
    let queue = nodes[index].queue
    guard queue == .none else {
      let change = cost - nodes[index].cost
      nodes[index].cost = cost
      withEnds(of: queue) { _, ends in ends.cost += change }
      return use(index)
    }
    nodes[index].cost = cost
    nodes[index].uses = 0
    count += 1
    var destination = Queue.main
    if smallGhosts.remove(hash) {
      let factor = max(1, mainGhosts.count / max(1, smallGhosts.count))
      adapt(by: min(factor, 16))
    } else if mainGhosts.remove(hash) {
      let factor = max(1, smallGhosts.count / max(1, mainGhosts.count))
      adapt(by: -min(factor, 16))
    } else {
      destination = .small
    }
    newcomer = (index, destination)
  }

  /// Returns the cost of the value of an entry.
  @usableFromInline
  func cost(at index: Int) -> Int { nodes[index].cost }

  /// Records the cost of a new value of an entry that does not count towards the limit at present.
  @usableFromInline
  mutating func setCost(_ cost: Int, at index: Int) {
    nodes[index].cost = cost
  }

  /// Removes an entry from its queue, because it has lost its value for another reason than the limit.
  @usableFromInline
  mutating func discard(_ index: Int) {
    let queue = nodes[index].queue
    guard queue != .none else { return }
    unlink(index)
    nodes[index].queue = .none
    count -= 1
  }

  /// Moves the limit of the small queue by a number of values of average cost.
  private mutating func adapt(by values: Int) {
    let average = max(1, cost / max(1, count))
    let (step, overflow) = average.multipliedReportingOverflow(by: values)
    guard !overflow else { return }
    let (sum, overflows) = smallLimit.addingReportingOverflow(step)
    guard !overflows else { return }
    let lowest = max(1, limit / 100)
    smallLimit = min(max(sum, lowest), max(lowest, limit / 2))
  }

  // MARK: - Making room

  /// Takes the next value to evict out of its queue, if the total cost exceeds the limit.
  ///
  /// - Parameter hash: A closure that returns the hash of the key at an index.
  /// - Returns: The value, which is no longer in a queue.
  @usableFromInline
  mutating func nextVictim(hash: (Int) -> UInt64) -> Victim? {
    guard cost > limit else {
      if let newcomer { append(newcomer.place, to: newcomer.queue) }
      newcomer = nil
      return nil
    }
    var arriving = 0
    if let newcomer, newcomer.queue == .small { arriving = nodes[newcomer.place].cost }
    while true {
      if small.oldest >= 0, small.cost + arriving > smallLimit || main.oldest < 0 {
        let index = Int(small.oldest)
        unlink(index)
        guard nodes[index].uses >= 2 else {
          smallGhosts.append(hash(index))
          takeOut(index)
          return Victim(index: index, queue: .small)
        }
        nodes[index].uses = 0
        append(index, to: .main)
      } else {
        guard main.oldest >= 0 else { return nil }
        let index = Int(main.oldest)
        unlink(index)
        guard nodes[index].uses > 0 else {
          mainGhosts.append(hash(index))
          takeOut(index)
          return Victim(index: index, queue: .main)
        }
        nodes[index].uses -= 1
        append(index, to: .main)
      }
    }
  }

  private mutating func takeOut(_ index: Int) {
    nodes[index].queue = .none
    count -= 1
    // Both lists together remember at most as many keys as there are values; the longer one is shortened.
    while smallGhosts.count + mainGhosts.count > max(1, count) {
      _ =
        smallGhosts.count >= mainGhosts.count
        ? smallGhosts.removeOldest() : mainGhosts.removeOldest()
    }
  }

  // MARK: - Queues

  private mutating func withEnds(
    of queue: Queue,
    _ body: (inout ContiguousArray<Node>, inout Ends) -> Void
  ) {
    if queue == .small { body(&nodes, &small) } else { body(&nodes, &main) }
  }

  private mutating func append(_ index: Int, to queue: Queue) {
    let place = Int32(truncatingIfNeeded: index)
    withEnds(of: queue) { nodes, ends in
      nodes[index].queue = queue
      nodes[index].older = ends.newest
      nodes[index].newer = -1
      if ends.newest >= 0 { nodes[Int(ends.newest)].newer = place } else { ends.oldest = place }
      ends.newest = place
      ends.cost += nodes[index].cost
    }
  }

  private mutating func unlink(_ index: Int) {
    let node = nodes[index]
    guard node.queue != .none else { return }
    withEnds(of: node.queue) { nodes, ends in
      if node.older >= 0 {
        nodes[Int(node.older)].newer = node.newer
      } else {
        ends.oldest = node.newer
      }
      if node.newer >= 0 {
        nodes[Int(node.newer)].older = node.older
      } else {
        ends.newest = node.older
      }
      ends.cost -= node.cost
    }
  }
}
