/// The places of a limit for concurrent fetches, and the fetches that wait for one.
///
/// A fetch that another one waits for can use the place of that one. A place is free again once all that use it have left.
///
/// Invariants:
///
/// - Never more places are used than there are.
/// - While a fetch waits, no place is free.
/// - A fetch has a place, waits, or is unknown.
struct FetchLimitState<ID: Hashable & Sendable>: Sendable {
  /// A place that is used.
  struct Place: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  /// The consequence of the arrival of a fetch.
  enum Arrival: Hashable, Sendable {
    /// It has a place.
    case begins
    /// It waits; if no room was left, in the room of this one, which no caller waits for.
    case waits(insteadOf: ID?)
    /// There is no room.
    case refused
  }

  /// The order of the fetches that wait: the highest is the next one.
  private struct Rank: Comparable {
    /// Whether callers wait for it.
    var hasCallers: Bool
    var priority: PriorityLevel
    let number: UInt64

    static func < (left: Self, right: Self) -> Bool {
      if left.hasCallers != right.hasCallers { return right.hasCallers }
      if left.priority != right.priority { return left.priority < right.priority }
      return left.number > right.number
    }
  }

  private let placeCount: Int
  private let room: Int
  /// The number of users of each place.
  private var users: [Place: Int] = [:]
  private var places: [ID: Place] = [:]
  /// The fetches that wait, in ascending order.
  private var queue: ContiguousArray<(rank: Rank, id: ID)> = []
  private var ranks: [ID: Rank] = [:]
  private var lastNumber: UInt64 = 0
  /// The number of fetches that wait and have callers.
  private var waitingCallerCount = 0

  /// - Parameters:
  ///   - placeCount: The number of places.
  ///   - room: The number of fetches that can wait; `nil` for no limit.
  init(placeCount: Int, room: Int?) {
    self.placeCount = placeCount
    self.room = room ?? .max
  }

  /// The number of places that are used.
  var runningCount: Int { users.count }

  /// The number of fetches that wait.
  var waitingCount: Int { queue.count }

  /// Whether a fetch with callers would be refused.
  var isFull: Bool { users.count >= placeCount && waitingCallerCount >= room }

  /// Whether a fetch without callers would be refused.
  var isCrowded: Bool { users.count >= placeCount && queue.count >= room }

  /// The fetches with a place.
  var holders: [ID] { Array(places.keys) }

  /// Returns whether a fetch waits.
  func isWaiting(_ id: ID) -> Bool { ranks[id] != nil }

  // MARK: - Arriving

  /// A fetch that is unknown asks for a place.
  ///
  /// - Parameters:
  ///   - id: The fetch.
  ///   - hasCallers: Whether callers wait for it; it waits behind all fetches with callers otherwise.
  ///   - priority: Its priority.
  /// - Returns: The consequence.
  mutating func arrive(_ id: ID, hasCallers: Bool, priority: PriorityLevel) -> Arrival {
    guard users.count >= placeCount else {
      take(id)
      return .begins
    }
    var displaced: ID?
    if queue.count >= room {
      guard hasCallers, let last = queue.first, !last.rank.hasCallers else { return .refused }
      displaced = last.id
      _ = withdraw(last.id)
    }
    lastNumber += 1
    insert(id, Rank(hasCallers: hasCallers, priority: priority, number: lastNumber))
    return .waits(insteadOf: displaced)
  }

  /// A fetch that waits or is unknown uses the place of another one, which waits for it.
  ///
  /// - Returns: Whether it does: not if the other one has no place.
  mutating func arrive(_ id: ID, inPlaceOf other: ID) -> Bool {
    guard let place = places[other], places[id] == nil else { return false }
    _ = withdraw(id)
    users[place, default: 0] += 1
    places[id] = place
    return true
  }

  /// Adds a user to the place of a fetch.
  ///
  /// - Returns: The place, if the fetch has one.
  mutating func hold(_ id: ID) -> Place? {
    guard let place = places[id] else { return nil }
    users[place, default: 0] += 1
    return place
  }

  // MARK: - Waiting

  /// Changes the priority of a fetch that waits.
  mutating func raise(_ id: ID, to priority: PriorityLevel) {
    guard var rank = ranks[id], rank.priority < priority else { return }
    rank.priority = priority
    move(id, to: rank)
  }

  /// Records that callers wait for a fetch.
  mutating func addCallers(to id: ID) {
    guard var rank = ranks[id], !rank.hasCallers else { return }
    rank.hasCallers = true
    move(id, to: rank)
  }

  /// A fetch no longer waits.
  ///
  /// - Returns: Whether it has waited.
  mutating func withdraw(_ id: ID) -> Bool {
    guard let rank = ranks.removeValue(forKey: id) else { return false }
    queue.remove(at: queue.firstSortedIndex { $0.rank >= rank })
    if rank.hasCallers { waitingCallerCount -= 1 }
    return true
  }

  private mutating func move(_ id: ID, to rank: Rank) {
    _ = withdraw(id)
    insert(id, rank)
  }

  private mutating func insert(_ id: ID, _ rank: Rank) {
    ranks[id] = rank
    queue.insert((rank, id), at: queue.firstSortedIndex { $0.rank >= rank })
    if rank.hasCallers { waitingCallerCount += 1 }
  }

  // MARK: - Leaving

  /// A fetch leaves its place, or no longer waits.
  ///
  /// - Returns: The fetches that have a place now.
  mutating func leave(_ id: ID) -> [ID] {
    guard let place = places.removeValue(forKey: id) else {
      _ = withdraw(id)
      return []
    }
    return release(place)
  }

  /// A user of a place leaves it.
  ///
  /// - Returns: The fetches that have a place now.
  mutating func release(_ place: Place) -> [ID] {
    guard let count = users[place] else { return [] }
    users[place] = count > 1 ? count - 1 : nil
    guard count == 1, let next = queue.last else { return [] }
    _ = withdraw(next.id)
    take(next.id)
    return [next.id]
  }

  private mutating func take(_ id: ID) {
    lastNumber += 1
    let place = Place(number: lastNumber)
    users[place] = 1
    places[id] = place
  }
}
