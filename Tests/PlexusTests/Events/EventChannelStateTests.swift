import TestSupport
import Testing

@testable import Plexus

/// The order of the steps in a channel.
@Suite(.fewAtOnce) struct `Event channel state` {
  typealias State = EventChannel.OffersState<String, Int>

  /// The next offer as text.
  func offer(_ state: inout State, at now: Nanoseconds = 0) -> String? {
    guard case .offer(let offer) = state.next(at: now) else { return nil }
    return "\(offer.element) to \(offer.member)"
  }

  func withMembers(_ members: Int...) -> State {
    var state = State()
    for member in members { state.add(member) }
    return state
  }

  @Test func `an event that is not retained is offered to all current subscribers`() {
    var state = withMembers(7, 8)
    #expect(state.passed == 0)
    #expect(state.post("a", .none, at: 0) == 1)
    // A subscriber that is added now does not get it.
    #expect(state.passed == 1)
    guard case .fanOut("a", post: 1) = state.next(at: 0) else {
      Issue.record("no fan-out")
      return
    }
    #expect(state.passed == 0)
    #expect(state.next(at: 0) == nil)
    #expect(state.isIdle)
    #expect(state.takeReleased() == ["a"])
    #expect(state.takeReleased() == [])
  }

  @Test func `the next offer follows the result of the previous one`() {
    var state = withMembers(7, 8)
    _ = state.post("a", .persistent(.neverClear), at: 0)
    _ = state.post("b", .none, at: 0)
    #expect(offer(&state) == "a to 7")
    #expect(state.next(at: 0) == nil)
    state.finish(1, as: .failed)
    #expect(offer(&state) == "a to 8")
    state.finish(1, as: .succeeded)
    #expect(state.next(at: 0) == nil)
    state.finish(2, as: .succeeded)
    guard case .end(post: 1, let outcome) = state.next(at: 0) else {
      Issue.record("no end")
      return
    }
    #expect(outcome == PostOutcome(notified: 2, handled: 1, isPersisted: true))
    #expect(state.passed == 2)
    guard case .fanOut("b", post: 2) = state.next(at: 0) else {
      Issue.record("no fan-out")
      return
    }
    #expect(state.isIdle)
  }

  @Test
  func `a subscriber that is removed before it starts is skipped, and a started one has failed`() {
    var state = withMembers(7, 8)
    _ = state.post("a", .persistent(.neverClear), at: 0)
    #expect(offer(&state) == "a to 7")
    #expect(state.remove(1) == 7)
    let isLate = state.start(1)
    #expect(!isLate)
    #expect(offer(&state) == "a to 8")
    let isInTime = state.start(2)
    #expect(isInTime)
    #expect(state.remove(2) == 8)
    #expect(state.remove(2) == nil)
    guard case .end(_, let outcome) = state.next(at: 0) else {
      Issue.record("no end")
      return
    }
    #expect(outcome == PostOutcome(notified: 1, handled: 0, isPersisted: true))
    // A later result is ignored.
    state.finish(2, as: .succeeded)
    #expect(state.isIdle)
  }

  @Test func `a subscriber that removes itself while it handles an offer still answers`() {
    var state = withMembers(7, 8)
    _ = state.post("a", .persistent(.clearImmediately), at: 0)
    #expect(offer(&state) == "a to 7")
    let isInTime = state.start(1)
    #expect(isInTime)
    #expect(state.startedOffer(of: 2) == nil)
    #expect(state.remove(1, answers: true) == 7)
    #expect(state.startedOffer(of: 1) == 1)
    #expect(state.isOpen(1))
    #expect(state.next(at: 0) == nil)
    state.finish(1, as: .succeeded)
    guard case .end(_, let outcome) = state.next(at: 0) else {
      Issue.record("no end")
      return
    }
    #expect(outcome == PostOutcome(notified: 1, handled: 1))
    #expect(!state.isOpen(1))
    // An offer that has not started is withdrawn in any case.
    _ = state.post("b", .persistent(.clearImmediately), at: 0)
    #expect(offer(&state) == "b to 8")
    #expect(state.remove(2, answers: true) == 8)
    guard case .end(_, let other) = state.next(at: 0) else {
      Issue.record("no end")
      return
    }
    #expect(other == PostOutcome(notified: 0, handled: 0, isPersisted: true))
  }

