import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of a key` {
  typealias State = EntryUnderTest

  private static let flights = (0..<8).map { _ in Flight() }
  private func flight(_ number: Int) -> Flight { Self.flights[number] }
  private func ticket(_ number: UInt64) -> RefreshTicket { RefreshTicket(rawValue: number) }

  /// A state with the value 1, stored at 0 and fresh until 60.
  private func loaded(validator: String? = nil, own: Nanoseconds? = nil) -> State {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    let lifetime = EntryState.Lifetime(duration: 60, terms: ValueTerms(timeToLive: own))
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
  }

  @Test func `a caller that must not wait starts nothing`() {
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

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a value is kept until all its times are over`() {
    func keptUntil(
      _ terms: ValueTerms = ValueTerms(),
      staleTime: Nanoseconds = 0,
      idle: Nanoseconds? = nil,
      after change: (inout EntryState) -> Void = { _ in }
    ) -> Nanoseconds {
      var state = EntryState()
      state.begin(flight(1), inBackground: false)
      _ = state.succeed(lifetime: .init(duration: 60, terms: terms), at: 100)
      change(&state)
      return state.keptUntil(staleTimeToLive: 30, staleTime: staleTime, idleDeadline: idle)
    }
    #expect(keptUntil() == 190)
    #expect(keptUntil(staleTime: 20) == 190)
    #expect(keptUntil(staleTime: 40) == 200)
    #expect(keptUntil(idle: 120) == 150)
    #expect(keptUntil(idle: 500) == 190)
    var terms = ValueTerms()
    terms.staleIfError = 50
    #expect(keptUntil(terms) == 210)
    terms.staleWhileRevalidate = 70
    #expect(keptUntil(terms) == 230)
    terms.requiresRevalidation = true
    #expect(keptUntil(terms, staleTime: 40) == 190)
    // A value that possibly has changed elsewhere is kept from its storage on.
    #expect(keptUntil { $0.distrust() } == 130)
    terms = ValueTerms()
    terms.staleIfError = .max
    #expect(keptUntil(terms) == .max)
    // A copy that is only a fallback is kept by its own deadline.
    let copy = ValueOutcome(1)
    copy.storedAt = 90
    copy.deadline = 400
    #expect(keptUntil { $0.fallBack(to: copy, at: 120) } == 430)
  }

  @Test(arguments: [(59, .fresh), (60, .stale), (89, .stale)] as [(Nanoseconds, State.Answer)])
  func `a value is returned stale until its stale time is over`(
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

  @Test func `a deadline beyond all times is no deadline`() {
    var state = State()
    _ = state.store(1, lifetime: .init(duration: .max), at: 1_000)
    #expect(state.isFresh(at: .max - 1))
    _ = state.store(1, lifetime: .init(duration: -5), at: 1_000)
    #expect(!state.isFresh(at: 1_000))
    #expect(state.deadline == 1_000)
  }

  @Test func `a value at rest needs no details`() {
    #expect(MemoryLayout<EntryState>.size <= 32)
    let state = loaded()
    #expect(!state.isEmpty)
    #expect(state.state.details.isEmpty)
    #expect(loaded(validator: "tag").state.details.validator == "tag")
    #expect(loaded(own: 60).state.details.terms.timeToLive == 60)
  }

  @Test func `a flight with callers needs no details, until there is more to know`() {
    var state = EntryState()
    state.begin(flight(1), inBackground: false)
    guard case .running(let running) = state.box else {
      Issue.record("The details of a usual miss take an allocation")
      return
    }
    #expect(running === flight(1))
    let needsFlight = state.refresh(ticket(5), hasValue: false)
    #expect(needsFlight)
    state.enqueue(flight(2))
    #expect(state.running === flight(1))
    #expect(state.queued === flight(2))
    var other = EntryState()
    other.begin(flight(1), inBackground: true)
    #expect(other.isInBackground)
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

  @Test func `a refresh without a value fetches nothing`() {
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
    arguments: [(11, .failure), (12, .waits(flights[2]))]
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
    #expect(state.state.details.failure?.until == .min)
  }

  @Test func `the result of a detached flight changes nothing`() {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    #expect(state.store(7, lifetime: .init(duration: 60), at: 1) == .init(cutsOff: flight(1)))
    #expect(state.succeed(flight(1), with: 1, lifetime: .init(duration: 60), at: 2) == .init())
    #expect(state.fail(flight(1), with: CancellationError(), memory: 9, at: 2) == .init())
    #expect(state.giveUp(flight(1)) == .init())
    #expect(state.abandon(flight(1)) == .init())
    #expect(state.value == 7)
    #expect(state.state.details.isEmpty)
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
    #expect(state.state.details.validator == nil)
    #expect(state.running == flight(2))
    #expect(state.fail(flight(2), with: CancellationError(), at: 3).startsFlight == flight(3))
    _ = state.giveUp(flight(3))
    #expect(state.state.unserved.isNone, "Without a value there is nothing to refresh")
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
    #expect(state.state.servesRefresh, "A stored copy will not do")
  }

  @Test(arguments: [(false, 79, true), (false, 80, false), (true, 60, false), (true, 59, true)])
  func `a value is returned while it is renewed for its own time, if it may be`(
    requiresRevalidation: Bool,
    now: Nanoseconds,
    isUsed: Bool
  ) {
    var state = State()
    _ = state.request(at: 0, staleTime: 0, next: flight(1))
    var lifetime = EntryState.Lifetime(duration: 60)
    lifetime.terms.staleWhileRevalidate = 20
    lifetime.terms.requiresRevalidation = requiresRevalidation
    _ = state.succeed(flight(1), with: 1, lifetime: lifetime, at: 0)
    let answer = state.request(at: now, staleTime: 1_000, next: flight(2)).answer
    #expect((answer == .stale || answer == .fresh) == isUsed)
    #expect((answer == .waits(flight(2))) != isUsed)
  }

  @Test func `a stored copy that answers a failed fetch is revalidated at once, for its own time`()
  {
    var state = State()
    _ = state.request(at: 100, staleTime: 0, next: flight(1))
    let copy = ValueOutcome(1)
    copy.storedAt = 50
    copy.deadline = 110
    copy.terms.timeToLive = 60
    copy.terms.staleIfError = 5
    state.value = 1
    state.state.fallBack(to: copy, at: 100)
    var grounds = ValueTerms.FallbackGrounds()
    grounds.isOriginFailure = true
    _ = state.fail(flight(1), with: CancellationError(), grounds: grounds, at: 100)
    #expect(!state.isFresh(at: 100))
    #expect(state.state.allowsFallback(grounds, at: 114))
    #expect(!state.state.allowsFallback(grounds, at: 115))
    #expect(!state.state.allowsFallback(ValueTerms.FallbackGrounds(), at: 101))
    grounds.policyAllows = true
    #expect(state.state.allowsFallback(grounds, at: 115))
    let described = ValueOutcome(1)
    state.state.describe(described)
    #expect(described.deadline == 110)
    #expect(described.storedAt == 50)
    #expect(described.terms.staleIfError == 5)
  }
}

/// The state of a key together with its value, which moves as in a cache.
struct EntryUnderTest {
  enum Answer: Hashable {
    case fresh, stale, failure
    case waits(Flight)
    case refused
  }

  struct RequestEffects: Hashable {
    var answer: Answer
    var startsFlight = false
  }

  struct EndEffects: Hashable {
    var isCurrent = false
    var startsFlight: Flight?
  }

  struct CutEffects: Hashable {
    var cutsOff: Flight?
    var drops: Flight?
  }

  var value: Int?
  var state = EntryState()

  var running: Flight? { state.running }
  var queued: Flight? { state.queued }
  var deadline: Nanoseconds { state.deadline }
  var isEmpty: Bool { value == nil && state.hasNoDetails }
  func isFresh(at now: Nanoseconds) -> Bool { state.isFresh(at: now) }

  func isForgettable(at now: Nanoseconds) -> Bool {
    value == nil && state.isForgettable(at: now)
  }

  mutating func request(
    ticket: RefreshTicket = .none,
    at now: Nanoseconds,
    staleTime: Nanoseconds,
    refreshAhead: Nanoseconds = 0,
    next: Flight,
    mayWait: Bool = true
  ) -> RequestEffects {
    let decision = state.decide(
      hasValue: value != nil,
      ticket: ticket,
      at: now,
      staleTime: staleTime,
      refreshAhead: refreshAhead,
      mayWait: mayWait
    )
    switch decision {
    case .fresh: return RequestEffects(answer: .fresh)
    case .expiring:
      state.begin(next, inBackground: true)
      return RequestEffects(answer: .fresh, startsFlight: true)
    case .stale(let renews):
      if renews { state.begin(next, inBackground: true) }
      return RequestEffects(answer: .stale, startsFlight: renews)
    case .failure: return RequestEffects(answer: .failure)
    case .waits(let flight): return RequestEffects(answer: .waits(flight))
    case .begins:
      state.begin(next, inBackground: false)
      return RequestEffects(answer: .waits(next), startsFlight: true)
    case .refused: return RequestEffects(answer: .refused)
    }
  }

  private mutating func end(
    _ flight: Flight,
    _ body: (inout EntryUnderTest) -> Flight?
  ) -> EndEffects {
    guard state.running == flight else { return EndEffects() }
    return EndEffects(isCurrent: true, startsFlight: body(&self))
  }

  mutating func succeed(
    _ flight: Flight,
    with newValue: Int,
    validator: String? = nil,
    lifetime: EntryState.Lifetime,
    at now: Nanoseconds
  ) -> EndEffects {
    end(flight) { entry in
      entry.value = newValue
      return entry.state.succeed(validator: validator, lifetime: lifetime, at: now)
    }
  }

  mutating func pass(_ flight: Flight) -> EndEffects {
    end(flight) { entry in
      entry.value = nil
      return entry.state.pass()
    }
  }

  mutating func fail(
    _ flight: Flight,
    with error: any Error,
    grounds: ValueTerms.FallbackGrounds = ValueTerms.FallbackGrounds(),
    memory: Nanoseconds = 0,
    at now: Nanoseconds
  ) -> EndEffects {
    end(flight) { entry in
      entry.state.fail(
        with: error,
        grounds: grounds,
        memory: memory,
        hasValue: entry.value != nil,
        at: now
      )
    }
  }

  mutating func giveUp(_ flight: Flight) -> EndEffects {
    end(flight) { $0.state.giveUp(hasValue: $0.value != nil) }
  }

  mutating func abandon(_ flight: Flight) -> EndEffects {
    state.isInBackground ? EndEffects() : giveUp(flight)
  }

  mutating func refresh(_ ticket: RefreshTicket, next: Flight) -> Bool {
    guard state.refresh(ticket, hasValue: value != nil) else { return false }
    state.enqueue(next)
    return true
  }

  mutating func depart() { state.depart() }

  var cut: CutEffects { CutEffects(cutsOff: state.running, drops: state.queued) }

  mutating func store(
    _ newValue: Int,
    lifetime: EntryState.Lifetime,
    at now: Nanoseconds
  ) -> CutEffects {
    let effects = cut
    value = newValue
    state.store(lifetime, at: now)
    return effects
  }

  mutating func update(_ newValue: Int) -> CutEffects {
    let effects = cut
    value = newValue
    state.update()
    return effects
  }

  mutating func clearMemory() {
    value = nil
    state.clearMemory()
  }
}
