import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A limit for fetches` {
  typealias State = FetchLimitState<Int>

  private func state(_ placeCount: Int, room: Int? = nil) -> State {
    State(placeCount: placeCount, room: room)
  }

  @Test func `a limit for fetches gives places in order while there are any, and queues then`() {
    var state = state(2)
    #expect(state.arrive(1) == .begins)
    #expect(state.arrive(2) == .begins)
    #expect(state.arrive(3) == .waits(insteadOf: nil))
    #expect(state.arrive(4) == .waits(insteadOf: nil))
    #expect(state.runningCount == 2)
    #expect(state.waitingCount == 2)
    #expect(state.leave(2).granted == 3)
    #expect(state.leave(3).granted == 4)
    #expect(state.leave(4).granted == nil)
    #expect(state.arrive(5) == .begins)
  }

  @Test func `a limit for fetches prefers callers, then the priority, then the order`() {
    var state = state(1)
    _ = state.arrive(0)
    _ = state.arrive(1, hasCallers: false, 9)
    _ = state.arrive(2, 1)
    _ = state.arrive(3, 5)
    _ = state.arrive(4, 5)
    _ = state.arrive(5, hasCallers: false, 1)
    var order: [Int] = []
    var last = 0
    while let next = state.leave(last).granted {
      order.append(next)
      last = next
    }
    #expect(order == [3, 4, 2, 1, 5])
  }

  @Test func `a limit for fetches moves a fetch forward with its priority and its callers`() {
    var state = state(1)
    _ = state.arrive(0)
    for id in 1...3 { _ = state.arrive(id, 5) }
    _ = state.arrive(4, hasCallers: false, 1)
    state.raise(3, to: PriorityLevel(rawValue: 7))
    state.raise(1, to: PriorityLevel(rawValue: 3))
    state.setCallers(true, of: 4)
    #expect(state.leave(0).granted == 3)
    #expect(state.leave(3).granted == 1, "A lower priority changes nothing")
    #expect(state.leave(1).granted == 2)
    #expect(state.leave(2).granted == 4)
  }

  @Test func `a limit for fetches moves a fetch back whose callers have left, to where it was`() {
    var state = state(1, room: 3)
    _ = state.arrive(0)
    for id in 1...2 { _ = state.arrive(id, hasCallers: false) }
    state.setCallers(true, of: 1)
    state.setCallers(true, of: 2)
    #expect(!state.isFull)
    state.setCallers(false, of: 1)
    #expect(state.arrive(3) == .waits(insteadOf: nil))
    #expect(state.arrive(4) == .waits(insteadOf: 1))
    #expect(state.isFull)
    state.setCallers(false, of: 2)
    #expect(!state.isFull)
    #expect(state.leave(0).granted == 3)
    #expect(state.leave(3).granted == 4)
    #expect(state.leave(4).granted == 2)
  }

  @Test func `a limit for fetches refuses what has no room, and background work makes room`() {
    var state = state(1, room: 2)
    _ = state.arrive(0)
    #expect(!state.isCrowded)
    #expect(state.arrive(1, hasCallers: false) == .waits(insteadOf: nil))
    #expect(state.arrive(2, hasCallers: false) == .waits(insteadOf: nil))
    #expect(state.isCrowded)
    #expect(!state.isFull)
    #expect(state.arrive(3, hasCallers: false) == .refused)
    #expect(state.arrive(4) == .waits(insteadOf: 2))
    #expect(state.arrive(5) == .waits(insteadOf: 1))
    #expect(state.isFull)
    #expect(state.arrive(6) == .refused)
    #expect(state.leave(0).granted == 4)
    #expect(!state.isFull)
  }

  @Test func `a limit for fetches refuses no fetch that another one with a place waits for`() {
    var state = state(1, room: 1)
    _ = state.arrive(0)
    _ = state.arrive(1, hasCallers: false)
    #expect(state.arrive(2, isNested: true) == .waits(insteadOf: 1))
    #expect(state.arrive(3, isNested: true) == .waits(insteadOf: nil))
    #expect(state.waitingCount == 2)
    #expect(state.arrive(4) == .refused)
  }

  @Test func `a limit for fetches without room lets none wait`() {
    var state = state(1, room: 0)
    #expect(state.arrive(1) == .begins)
    #expect(state.arrive(2) == .refused)
    #expect(state.arrive(3, hasCallers: false) == .refused)
    #expect(state.leave(1).granted == nil)
    #expect(state.arrive(2) == .begins)
  }

  @Test func `a limit for fetches forgets a fetch that no longer waits`() {
    var state = state(1)
    for id in 0...2 { _ = state.arrive(id) }
    #expect(state.withdraw(1) == true)
    #expect(state.withdraw(1) == false)
    #expect(state.withdraw(0) == false, "It has a place")
    #expect(state.leave(2).granted == nil)
    #expect(state.leave(0).granted == nil)
  }

  @Test func `a place is free when all fetches that use it have left`() {
    var state = state(1)
    _ = state.arrive(0)
    _ = state.arrive(1)
    _ = state.arrive(2)
    #expect(state.arrive(1, above: 0) == true)
    #expect(state.arrive(1, above: 0) == false, "It has a place")
    #expect(state.arrive(3, above: 2) == false, "That one has none")
    #expect(state.runningCount == 1)
    #expect(state.waitingCount == 1)
    #expect(state.leave(0) == .init())
    #expect(state.arrive(4, above: 1) == true, "The place goes on")
    #expect(state.leave(1) == .init())
    #expect(state.leave(4).granted == 2)
  }

  @Test func `one of several fetches that another one waits for uses its place at a time`() {
    var state = state(1)
    _ = state.arrive(0)
    #expect(state.arrive(1, above: 0) == true)
    #expect(!state.isExposed(0))
    #expect(state.arrive(2, above: 0) == false, "The first one is running")
    #expect(state.arrive(2, above: 1) == true, "It waits for this one, too")
    #expect(state.leave(1) == .init(), "The last one goes on")
    #expect(state.leave(2) == .init(exposed: [0]))
    #expect(state.arrive(3, above: 0) == true)
    #expect(state.leave(3) == .init(exposed: [0]))
    #expect(state.leave(0) == .init())
  }

  @Test func `the parts of a fetch share a level of a place`() {
    var state = state(1)
    _ = state.arrive(10, of: 1)
    #expect(state.arrive(11, of: 1, beside: 1) == true)
    #expect(state.arrive(12, of: 2, beside: 2) == false)
    #expect(state.isExposed(1))
    #expect(!state.hasPlace(10), "A part is known by its work")
    #expect(state.arrive(2, above: 1) == true)
    #expect(state.leave(10) == .init())
    #expect(state.hasPlace(1))
    #expect(state.leave(2) == .init(exposed: [1]))
    #expect(state.leave(11) == .init())
    #expect(!state.hasPlace(1))
  }

  @Test func `a place that is held is used until it is released`() throws {
    var state = state(1)
    _ = state.arrive(0)
    _ = state.arrive(1)
    let held = state.hold(0)
    let place = try #require(held)
    #expect(state.hold(1) == nil)
    #expect(state.leave(0) == .init())
    #expect(state.runningCount == 1)
    #expect(state.isExposed(0), "What the call requests can use the place")
    #expect(state.arrive(2, above: 0) == true)
    #expect(state.leave(2) == .init(exposed: [0]))
    #expect(state.release(place).granted == 1)
    #expect(state.release(place) == .init(), "It is no place anymore")
  }

  @Test(arguments: UInt64(0)..<30)
  func `a limit for fetches is that of a naive model, after any history`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let model = Model(
      placeCount: Int.random(in: 1...3, using: &random),
      room: [nil, 0, 1, 4].randomElement(using: &random) ?? nil
    )
    var run = Run(state: state(model.placeCount, room: model.room), model: model)
    for _ in 0..<600 {
      run.step(&random)
      guard run.isAsPredicted else {
        Issue.record("\(run.history.suffix(12))")
        return
      }
    }
  }
}

extension FetchLimitState {
  fileprivate mutating func arrive(
    _ id: ID,
    of work: ID? = nil,
    hasCallers: Bool = true,
    _ priority: UInt8 = 0,
    isNested: Bool = false
  ) -> Arrival {
    arrive(
      id,
      of: work,
      hasCallers: hasCallers,
      priority: PriorityLevel(rawValue: priority),
      isNested: isNested
    )
  }
}

/// Places as lists of levels, which are sets of users, and a list of the fetches that wait, which is searched.
///
/// Each fetch is a work of its own, and the users that hold a place have negative ids.
private struct Model {
  struct Waiting {
    let id: Int
    var hasCallers: Bool
    var priority: UInt8
  }

  struct User: Hashable {
    let id: Int
    let work: Int
  }

  let placeCount: Int
  let room: Int?
  var places: [[Set<User>]] = []
  var waiting: [Waiting] = []

  var users: [User] { places.flatMap { $0.flatMap { $0 } } }

  var ids: [Int] { users.map(\.id).filter { $0 > 0 } + waiting.map(\.id) }

  mutating func arrive(
    _ id: Int,
    hasCallers: Bool,
    priority: UInt8,
    isNested: Bool
  ) -> FetchLimitState<Int>.Arrival {
    guard places.count >= placeCount else {
      places.append([[User(id: id, work: id)]])
      return .begins
    }
    var displaced: Int?
    if let room, waiting.count >= room {
      if hasCallers, let last = ranked.last, !last.hasCallers {
        displaced = last.id
        waiting.removeAll { $0.id == last.id }
      } else if !isNested {
        return .refused
      }
    }
    waiting.append(Waiting(id: id, hasCallers: hasCallers, priority: priority))
    return .waits(insteadOf: displaced)
  }

  /// The fetches that wait, the next one first. Among equals, the order of arrival counts.
  private var ranked: [Waiting] {
    waiting.enumerated().sorted { left, right in
      let (one, other) = (left.element, right.element)
      if one.hasCallers != other.hasCallers { return one.hasCallers }
      if one.priority != other.priority { return one.priority > other.priority }
      return left.offset < right.offset
    }.map(\.element)
  }

  /// The places whose top is used by a work.
  func tops(of work: Int) -> [Int] {
    places.indices.filter { places[$0].last?.contains { $0.work == work } == true }
  }

  func isInside(_ id: Int) -> Bool { users.contains { $0.id == id } }

  mutating func enter(_ id: Int, above place: Int) {
    waiting.removeAll { $0.id == id }
    places[place].append([User(id: id, work: id)])
  }

  mutating func leave(_ id: Int) -> FetchLimitState<Int>.Departure {
    waiting.removeAll { $0.id == id }
    var exposed: Set<Int> = []
    for place in places.indices {
      let isTop = places[place].last?.contains { $0.id == id } == true
      for level in places[place].indices {
        places[place][level] = places[place][level].filter { $0.id != id }
      }
      let count = places[place].count
      places[place].removeAll(where: \.isEmpty)
      if isTop, places[place].count < count {
        exposed = Set(places[place].last?.map(\.work) ?? [])
      }
    }
    return .init(granted: fill(), exposed: Array(exposed))
  }

  private mutating func fill() -> Int? {
    places.removeAll(where: \.isEmpty)
    guard places.count < placeCount, let next = ranked.first else { return nil }
    waiting.removeAll { $0.id == next.id }
    places.append([[User(id: next.id, work: next.id)]])
    return next.id
  }
}

private struct Run {
  var state: FetchLimitState<Int>
  var model: Model
  var history: [String] = []
  private var held: [(place: FetchLimitState<Int>.Hold, user: Int)] = []
  private var lastID = 0
  /// The number of the last one that holds a place, which is negative.
  private var lastUser = 0
  private var isSame = true

  init(state: FetchLimitState<Int>, model: Model) {
    self.state = state
    self.model = model
  }

  mutating func step(_ random: inout SeededRandom) {
    let known = model.ids.randomElement(using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6:
      lastID += 1
      let hasCallers = Int.random(in: 0..<3, using: &random) > 0
      let isNested = Int.random(in: 0..<6, using: &random) == 0
      let priority = UInt8.random(in: 0..<3, using: &random)
      history.append("arrive \(lastID) \(hasCallers) \(priority) \(isNested)")
      isSame =
        state.arrive(lastID, hasCallers: hasCallers, priority, isNested: isNested)
        == model.arrive(lastID, hasCallers: hasCallers, priority: priority, isNested: isNested)
    case 6..<9:
      guard let known else { return }
      let id = Bool.random(using: &random) ? lastID + 1 : known
      lastID = max(lastID, id)
      // Also one that has left and whose call continues.
      let works = Set(model.users.map(\.work) + model.waiting.map(\.id)).subtracting([id])
      guard let host = works.sorted().randomElement(using: &random) else { return }
      history.append("arrive \(id) above \(host)")
      let isInside = model.isInside(id)
      // It can be above one of several calls of the same work.
      let tops = model.tops(of: host)
      guard tops.count < 2 else { return }
      isSame = state.arrive(id, above: host) == (!tops.isEmpty && !isInside)
      if let top = tops.first, !isInside { model.enter(id, above: top) }
    case 9..<10:
      guard let known else { return }
      history.append("hold \(known)")
      lastUser -= 1
      let new = state.hold(known)
      isSame = (new != nil) == model.isInside(known)
      guard let new else { return }
      held.append((new, lastUser))
      for place in model.places.indices {
        for level in model.places[place].indices
        where model.places[place][level].contains(where: { $0.id == known }) {
          model.places[place][level].insert(.init(id: lastUser, work: known))
        }
      }
    case 10..<12:
      guard let index = held.indices.randomElement(using: &random) else { return }
      let (place, user) = held.remove(at: index)
      history.append("release \(user)")
      isSame = isEqual(state.release(place), model.leave(user))
    case 12..<14:
      guard let known, let index = model.waiting.firstIndex(where: { $0.id == known }) else {
        return
      }
      let priority = UInt8.random(in: 0..<4, using: &random)
      history.append("raise \(known) to \(priority)")
      state.raise(known, to: PriorityLevel(rawValue: priority))
      model.waiting[index].priority = max(model.waiting[index].priority, priority)
    case 14..<15:
      guard let known else { return }
      let hasCallers = Bool.random(using: &random)
      history.append("callers of \(known): \(hasCallers)")
      state.setCallers(hasCallers, of: known)
      if let index = model.waiting.firstIndex(where: { $0.id == known }) {
        model.waiting[index].hasCallers = hasCallers
      }
    case 15..<16:
      guard let known else { return }
      history.append("withdraw \(known)")
      isSame = state.withdraw(known) == model.waiting.contains { $0.id == known }
      model.waiting.removeAll { $0.id == known }
    default:
      guard let known else { return }
      history.append("leave \(known)")
      isSame = isEqual(state.leave(known), model.leave(known))
    }
  }

  private func isEqual(
    _ one: FetchLimitState<Int>.Departure,
    _ other: FetchLimitState<Int>.Departure
  ) -> Bool {
    one.granted == other.granted && Set(one.exposed) == Set(other.exposed)
  }

  var isAsPredicted: Bool {
    let room = model.room ?? .max
    let isUsed = model.places.count == model.placeCount
    return isSame && state.runningCount == model.places.count
      && state.waitingCount == model.waiting.count && model.places.count <= model.placeCount
      && (model.waiting.isEmpty || isUsed)
      && state.isFull == (isUsed && model.waiting.count(where: \.hasCallers) >= room)
      && state.isCrowded == (isUsed && model.waiting.count >= room)
      && Set(state.works) == Set(model.users.map(\.work))
  }
}
