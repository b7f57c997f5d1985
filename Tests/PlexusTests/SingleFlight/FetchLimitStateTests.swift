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
    #expect(state.leave(2) == [3])
    #expect(state.leave(3) == [4])
    #expect(state.leave(4) == [])
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
    while let next = state.leave(last).first {
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
    state.addCallers(to: 4)
    #expect(state.leave(0) == [3])
    #expect(state.leave(3) == [1], "A lower priority changes nothing")
    #expect(state.leave(1) == [2])
    #expect(state.leave(2) == [4])
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
    #expect(state.leave(0) == [4])
    #expect(!state.isFull)
  }

  @Test func `a limit for fetches without room lets none wait`() {
    var state = state(1, room: 0)
    #expect(state.arrive(1) == .begins)
    #expect(state.arrive(2) == .refused)
    #expect(state.arrive(3, hasCallers: false) == .refused)
    #expect(state.leave(1) == [])
    #expect(state.arrive(2) == .begins)
  }

  @Test func `a limit for fetches forgets a fetch that no longer waits`() {
    var state = state(1)
    for id in 0...2 { _ = state.arrive(id) }
    #expect(state.withdraw(1) == true)
    #expect(state.withdraw(1) == false)
    #expect(state.withdraw(0) == false, "It has a place")
    #expect(state.leave(2) == [])
    #expect(state.leave(0) == [])
  }

  @Test func `a place is free when all fetches that use it have left`() {
    var state = state(1)
    _ = state.arrive(0)
    _ = state.arrive(1)
    _ = state.arrive(2)
    #expect(state.arrive(1, inPlaceOf: 0) == true)
    #expect(state.arrive(1, inPlaceOf: 0) == false, "It has a place")
    #expect(state.arrive(3, inPlaceOf: 2) == false, "That one has none")
    #expect(state.runningCount == 1)
    #expect(state.waitingCount == 1)
    #expect(state.leave(0) == [])
    #expect(state.arrive(4, inPlaceOf: 1) == true, "The place goes on")
    #expect(state.leave(1) == [])
    #expect(state.leave(4) == [2])
  }

  @Test func `a place that is held is used until it is released`() throws {
    var state = state(1)
    _ = state.arrive(0)
    _ = state.arrive(1)
    let held = state.hold(0)
    let place = try #require(held)
    #expect(state.hold(1) == nil)
    #expect(state.leave(0) == [])
    #expect(state.runningCount == 1)
    #expect(state.release(place) == [1])
    #expect(state.release(place) == [], "It is no place anymore")
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
    hasCallers: Bool = true,
    _ priority: UInt8 = 0
  ) -> Arrival {
    arrive(id, hasCallers: hasCallers, priority: PriorityLevel(rawValue: priority))
  }
}

/// Places as sets of users, and a list of those that wait, which is searched.
private struct Model {
  struct Waiting {
    let id: Int
    var hasCallers: Bool
    var priority: UInt8
  }

  let placeCount: Int
  let room: Int?
  var places: [Set<Int>] = []
  var waiting: [Waiting] = []

  var ids: [Int] { places.flatMap { $0 } + waiting.map(\.id) }

  mutating func arrive(_ id: Int, hasCallers: Bool, priority: UInt8) -> FetchLimitState<Int>.Arrival
  {
    guard places.count >= placeCount else {
      places.append([id])
      return .begins
    }
    var displaced: Int?
    if let room, waiting.count >= room {
      guard hasCallers, let last = ranked.last, !last.hasCallers else { return .refused }
      displaced = last.id
      waiting.removeAll { $0.id == last.id }
    }
    waiting.append(Waiting(id: id, hasCallers: hasCallers, priority: priority))
    return .waits(insteadOf: displaced)
  }

  /// Those that wait, the next one first. Among equals, the order of the list counts.
  private var ranked: [Waiting] {
    waiting.enumerated().sorted { left, right in
      let (one, other) = (left.element, right.element)
      if one.hasCallers != other.hasCallers { return one.hasCallers }
      if one.priority != other.priority { return one.priority > other.priority }
      return left.offset < right.offset
    }.map(\.element)
  }

  mutating func leave(_ id: Int) -> [Int] {
    waiting.removeAll { $0.id == id }
    for index in places.indices { places[index].remove(id) }
    return fill()
  }

  mutating func fill() -> [Int] {
    places.removeAll(where: \.isEmpty)
    guard places.count < placeCount, let next = ranked.first else { return [] }
    waiting.removeAll { $0.id == next.id }
    places.append([next.id])
    return [next.id]
  }
}

private struct Run {
  var state: FetchLimitState<Int>
  var model: Model
  var history: [String] = []
  private var held: [(place: FetchLimitState<Int>.Place, user: Int)] = []
  private var lastID = 0
  private var isSame = true

  init(state: FetchLimitState<Int>, model: Model) {
    self.state = state
    self.model = model
  }

  mutating func step(_ random: inout SeededRandom) {
    let known = model.ids.filter { $0 > 0 }.randomElement(using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6:
      lastID += 1
      let hasCallers = Int.random(in: 0..<3, using: &random) > 0
      let priority = UInt8.random(in: 0..<3, using: &random)
      history.append("arrive \(lastID) \(hasCallers) \(priority)")
      isSame =
        state.arrive(lastID, hasCallers: hasCallers, priority)
        == model.arrive(lastID, hasCallers: hasCallers, priority: priority)
    case 6..<8:
      guard let known else { return }
      let id = Bool.random(using: &random) ? lastID + 1 : known
      lastID = max(lastID, id)
      guard let host = model.ids.filter({ $0 > 0 && $0 != id }).randomElement(using: &random) else {
        return
      }
      history.append("arrive \(id) in the place of \(host)")
      let place = model.places.firstIndex { $0.contains(host) }
      let hasPlace = model.places.contains { $0.contains(id) }
      isSame = state.arrive(id, inPlaceOf: host) == (place != nil && !hasPlace)
      if let place, !hasPlace {
        model.waiting.removeAll { $0.id == id }
        model.places[place].insert(id)
      }
    case 8..<10:
      guard let known else { return }
      history.append("hold \(known)")
      let place = model.places.firstIndex { $0.contains(known) }
      let user = -1 - held.count - lastID * 1_000
      if let new = state.hold(known) { held.append((new, user)) }
      if let place { model.places[place].insert(user) }
    case 10..<12:
      guard let index = held.indices.randomElement(using: &random) else { return }
      let (place, user) = held.remove(at: index)
      history.append("release \(user)")
      for index in model.places.indices { model.places[index].remove(user) }
      isSame = state.release(place) == model.fill()
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
      history.append("add callers to \(known)")
      state.addCallers(to: known)
      if let index = model.waiting.firstIndex(where: { $0.id == known }) {
        model.waiting[index].hasCallers = true
      }
    case 15..<16:
      guard let known else { return }
      history.append("withdraw \(known)")
      isSame = state.withdraw(known) == model.waiting.contains { $0.id == known }
      model.waiting.removeAll { $0.id == known }
    default:
      guard let known else { return }
      history.append("leave \(known)")
      isSame = state.leave(known) == model.leave(known)
    }
  }

  var isAsPredicted: Bool {
    isSame && state.runningCount == model.places.count
      && state.waitingCount == model.waiting.count && model.places.count <= model.placeCount
      && (model.waiting.isEmpty || model.places.count == model.placeCount)
      && Set(state.holders) == Set(model.places.joined().filter { $0 > 0 })
  }
}
