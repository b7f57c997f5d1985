internal import PlexusSupport

/// Ids in the order of their ranks: the highest one, the lowest one and any given one can be removed.
///
/// A heap for each end, beside a table of the ranks. An id that is removed or moved leaves its former rank in the heaps until
/// that reaches the top, or until about half of a heap consists of such ranks. Every operation takes amortized logarithmic
/// time.
struct RankedQueue<ID: Hashable & Sendable, Rank: Comparable & Sendable>: Sendable {
  private struct Highest: Comparable, Sendable {
    let rank: Rank
    let id: ID

    static func < (left: Self, right: Self) -> Bool { left.rank > right.rank }
  }

  private struct Lowest: Comparable, Sendable {
    let rank: Rank
    let id: ID

    static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
  }

  private var ranks: [ID: Rank] = [:]
  private var highest = Heap<Highest>()
  private var lowest: Heap<Lowest>?

  /// - Parameter findsLowest: Whether the lowest id can be found.
  init(findsLowest: Bool) {
    lowest = findsLowest ? Heap() : nil
  }

  var count: Int { ranks.count }

  /// Returns the rank of an id, if it is in the queue.
  subscript(id: ID) -> Rank? { ranks[id] }

  /// Inserts an id, or moves it to another rank.
  mutating func insert(_ id: ID, _ rank: Rank) {
    ranks[id] = rank
    highest.insert(Highest(rank: rank, id: id))
    lowest?.insert(Lowest(rank: rank, id: id))
    removeFormerRanks()
  }

  /// Removes an id.
  ///
  /// - Returns: Its rank, if it was in the queue.
  mutating func remove(_ id: ID) -> Rank? {
    guard let rank = ranks.removeValue(forKey: id) else { return nil }
    removeFormerRanks()
    return rank
  }

  /// Removes the id with the highest rank.
  mutating func popHighest() -> (id: ID, rank: Rank)? {
    while let first = highest.popFirst() {
      guard ranks[first.id] == first.rank else { continue }
      ranks[first.id] = nil
      return (first.id, first.rank)
    }
    return nil
  }

  /// Returns the id with the lowest rank.
  mutating func findLowest() -> (id: ID, rank: Rank)? {
    while let first = lowest?.first {
      if ranks[first.id] == first.rank { return (first.id, first.rank) }
      _ = lowest?.popFirst()
    }
    return nil
  }

  private mutating func removeFormerRanks() {
    let limit = 2 * ranks.count + 16
    if highest.count > limit { highest.removeAll { ranks[$0.id] != $0.rank } }
    if let count = lowest?.count, count > limit {
      lowest?.removeAll { ranks[$0.id] != $0.rank }
    }
  }
}
