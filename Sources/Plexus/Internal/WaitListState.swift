/// Where a caller waits in a list.
@usableFromInline
struct WaitPlace: Hashable, Sendable {
  fileprivate let index: Int
}

/// Who waits in a ``WaitList``: an array of places, of which those given back are handed out again.
///
/// Invariants:
///
/// - ``count`` is the number of places that are taken by callers that have not left.
/// - A parked caller is handed out exactly once: when it leaves or when the event comes.
/// - A caller that has left stays known until it has taken notice.
struct WaitListState<Parked: Sendable>: Sendable {
  private enum Place: Sendable {
    case free(next: Int)
    case taken
    case parked(Parked)
    case left
  }

  private var places: ContiguousArray<Place> = []
  private var firstFree = -1

  /// The number of callers that have not left.
  private(set) var count = 0

  /// Whether the event has come.
  private(set) var isFinished = false

  /// Takes a place for a caller, which is not parked yet.
  mutating func join() -> WaitPlace {
    count += 1
    guard firstFree >= 0, case .free(let next) = places[firstFree] else {
      places.append(.taken)
      return WaitPlace(index: places.count - 1)
    }
    let index = firstFree
    firstFree = next
    places[index] = .taken
    return WaitPlace(index: index)
  }

  /// Parks a caller.
  ///
  /// - Returns: Whether it is parked; if not, there is nothing to wait for.
  mutating func park(_ parked: Parked, in place: WaitPlace) -> Bool {
    guard !isFinished, case .taken = places[place.index] else { return false }
    places[place.index] = .parked(parked)
    return true
  }

  /// A caller leaves early.
  ///
  /// - Returns: Whether it left with this call, and itself if it was parked. Nothing happens after
  ///   the event, or if it has left before.
  mutating func leave(_ place: WaitPlace) -> (hasLeft: Bool, parked: Parked?) {
    guard !isFinished else { return (false, nil) }
    switch places[place.index] {
    case .taken:
      places[place.index] = .left
      count -= 1
      return (true, nil)
    case .parked(let parked):
      places[place.index] = .left
      count -= 1
      return (true, parked)
    case .free, .left:
      return (false, nil)
    }
  }

  /// A caller goes on and gives its place back.
  ///
  /// - Returns: Whether it had left.
  mutating func giveBack(_ place: WaitPlace) -> Bool {
    var hasLeft = false
    if case .left = places[place.index] { hasLeft = true }
    places[place.index] = .free(next: firstFree)
    firstFree = place.index
    return hasLeft
  }

  /// The event has come.
  ///
  /// - Returns: The parked callers.
  mutating func finish() -> ContiguousArray<Parked> {
    isFinished = true
    var waiting: ContiguousArray<Parked> = []
    waiting.reserveCapacity(count)
    for index in places.indices {
      guard case .parked(let parked) = places[index] else { continue }
      waiting.append(parked)
      places[index] = .taken
    }
    count = 0
    return waiting
  }
}
