/// Tasks that wait their turn: first come, first served, and free to leave.
///
/// Leaving takes constant time; serving takes constant time on average.
struct WaitingLine<Waiter: Sendable>: Sendable {
  private var waiters: [Int: Waiter] = [:]
  private var lastPlace = 0
  /// No waiter has a place before this one.
  private var front = 1

  var count: Int { waiters.count }

  mutating func makePlace() -> Int {
    lastPlace += 1
    return lastPlace
  }

  /// Puts a waiter in its place, which may be before those of waiters who have been served already:
  /// it took its place before them, and enters after.
  mutating func enter(_ waiter: Waiter, at place: Int) {
    waiters[place] = waiter
    front = min(front, place)
  }

  mutating func leave(_ place: Int) -> Waiter? {
    waiters.removeValue(forKey: place)
  }

  /// Removes and returns the first so many, or all if there are not as many.
  mutating func removeFirst(_ limit: Int) -> [Waiter] {
    var first: [Waiter] = []
    while first.count < limit, !waiters.isEmpty {
      if let waiter = waiters.removeValue(forKey: front) { first.append(waiter) }
      front += 1
    }
    return first
  }
}
