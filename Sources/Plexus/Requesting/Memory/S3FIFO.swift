/// Decides which value makes room for another one when memory is bounded.
///
/// A new value enters a small queue. If it is asked for again before it has passed through, it moves
/// to the main queue, where it gets another round each time it is used; else it leaves, and only
/// its hash is remembered for a while. A key that returns so soon enters the main queue at once. A hit
/// does nothing but count, up to three.
///
/// The small queue is given more room when keys that have left it return, and less when those that have
/// left the main queue do.
///
/// The queues are those of S3-FIFO: Juncheng Yang, Yazhuo Zhang, Ziyue Qiu, Yao Yue, K. V. Rashmi,
/// "FIFO Queues are All You Need for Cache Eviction", SOSP 2023. That the room of the small queue follows
/// the returning keys is the idea of ARC: Nimrod Megiddo, Dharmendra S. Modha, "ARC: A Self-Tuning, Low
/// Overhead Replacement Cache", FAST 2003.
///
/// The policy knows entries by their places in a table and follows it when it moves them.
///
/// Invariants:
///
/// - There are as many nodes as the table has entries, in the same places.
/// - A node is in a queue exactly while its entry has a value that counts, but for the newcomer: it enters
///   when others have made room for it, and need not do so itself.
@usableFromInline
struct S3FIFO: Sendable {
  /// The queue that an entry is in.
  @usableFromInline
  enum Queue: UInt8, Sendable {
    case none, small, main
  }

  @usableFromInline
  struct Node: Sendable {
    /// The neighbour that entered earlier, or -1.
    var older: Int32 = -1
    /// The neighbour that entered later, or -1.
    var newer: Int32 = -1
    var cost = 0
    var queue = Queue.none
    @usableFromInline var uses: UInt8 = 0

    init() {}
  }

  /// The two ends of a queue, and what its entries cost together.
  private struct Ends: Sendable {
    var oldest: Int32 = -1
    var newest: Int32 = -1
    var cost = 0
  }

  /// A value that has to go.
  @usableFromInline
  struct Victim: Hashable, Sendable {
    /// The place of its entry.
    @usableFromInline let index: Int
    /// The queue that it was in.
    let queue: Queue
  }

  /// What all values may cost together.
  @usableFromInline let limit: Int
  @usableFromInline private(set) var nodes: ContiguousArray<Node> = []
  private var small = Ends()
  private var main = Ends()
  /// The place of the value that room is made for, and the queue that it will be in.
  private var newcomer: (place: Int, queue: Queue)?
  /// What the values of the small queue may cost together, before it is the first to give way.
  private(set) var smallLimit: Int
  private var smallGhosts = GhostList()
  private var mainGhosts = GhostList()
  /// The number of entries in the queues.
  private(set) var count = 0

  /// - Parameter limit: What all values may cost together; not negative.
  @usableFromInline
  init(limit: Int) {
    self.limit = limit
    smallLimit = max(1, limit / 10)
  }

  /// What all values cost together.
  var cost: Int { small.cost + main.cost + (newcomer.map { nodes[$0.place].cost } ?? 0) }

  /// The number of keys that are remembered though their values have gone.
  var ghostCount: Int { smallGhosts.count + mainGhosts.count }

  // MARK: - Following the table

  /// The table has a new last entry, without a value.
  @usableFromInline
  mutating func append() {
    nodes.append(Node())
  }

  /// The table has removed an entry and put its last one in that place.
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

  /// The table is empty; nothing is remembered of it but how much room the small queue has.
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

  /// The value of an entry is used.
  @inlinable
  mutating func use(_ index: Int) {
    if nodes[index].uses < 3 { nodes[index].uses &+= 1 }
  }

  /// An entry has got a value, for the first time or another one.
  ///
  /// The caller goes on with ``nextVictim(hash:)`` until there is none.
  ///
  /// - Parameters:
  ///   - index: Its place.
  ///   - hash: The hash of its key.
  ///   - cost: What the value costs; not negative and not more than the limit.
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

  /// An entry has lost its value for another reason than room.
  @usableFromInline
  mutating func discard(_ index: Int) {
    let queue = nodes[index].queue
    guard queue != .none else { return }
    unlink(index)
    nodes[index].queue = .none
    count -= 1
  }

  /// Moves the border between the queues by as many values of average cost.
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

  /// Takes the value out that has to go, if all together cost too much.
  ///
  /// - Parameter hash: Returns the hash of the key at a place.
  /// - Returns: The value, which is in no queue any more.
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
    // Both lists together remember as many keys as there are values; the longer one gives way.
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
