/// The places of a limit for concurrent fetches, and the fetches that wait for one.
///
/// A place is a stack of levels. A fetch that another one waits for can use the place of that one, on a new level, while
/// nothing is above the level of the other one: so one of several such fetches runs at a time. Parts of one fetch share a
/// level, and so does a call that continues after its fetch has left. A place is free once all that use it have left.
///
/// Fetches are known by two ids: their own one, and the id of their work, which is that of the whole for the parts of a fetch.
///
/// Invariants:
///
/// - Never more places are used than there are.
/// - While a fetch waits, no place is free.
/// - A fetch has a place, waits, or is unknown.
struct FetchLimitState<ID: Hashable & Sendable>: Sendable {
  /// A level that is used by a call, also after its fetch has left.
  struct Hold: Hashable, Sendable {
    fileprivate let work: ID
    fileprivate let position: Position
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

  /// The consequences of a departure.
  struct Departure: Hashable, Sendable {
    /// The fetch that has a place now.
    var granted: ID?
    /// The works above which nothing is left: fetches that they wait for can use their place.
    var exposed: [ID] = []
  }

  fileprivate struct Position: Hashable, Sendable {
    let place: UInt64
    let level: UInt64
  }

  private struct Level: Sendable {
    let number: UInt64
    /// The works that use it, once for each fetch and each hold.
    var users: [ID]
  }

  private struct Home: Sendable {
    let work: ID
    let position: Position
  }

  /// The order of the fetches that wait: the highest is the next one.
  private struct Rank: Comparable, Sendable {
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
  /// The levels of each place that is used, from the bottom.
  private var places: [UInt64: [Level]] = [:]
  private var homes: [ID: Home] = [:]
  /// The levels of each work, once for each fetch and each hold.
  private var positions: [ID: [Position]] = [:]
  private var queue: RankedQueue<ID, Rank>
  /// The works of the fetches that wait, if they have other ids.
  private var waitingWorks: [ID: ID] = [:]
  private var lastNumber: UInt64 = 0
  /// The number of fetches that wait and have callers.
  private var waitingCallerCount = 0

  /// - Parameters:
  ///   - placeCount: The number of places.
  ///   - room: The number of fetches that can wait; `nil` for no limit.
  init(placeCount: Int, room: Int?) {
    self.placeCount = placeCount
    self.room = room ?? .max
    queue = RankedQueue(findsLowest: room != nil)
  }

  /// The number of places that are used.
  var runningCount: Int { places.count }

  /// The number of fetches that wait.
  var waitingCount: Int { queue.count }

  /// Whether a fetch with callers would be refused.
  var isFull: Bool { places.count >= placeCount && waitingCallerCount >= room }

  /// Whether a fetch without callers would be refused.
  var isCrowded: Bool { places.count >= placeCount && queue.count >= room }

  /// The works with a place.
  var works: [ID] { Array(positions.keys) }

  /// Returns whether a fetch waits.
  func isWaiting(_ id: ID) -> Bool { queue[id] != nil }

  /// Returns whether a fetch goes before another one that waits.
  func isNext(_ id: ID, before other: ID) -> Bool {
    guard let rank = queue[id] else { return false }
    return queue[other].map { $0 < rank } ?? true
  }

  /// Returns whether a fetch has a place.
  func isInside(_ id: ID) -> Bool { homes[id] != nil }

  /// Returns whether a work has a place.
  func hasPlace(_ work: ID) -> Bool { positions[work] != nil }

  /// Returns whether fetches that a work waits for can use its place.
  func isExposed(_ work: ID) -> Bool { exposedPosition(of: work) != nil }

  private func exposedPosition(of work: ID) -> Position? {
    positions[work]?.first { places[$0.place]?.last?.number == $0.level }
  }

  // MARK: - Arriving

  /// A fetch that is unknown asks for a place.
  ///
  /// - Parameters:
  ///   - id: The fetch.
  ///   - work: Its work, if that is another one.
  ///   - hasCallers: Whether callers wait for it; it waits behind all fetches with callers otherwise.
  ///   - priority: Its priority.
  ///   - isNested: Whether a fetch with a place waits for it, so that it is never refused.
  /// - Returns: The consequence.
  mutating func arrive(
    _ id: ID,
    of work: ID? = nil,
    hasCallers: Bool,
    priority: PriorityLevel,
    isNested: Bool = false
  ) -> Arrival {
    guard places.count >= placeCount else {
      take(id, work ?? id)
      return .begins
    }
    var displaced: ID?
    if queue.count >= room {
      if hasCallers, let last = queue.findLowest(), !last.rank.hasCallers {
        displaced = last.id
        _ = withdraw(last.id)
      } else if !isNested {
        return .refused
      }
    }
    lastNumber += 1
    insert(id, work ?? id, Rank(hasCallers: hasCallers, priority: priority, number: lastNumber))
    return .waits(insteadOf: displaced)
  }