  @Test func `the progress of a post counts the handlers that have ended`() {
    var state = withMembers(7, 8)
    let post = state.post("a", .persistent(.clearAfterAllCurrentSubscribersNotified), at: 0)
    #expect(
      state.progress(of: post, at: 0) == PostOutcome(notified: 0, handled: 0, isPersisted: true)
    )
    #expect(offer(&state) == "a to 7")
    state.finish(1, as: .failed)
    #expect(offer(&state) == "a to 8")
    #expect(
      state.progress(of: post, at: 0) == PostOutcome(notified: 1, handled: 0, isPersisted: true)
    )
    #expect(state.progress(of: post + 1, at: 0) == PostOutcome(notified: 0, handled: 0))
  }

  @Test func `a replay follows the posts before it and precedes the posts after it`() {
    var state = withMembers(7)
    _ = state.post("a", .persistent(.neverClear), at: 0)
    #expect(offer(&state) == "a to 7")
    _ = state.post("b", .persistent(.clearImmediately), at: 0)
    state.add(8)
    _ = state.post("c", .persistent(.neverClear), at: 0)
    var order = ["a to 7"]
    for number in 1...20 {
      state.finish(number, as: .failed)
      while let step = state.next(at: 0) {
        if case .offer(let offer) = step { order.append("\(offer.element) to \(offer.member)") }
      }
    }
    #expect(order == ["a to 7", "b to 7", "a to 8", "b to 8", "c to 7", "c to 8"])
    #expect(state.pending(at: 0) == ["a", "b", "c"])
  }

  @Test func `a subscriber receives no replay if no event is retained`() {
    var state = State()
    state.add(7)
    #expect(state.isIdle)
    #expect(state.next(at: 0) == nil)
  }

  @Test func `subscribers that come and go behind a slow one leave no entries`() {
    var state = withMembers(7)
    _ = state.post("a", .persistent(.neverClear), at: 0)
    #expect(offer(&state) == "a to 7")
    state.add(8)
    for _ in 0..<1000 {
      let id = state.nextID
      state.add(9)
      #expect(state.remove(id) == 9)
    }
    #expect(state.waitingCount < 50)
    state.finish(1, as: .failed)
    guard case .end = state.next(at: 0) else {
      Issue.record("no end")
      return
    }
    #expect(offer(&state) == "a to 8")
  }

  @Test func `removed events can be released without a lock`() {
    var state = State()
    _ = state.post("a", .persistent(.clearImmediately, limit: 1), at: 0)
    _ = state.post(
      "b",
      .persistent(.clearImmediately, limit: 1, timeToLive: .nanoseconds(5)),
      at: 0
    )
    while state.next(at: 0) != nil {}
    // What is still retained needs no release.
    #expect(state.takeReleased().sorted() == ["a", "a"])
    #expect(state.isKept(post: 2, at: 4))
    #expect(!state.isKept(post: 2, at: 5))
    #expect(state.pending(at: 5) == [])
    #expect(state.takeReleased() == ["b"])
    #expect(state.isEmpty)
  }

  @Test func `an event channel keeps its order when many events come and go`() {
    var state = State()
    for number in 0..<500 {
      _ = state.post("\(number)", .persistent(.neverClear, limit: 40), at: 0)
    }
    while state.next(at: 0) != nil {}
    #expect(state.pending(at: 0) == (460..<500).map { "\($0)" })
    for number in 500..<1000 {
      _ = state.post(
        "\(number)",
        .persistent(.neverClear, timeToLive: .nanoseconds(10)),
        at: Nanoseconds(number)
      )
    }
    while state.next(at: 1000) != nil {}
    #expect(state.pending(at: 1000) == (460..<500).map { "\($0)" } + (991..<1000).map { "\($0)" })
    #expect(state.isKept(post: 1000, at: 1000))
    #expect(!state.isKept(post: 991, at: 1000))
  }

  @Test func `discarded events leave no gaps behind a retained one`() {
    var state = withMembers(7)
    _ = state.post("stays", .persistent(.clearImmediately), at: 0)
    for number in 1...10_000 {
      while case .offer(let offer) = state.next(at: 0) {
        state.finish(offer.number, as: offer.element == "stays" ? .failed : .succeeded)
      }
      _ = state.post("\(number)", .persistent(.clearImmediately), at: 0)
      #expect(state.retained.gapCount <= 64)
    }
    #expect(state.pending(at: 0) == ["stays", "10000"])
    _ = state.remove(1)
    for number in 1...1000 {
      _ = state.post("\(number)", .persistent(.clearImmediately), at: 0)
    }
    while state.next(at: 0) != nil {}
    #expect(state.pending(at: 0).count == 1002)
    state.add(8)
    while case .offer(let offer) = state.next(at: 0) {
      state.finish(offer.number, as: offer.element == "stays" ? .failed : .succeeded)
    }
    #expect(state.pending(at: 0) == ["stays"])
    #expect(state.retained.gapCount <= 64)
  }

  @Test func `a reached limit does not cause a scan of all retained events`() {
    var state = EventChannel.OffersState<Int, Int>()
    for number in 1...100_000 {
      let time: Duration? = number % 3 == 0 ? nil : .nanoseconds(15_000 + number % 7 * 1000)
      let persistence = EventPersistence.persistent(.neverClear, limit: 20_000, timeToLive: time)
      _ = state.post(number, persistence, at: Nanoseconds(number))
      while state.next(at: Nanoseconds(number)) != nil {}
    }
    #expect(state.pending(at: 100_000).count <= 20_000)
    #expect(state.pending(at: 100_000).suffix(14_000) == Array(86_001...100_000))
    #expect(state.retained.deadlineCount <= 60_000)
    state.removePending()
    #expect(state.retained.deadlineCount == 0)
  }

  @Test(arguments: 1...20)
  func `random limits and times retain the same events as a full scan`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var state = EventChannel.OffersState<Int, Int>()
    var expected: [(number: Int, deadline: Nanoseconds)] = []
    var now: Nanoseconds = 0
    for number in 1...1000 {
      now += .random(in: 0...3, using: &random)
      let time: Nanoseconds? =
        Bool.random(using: &random) ? .random(in: -5...90, using: &random) : nil
      let limit: Int? =
        Int.random(in: 0...2, using: &random) > 0 ? .random(in: 5...40, using: &random) : nil
      let persistence = EventPersistence.persistent(
        .neverClear,
        limit: limit,
        timeToLive: time.map { .nanoseconds($0) }
      )
      _ = state.post(number, persistence, at: now)
      while state.next(at: now) != nil {}
      expected.append((number, time.map { now + $0 } ?? .max))
      expected.removeAll { $0.deadline <= now }
      if let limit { expected.removeFirst(max(expected.count - limit, 0)) }
      if Int.random(in: 0..<4, using: &random) == 0 {
        #expect(state.pending(at: now) == expected.map(\.number))
      }
      #expect(state.retained.gapCount <= expected.count + 32)
      #expect(state.retained.deadlineCount <= 2 * expected.count + 32)
    }
  }
}
