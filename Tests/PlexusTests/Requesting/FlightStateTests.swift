import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of a key` {
  typealias State = FlightState<Int>

  private func flight(_ number: UInt64) -> FlightID { FlightID(rawValue: number) }
  private func ticket(_ number: UInt64) -> RefreshTicket { RefreshTicket(rawValue: number) }

  /// A state with the value 1, stored at 0 and fresh until 60.
  private func loaded(validator: String? = nil, own: Nanoseconds? = nil) -> State {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    let lifetime = State.Lifetime(duration: 60, terms: ValueTerms(timeToLive: own))
    _ = state.succeed(flight(1), with: 1, validator: validator, lifetime: lifetime, at: 0)
    return state
  }

  @Test func `a first request begins a flight and a second one joins it`() {
    var state = State()
    let first = state.request(at: 0, staleTime: 0, next: flight(1))
    #expect(first == .init(answer: .waits(flight(1)), startsFlight: true))
    let second = state.request(at: 0, staleTime: 0, next: flight(2))
    #expect(second == .init(answer: .waits(flight(1))))
    #expect(state.running == flight(1))
    #expect(state.onlyHope == flight(1))
  }

  @Test func `who may not wait begins nothing`() {
    var state = State()
    let refused = state.request(at: 0, staleTime: 0, next: flight(1), mayWait: false)
    #expect(refused == .init(answer: .refused))
    #expect(state.isEmpty)
    var stale = loaded()
    let answer = stale.request(at: 70, staleTime: 60, next: flight(2), mayWait: false)
    #expect(answer == .init(answer: .stale))
    #expect(stale.running == nil)
  }

  @Test(arguments: [(59, true), (60, false), (61, false)])
  func `a value is fresh up to its deadline and not at it`(now: Nanoseconds, isFresh: Bool) {
    var state = loaded()
    #expect(state.isFresh(at: now) == isFresh)
    let answer = state.request(at: now, staleTime: 0, next: flight(2)).answer
    #expect(answer == (isFresh ? .fresh : .waits(flight(2))))
  }

  @Test(arguments: [(59, .fresh), (60, .stale), (89, .stale)] as [(Nanoseconds, State.Answer)])
  func `a value is handed out stale until its stale time is over`(
    now: Nanoseconds,
    answer: State.Answer
  ) {
    var state = loaded()
    let effects = state.request(at: now, staleTime: 30, next: flight(2))
    #expect(effects == .init(answer: answer, startsFlight: answer == .stale))
    let again = state.request(at: now, staleTime: 30, next: flight(3))
    #expect(again == .init(answer: answer))
  }

  @Test func `no stale time is too long or too short`() {
    var state = loaded()
    #expect(state.request(at: 61, staleTime: .max, next: flight(2)).answer == .stale)
    var other = loaded()
    #expect(other.request(at: 60, staleTime: .min, next: flight(2)).startsFlight == true)
    #expect(loaded().deadline == 60)
  }

  @Test func `a deadline beyond all times is none`() {
    var state = State()
    _ = state.store(1, lifetime: .init(duration: .max), at: 1_000)
    #expect(state.isFresh(at: .max - 1))
    _ = state.store(1, lifetime: .init(duration: -5), at: 1_000)
    #expect(!state.isFresh(at: 1_000))
    #expect(state.deadline == 1_000)
  }

  @Test func `at rest a value needs no details`() {
    #expect(MemoryLayout<State>.size <= 48)
    let state = loaded()
    #expect(!state.isEmpty)
    #expect(state.details.isEmpty)
    #expect(loaded(validator: "tag").details.validator == "tag")
    #expect(loaded(own: 60).details.terms.timeToLive == 60)
  }

  @Test func `a refresh at rest is served by the next request`() {
    var state = loaded()
    #expect(state.refresh(ticket(5), next: flight(2)) == false)
    #expect(!state.isFresh(at: 1))
    #expect(state.value == 1)
    let effects = state.request(at: 1, staleTime: 100, next: flight(2))
    #expect(effects == .init(answer: .waits(flight(2)), startsFlight: true))
    #expect(state.isFresh(at: 1), "While it is being served others get the old value")
    let insisting = state.request(ticket: ticket(5), at: 1, staleTime: 0, next: flight(3))
    #expect(insisting.answer == .waits(flight(2)))
    let earlier = state.request(ticket: ticket(4), at: 1, staleTime: 0, next: flight(3))
    #expect(earlier.answer == .fresh)
  }

  @Test func `a refresh without a value asks for nothing`() {
    var state = State()
    #expect(state.refresh(ticket(1), next: flight(1)) == false)
    #expect(state.isEmpty)
  }

  @Test func `refreshes during a flight queue one more`() {
    var state = loaded()
    _ = state.refresh(ticket(1), next: flight(2))
    _ = state.request(at: 1, staleTime: 0, next: flight(2))
    #expect(state.refresh(ticket(3), next: flight(3)) == true)
    #expect(state.refresh(ticket(4), next: flight(4)) == false)
    #expect(state.queued == flight(3))
    let old = state.request(ticket: ticket(2), at: 1, staleTime: 0, next: flight(5)).answer
    #expect(old == .waits(flight(2)))
    let new = state.request(ticket: ticket(3), at: 1, staleTime: 0, next: flight(5)).answer
    #expect(new == .waits(flight(3)))

    let end = state.succeed(flight(2), with: 2, lifetime: .init(duration: 60), at: 2)
    #expect(end == .init(isCurrent: true, startsFlight: flight(3)))
    #expect(state.isFresh(at: 2))
    #expect(state.value == 2)
    let late = state.request(ticket: ticket(4), at: 2, staleTime: 0, next: flight(5)).answer
    #expect(late == .waits(flight(3)))
    _ = state.succeed(flight(3), with: 3, lifetime: .init(duration: 60), at: 3)
    #expect(state.request(ticket: ticket(4), at: 3, staleTime: 0, next: flight(5)).answer == .fresh)
  }

  @Test func `refreshes that come in another order than they were drawn lose none`() {
    var state = loaded()
    _ = state.refresh(ticket(6), next: flight(2))
    _ = state.refresh(ticket(5), next: flight(2))
    _ = state.request(at: 1, staleTime: 0, next: flight(2))
    let insisting = state.request(ticket: ticket(5), at: 1, staleTime: 0, next: flight(3)).answer
    #expect(insisting == .waits(flight(2)))
  }

  @Test func `a refresh that failed is still to be served`() {
    var state = loaded()
    _ = state.refresh(ticket(1), next: flight(2))
    _ = state.request(at: 1, staleTime: 0, next: flight(2))
    let end = state.fail(flight(2), with: CancellationError(), at: 2)
    #expect(end == .init(isCurrent: true))
    #expect(state.value == 1)
    #expect(state.deadline == 60)
    #expect(!state.isFresh(at: 2))
    #expect(state.request(at: 2, staleTime: 0, next: flight(3)).startsFlight == true)
  }

  @Test(
    arguments: [(11, .failure), (12, .waits(FlightID(rawValue: 2)))]
      as [(Nanoseconds, State.Answer)]
  )
  func `a failure is remembered for so long and not longer`(
    now: Nanoseconds,
    answer: State.Answer
  ) {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    _ = state.fail(flight(1), with: CancellationError(), memory: 10, at: 2)
    #expect(!state.isForgettable(at: 11))
    #expect(state.isForgettable(at: 12))
    #expect(state.request(at: now, staleTime: 0, next: flight(2)).answer == answer)
  }

  @Test func `a refresh ends the memory of a failure, and one in time keeps it from beginning`() {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    _ = state.fail(flight(1), with: CancellationError(), memory: 10, at: 2)
    _ = state.refresh(ticket(1), next: flight(2))
    #expect(state.request(at: 3, staleTime: 0, next: flight(2)).startsFlight == true)
    #expect(state.refresh(ticket(2), next: flight(3)) == true)
    let end = state.fail(flight(2), with: CancellationError(), memory: 10, at: 4)
    #expect(end == .init(isCurrent: true, startsFlight: flight(3)))
    #expect(state.details.failure?.until == .min)
  }

  @Test func `the result of a flight that was cut off changes nothing`() {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    #expect(state.store(7, lifetime: .init(duration: 60), at: 1) == .init(cutsOff: flight(1)))
    #expect(state.succeed(flight(1), with: 1, lifetime: .init(duration: 60), at: 2) == .init())
    #expect(state.fail(flight(1), with: CancellationError(), memory: 9, at: 2) == .init())
    #expect(state.giveUp(flight(1)) == .init())
    #expect(state.abandon(flight(1)) == .init())
    #expect(state.value == 7)
    #expect(state.details.isEmpty)
  }

  @Test func `a store drops what is queued and satisfies every refresh`() {
    var state = loaded()
    _ = state.refresh(ticket(1), next: flight(2))
    _ = state.request(at: 1, staleTime: 0, next: flight(2))
    _ = state.refresh(ticket(2), next: flight(3))
    let effects = state.store(7, lifetime: .init(duration: 60), at: 2)
    #expect(effects == .init(cutsOff: flight(2), drops: flight(3)))
    let answer = state.request(ticket: ticket(2), at: 2, staleTime: 0, next: flight(4)).answer
    #expect(answer == .fresh)
  }

  @Test func `an abandoned flight leaves everything as it was`() {
    var state = loaded()
    _ = state.request(at: 60, staleTime: 0, next: flight(2))
    #expect(state.abandon(flight(2)) == .init(isCurrent: true))
    #expect(state.value == 1)
    #expect(state.deadline == 60)
    #expect(state.running == nil)
    _ = state.refresh(ticket(1), next: flight(3))
    _ = state.request(at: 1, staleTime: 0, next: flight(3))
    #expect(state.abandon(flight(3)) == .init(isCurrent: true))
    #expect(!state.isFresh(at: 1), "The refresh is still to be served")
  }

  @Test func `a flight in the background is not abandoned`() {
    var state = loaded()
    _ = state.request(at: 60, staleTime: 30, next: flight(2))
    #expect(state.abandon(flight(2)) == .init())
    #expect(state.running == flight(2))
    #expect(state.giveUp(flight(2)) == .init(isCurrent: true))
  }

  @Test func `clearing memory keeps the flight and its queue`() {
    var state = loaded(validator: "tag")
    _ = state.refresh(ticket(1), next: flight(2))
    _ = state.request(at: 1, staleTime: 0, next: flight(2))
    _ = state.refresh(ticket(2), next: flight(3))
    state.clearMemory()
    #expect(state.value == nil)
    #expect(state.details.validator == nil)
    #expect(state.running == flight(2))
    #expect(state.fail(flight(2), with: CancellationError(), at: 3).startsFlight == flight(3))
    _ = state.giveUp(flight(3))
    #expect(state.unserved.isNone, "Without a value there is nothing to refresh")
    var idle = loaded()
    idle.clearMemory()
    #expect(idle.isEmpty)
  }

  @Test func `a value that is not to be kept leaves nothing but what is queued`() {
    var state = loaded(validator: "tag", own: 60)
    _ = state.request(at: 60, staleTime: 0, next: flight(2))
    #expect(state.pass(flight(1)) == .init(), "Another flight is under way")
    #expect(state.pass(flight(2)) == .init(isCurrent: true))
    #expect(state.isEmpty)
    _ = state.request(at: 60, staleTime: 0, next: flight(3))
    _ = state.refresh(ticket(1), next: flight(4))
    #expect(state.pass(flight(3)) == .init(isCurrent: true, startsFlight: flight(4)))
    let insisting = state.request(ticket: ticket(1), at: 60, staleTime: 0, next: flight(5)).answer
    #expect(insisting == .waits(flight(4)))
    #expect(state.servesRefresh, "A stored copy will not do")
  }

  @Test(arguments: [(false, 79, true), (false, 80, false), (true, 60, false), (true, 59, true)])
  func `a value is handed out while it is renewed for its own time, if it may be`(
    requiresRevalidation: Bool,
    now: Nanoseconds,
    isUsed: Bool
  ) {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    var lifetime = State.Lifetime(duration: 60)
    lifetime.terms.staleWhileRevalidate = 20
    lifetime.terms.requiresRevalidation = requiresRevalidation
    _ = state.succeed(flight(1), with: 1, lifetime: lifetime, at: 0)
    let answer = state.request(at: now, staleTime: 1_000, next: flight(2)).answer
    #expect((answer == .stale || answer == .fresh) == isUsed)
    #expect((answer == .waits(flight(2))) != isUsed)
  }

  @Test func `a copy that stands in is asked about at once, and stands in for its own time`() {
    var state = State()
    _ = state.request(at: 100, staleTime: 0, next: flight(1))
    var copy = StoredCopy(value: 1, storedAt: 50, deadline: 110)
    copy.terms.timeToLive = 60
    copy.terms.staleIfError = 5
    state.standIn(flight(1), copy, at: 100)
    let grounds = StandInGrounds(isOriginFailure: true)
    _ = state.fail(flight(1), with: CancellationError(), grounds: grounds, at: 100)
    #expect(!state.isFresh(at: 100))
    #expect(state.copy?.mayStandIn(grounds, at: 114) == true)
    #expect(state.copy?.mayStandIn(grounds, at: 115) == false)
    #expect(state.copy?.mayStandIn(StandInGrounds(policyAllows: true), at: 115) == true)
    #expect(state.copy?.mayStandIn(StandInGrounds(), at: 101) == false)
  }
}
