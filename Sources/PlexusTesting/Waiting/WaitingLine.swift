/// A first-in, first-out line of waiters that can leave at any position.
///
/// Leaving takes constant time; removing the first takes amortized constant time.
struct WaitingLine<Waiter: Sendable>: Sendable {
  private var waiters: [Int: Waiter] = [:]
  private var lastPlace = 0
  /// A lower bound of the places in use.
  private var front = 1

  var count: Int { waiters.count }

  mutating func makePlace() -> Int {
    lastPlace += 1
    return lastPlace
  }

  /// Adds a waiter at a place.
  ///
  /// The place can precede those of waiters that have been removed already, because a place is assigned
  /// before the waiter enters.
  mutating func enter(_ waiter: Waiter, at place: Int) {
    waiters[place] = waiter
    front = min(front, place)
  }

  mutating func leave(_ place: Int) -> Waiter? {
    waiters.removeValue(forKey: place)
  }

  /// Removes and returns the first waiters, up to the limit.
  mutating func removeFirst(_ limit: Int) -> [Waiter] {
    var first: [Waiter] = []
    while first.count < limit, !waiters.isEmpty {
      if let waiter = waiters.removeValue(forKey: front) { first.append(waiter) }
      front += 1
    }
    return first
  }
}