  /// A fetch that waits or is unknown uses the place of a work that waits for it, above that.
  ///
  /// - Returns: Whether it does: not if the work has no place, or if something is above it.
  mutating func arrive(_ id: ID, of work: ID? = nil, above host: ID) -> Bool {
    guard homes[id] == nil, let below = exposedPosition(of: host) else { return false }
    _ = withdraw(id)
    lastNumber += 1
    places[below.place]?.append(Level(number: lastNumber, users: []))
    settle(id, work ?? id, at: Position(place: below.place, level: lastNumber))
    return true
  }

  /// A fetch that waits or is unknown shares the level of a work that it is a part of.
  ///
  /// - Returns: Whether it does: not if the work has no place.
  mutating func arrive(_ id: ID, of work: ID? = nil, beside other: ID) -> Bool {
    guard homes[id] == nil, let position = positions[other]?.first else { return false }
    _ = withdraw(id)
    settle(id, work ?? id, at: position)
    return true
  }

  /// A call begins to use the level of its fetch, until ``release(_:)``.
  ///
  /// - Returns: `nil` if the fetch has no place.
  mutating func hold(_ id: ID) -> Hold? {
    guard let home = homes[id] else { return nil }
    use(home.position, for: home.work)
    return Hold(work: home.work, position: home.position)
  }

  private mutating func take(_ id: ID, _ work: ID) {
    lastNumber += 1
    places[lastNumber] = [Level(number: lastNumber, users: [])]
    settle(id, work, at: Position(place: lastNumber, level: lastNumber))
  }

  private mutating func settle(_ id: ID, _ work: ID, at position: Position) {
    homes[id] = Home(work: work, position: position)
    use(position, for: work)
  }

  private mutating func use(_ position: Position, for work: ID) {
    guard let index = levelIndex(of: position) else { return }
    places[position.place]?[index].users.append(work)
    positions[work, default: []].append(position)
  }

  private func levelIndex(of position: Position) -> Int? {
    places[position.place]?.lastIndex { $0.number == position.level }
  }

  // MARK: - Waiting

  /// Changes the priority of a fetch that waits.
  mutating func raise(_ id: ID, to priority: PriorityLevel) {
    guard var rank = queue[id], rank.priority < priority else { return }
    rank.priority = priority
    queue.insert(id, rank)
  }

  /// Records whether callers wait for a fetch.
  mutating func setCallers(_ hasCallers: Bool, of id: ID) {
    guard var rank = queue[id], rank.hasCallers != hasCallers else { return }
    rank.hasCallers = hasCallers
    queue.insert(id, rank)
    waitingCallerCount += hasCallers ? 1 : -1
  }

  /// A fetch no longer waits.
  ///
  /// - Returns: Whether it has waited.
  mutating func withdraw(_ id: ID) -> Bool {
    guard let rank = queue.remove(id) else { return false }
    waitingWorks[id] = nil
    if rank.hasCallers { waitingCallerCount -= 1 }
    return true
  }

  private mutating func insert(_ id: ID, _ work: ID, _ rank: Rank) {
    queue.insert(id, rank)
    if work != id { waitingWorks[id] = work }
    if rank.hasCallers { waitingCallerCount += 1 }
  }

  // MARK: - Leaving

  /// A fetch leaves its place, or no longer waits.
  ///
  /// - Returns: The consequences.
  mutating func leave(_ id: ID) -> Departure {
    guard let home = homes.removeValue(forKey: id) else {
      _ = withdraw(id)
      return Departure()
    }
    return leave(home.position, home.work)
  }

  /// A call no longer uses a level.
  ///
  /// - Returns: The consequences.
  mutating func release(_ hold: Hold) -> Departure {
    leave(hold.position, hold.work)
  }

  private mutating func leave(_ position: Position, _ work: ID) -> Departure {
    guard var levels = places[position.place], let index = levelIndex(of: position),
      let user = levels[index].users.firstIndex(of: work)
    else { return Departure() }
    if let known = positions[work]?.firstIndex(of: position) {
      positions[work]?.remove(at: known)
      if positions[work]?.isEmpty == true { positions[work] = nil }
    }
    levels[index].users.remove(at: user)
    let isTop = index == levels.count - 1
    let isEmpty = levels[index].users.isEmpty
    if isEmpty { levels.remove(at: index) }
    places[position.place] = levels.isEmpty ? nil : levels
    guard let top = levels.last else { return Departure(granted: grant()) }
    return Departure(exposed: isEmpty && isTop ? Array(Set(top.users)) : [])
  }

  /// Gives the place that is free to the next fetch that waits.
  private mutating func grant() -> ID? {
    guard places.count < placeCount, let next = queue.popHighest() else { return nil }
    if next.rank.hasCallers { waitingCallerCount -= 1 }
    take(next.id, waitingWorks.removeValue(forKey: next.id) ?? next.id)
    return next.id
  }
}
