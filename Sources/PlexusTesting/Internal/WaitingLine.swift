/// Tasks that wait their turn: first come, first served, and free to leave.
///
/// Leaving takes constant time; serving takes constant time on average.
struct WaitingLine: Sendable {
  private var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
  private var lastPlace = 0
  /// No waiter has a place before this one.
  private var front = 1

  var count: Int { waiters.count }

  mutating func makePlace() -> Int {
    lastPlace += 1
    return lastPlace
  }

  mutating func enter(_ continuation: CheckedContinuation<Void, any Error>, at place: Int) {
    waiters[place] = continuation
    front = min(front, place)
  }

  mutating func leave(_ place: Int) -> CheckedContinuation<Void, any Error>? {
    waiters.removeValue(forKey: place)
  }

  /// Removes and returns the first so many, or all if there are not as many.
  mutating func removeFirst(_ limit: Int) -> [CheckedContinuation<Void, any Error>] {
    var first: [CheckedContinuation<Void, any Error>] = []
    while first.count < limit, !waiters.isEmpty {
      if let waiter = waiters.removeValue(forKey: front) { first.append(waiter) }
      front += 1
    }
    return first
  }
}
