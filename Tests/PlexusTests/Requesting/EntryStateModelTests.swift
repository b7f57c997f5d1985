import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Every sequence of events of a key` {
  @Test(.guarantee(.callersAgreeWithASequentialModel))
  func `every sequence of events of a key keeps every promise`() throws {
    try walk(World(), events: World.Event.common, depth: 5)
  }

  @Test
  func `the state of a key keeps every promise with soft answers, idle values and early renewals`()
    throws
  {
    try walk(
      World(),
      events: [
        .request, .leave, .succeed, .fail, .refresh, .update, .softAnswer, .idle, .advance,
      ],
      depth: 6
    )
  }

  @Test func `the state of a key keeps every promise with refreshes and endings in greater depth`()
    throws
  {
    try walk(
      World(),
      events: [.request, .insist, .refresh, .succeed, .fail, .advance],
      depth: 7
    )
  }

  @Test(.guarantee(.droppedKeysDoNotFillABatch))
  func `the state of a key keeps every promise with flights that begin later than launched`() throws
  {
    try walk(
      World(isDelayed: true),
      events: [.request, .insist, .refresh, .depart, .succeed, .fail, .store, .update, .clear],
      depth: 6
    )
  }
}

/// The state of a key, and the belief of an observer that sees only its effects.
private struct World: ModelWorld {
  enum Event: CaseIterable {
    case request, insist, leave, succeed, pass, fail, giveUp, lateResult
    case depart
    case refresh, store, update, clear, clearMemory, advance
    case softAnswer, idle

    static var common: [Event] { allCases.filter { $0 != .softAnswer && $0 != .idle } }
  }

  /// A flight, as seen by an observer.
  private struct FlightBelieved {
    let id: Flight
    /// The time at which it started, in the order of all events.
    var beganAt: Int
    var isInBackground: Bool
  }

  private static let timeToLive: Nanoseconds = 3
  private static let staleTime: Nanoseconds = 1
  private static let memory: Nanoseconds = 2
  private static let refreshAhead: Nanoseconds = 2

  private(set) var history: [Event] = []
  private(set) var brokenPromise: String?
  private var state = EntryUnderTest()
  private var now: Nanoseconds = 0

  private let source: Flight.Source?

  /// - Parameter isDelayed: Whether flights start some time after they were launched.
  init(isDelayed: Bool = false) {
    source =
      isDelayed
      ? Flight.Source(id: nil, type: Int.self, namesKeys: true, delaysFlights: true) : nil
  }

  private func makeFlight() -> Flight { Flight(source: source) }

  // The model. The value is the time at which its fetch, store or update started.
  private var value: Int?
  private var deadline: Nanoseconds = .min
  private var running: FlightBelieved?
  private var queued: Flight?
  private var invalidate: Flight?
  private var rememberedUntil: Nanoseconds = .min
  private var renewsFrom: Nanoseconds = .min
  private var moment = 0
  private var refreshes: [(ticket: RefreshTicket, moment: Int)] = []

  /// Performs an event.
  ///
  /// - Returns: Whether it is possible now.
  mutating func apply(_ event: Event) -> Bool {
    history.append(event)
    moment += 1
    switch event {
    case .request: request(insisting: false)
    case .insist:
      guard !refreshes.isEmpty else { return false }
      request(insisting: true)
    case .leave, .succeed, .pass, .fail, .giveUp:
      guard let running, running.beganAt < .max else { return false }
      end(running, by: event)
    case .depart:
      guard running?.beganAt == .max else { return false }
      state.depart()
      running?.beganAt = moment
    case .lateResult:
      guard let invalidate else { return false }
      let effects = state.succeed(invalidate, with: -1, lifetime: lifetime, at: now)
      expect(effects == .init(), "a flight that was cut off had an effect")
    case .refresh: refresh()
    case .store: store()
    case .update:
      guard value != nil else { return false }
      update()
    case .clear: clear()
    case .clearMemory: clearMemory()
    case .advance: now += 1
    case .softAnswer:
      // A caller that could use a stale value is answered, and leaves.
      guard value != nil, let running, running.beganAt < .max else { return false }
      state.state.keepRunning()
      self.running?.isInBackground = true
    case .idle:
      guard value != nil else { return false }
      state.state.expire(at: now)
      deadline = min(deadline, now)
    }
    compare()
    return true
  }

  /// The time at which a flight starts that is launched now, which is later if it has to be scheduled.
  private var beginning: Int { source == nil ? moment : .max }

  private var lifetime: EntryState.Lifetime { .init(duration: Self.timeToLive) }

  private mutating func expect(_ condition: Bool, _ promise: String) {
    if !condition, brokenPromise == nil { brokenPromise = promise }
  }

  private func isServed(_ refresh: Int, by beginning: Int?) -> Bool {
    beginning.map { $0 > refresh } ?? false
  }

  private mutating func request(insisting: Bool) {
    let next = makeFlight()
    let wish = insisting ? refreshes[refreshes.count / 2] : nil
    let effects = state.request(
      ticket: wish?.ticket ?? .none,
      at: now,
      staleTime: Self.staleTime,
      refreshAhead: Self.refreshAhead,
      next: next
    )
    let lastRefresh = refreshes.last?.moment ?? -1
    let isUnserved = value != nil && !isServed(lastRefresh, by: value)
    let isBeingServed = queued != nil || isServed(lastRefresh, by: running?.beganAt)
    let satisfiesWish = wish.map { isServed($0.moment, by: value) } ?? true
    let mayUseValue = value != nil && satisfiesWish && (!isUnserved || isBeingServed)

    switch effects.answer {
    case .fresh:
      expect(mayUseValue && now < deadline, "a value was taken for fresh")
      let isDue =
        now >= deadline - Self.refreshAhead && now >= max(renewsFrom, rememberedUntil)
      expect(effects.startsFlight == (running == nil && isDue), "a value is renewed ahead once")
    case .stale:
      expect(mayUseValue, "a stale value was handed out that must not be")
      expect(now >= deadline && now < deadline + Self.staleTime, "a value was taken for stale")
      let mayBegin = running == nil && now >= rememberedUntil
      expect(effects.startsFlight == mayBegin, "a stale value is renewed by one flight")
    case .failure:
      expect(running == nil && now < rememberedUntil, "a failure was remembered too long")
      expect(!(mayUseValue && now < deadline), "a failure hid a fresh value")
    case .waits(let id):
      expect(!(mayUseValue && now < deadline + Self.staleTime), "a request waits for nothing")
      if id == running?.id {
        expect(!effects.startsFlight, "a flight began twice")
        let serves = wish.map { isServed($0.moment, by: running?.beganAt) || satisfiesWish } ?? true
        expect(serves, "a request waits for a flight that began too early")
      } else if id == queued {
        expect(wish != nil, "a plain request waits for the queue")
        expect(!isServed(wish?.moment ?? -1, by: running?.beganAt), "a request waits too long")
      } else {
        expect(id == next && effects.startsFlight, "a request waits for a flight that is not there")
        expect(now >= rememberedUntil, "a remembered failure was forgotten")
      }
    case .refused:
      expect(false, "a request was refused")
    }
    if effects.startsFlight {
      expect(running == nil, "two flights at once")
      let isAnswered = effects.answer == .stale || effects.answer == .fresh
      running = FlightBelieved(id: next, beganAt: beginning, isInBackground: isAnswered)
    }
  }

  private mutating func end(_ flight: FlightBelieved, by event: Event) {
    let effects: EntryUnderTest.EndEffects
    switch event {
    case .succeed:
      effects = state.succeed(flight.id, with: flight.beganAt, lifetime: lifetime, at: now)
      value = flight.beganAt
      renewsFrom = .min
      deadline = now + Self.timeToLive
      rememberedUntil = .min
    case .pass:
      effects = state.pass(flight.id)
      renewsFrom = .min
      value = nil
      deadline = .min
      rememberedUntil = .min
    case .fail:
      effects = state.fail(flight.id, with: CancellationError(), memory: Self.memory, at: now)
      rememberedUntil = queued == nil ? now + Self.memory : .min
      renewsFrom = value != nil && now < deadline ? now + (deadline - now) / 2 : .min
    case .leave:
      effects = state.abandon(flight.id)
      if flight.isInBackground {
        expect(effects == .init(), "a flight in the background was abandoned")
        return
      }
    default:
      effects = state.giveUp(flight.id)
    }
    expect(effects.isCurrent, "the end of the flight under way had no effect")
    expect(effects.startsFlight == queued, "the queued flight does not begin after the other one")
    running = queued.map { FlightBelieved(id: $0, beganAt: beginning, isInBackground: true) }
    queued = nil
  }

  private mutating func refresh() {
    let ticket = RefreshTicket(rawValue: UInt64(refreshes.count + 1))
    let next = makeFlight()
    let isQueued = state.refresh(ticket, next: next)
    refreshes.append((ticket, moment))
    rememberedUntil = .min
    let isTooEarly = running.map { $0.beganAt < .max } ?? false
    expect(isQueued == (isTooEarly && queued == nil), "a refresh queues one flight")
    guard isQueued else { return }
    queued = next
  }

  private mutating func store() {
    let effects = state.store(moment, lifetime: lifetime, at: now)
    expect(effects == .init(cutsOff: running?.id, drops: queued), "a store cuts flights off")
    forget()
    value = moment
    deadline = now + Self.timeToLive
  }

  private mutating func update() {
    let effects = state.update(value ?? 0)
    expect(effects == .init(cutsOff: running?.id, drops: queued), "an update cuts flights off")
    invalidate = running?.id ?? invalidate
    running = nil
    queued = nil
    rememberedUntil = .min
    renewsFrom = .min
  }

  private mutating func clear() {
    let effects = state.cut
    expect(effects == .init(cutsOff: running?.id, drops: queued), "a clear cuts flights off")
    state = EntryUnderTest()
    forget()
  }

  private mutating func clearMemory() {
    state.clearMemory()
    value = nil
    deadline = .min
    rememberedUntil = .min
    renewsFrom = .min
  }

  private mutating func forget() {
    invalidate = running?.id ?? invalidate
    running = nil
    queued = nil
    value = nil
    deadline = .min
    rememberedUntil = .min
    renewsFrom = .min
  }

  private mutating func compare() {
    expect(state.value == value, "the value is another one than believed")
    expect(value == nil || state.deadline == deadline, "the deadline is another one than believed")
    expect(state.running == running?.id, "another flight is under way than believed")
    expect(state.queued == queued, "another flight is queued than believed")
    expect(!state.isFresh(at: now) || (value != nil && now < deadline), "nothing was fresh")
    let isUnserved = value != nil && !isServed(refreshes.last?.moment ?? -1, by: value)
    if running == nil { expect(!(state.isFresh(at: now) && isUnserved), "a refresh was forgotten") }
    if running == nil, value == nil, now >= rememberedUntil {
      expect(state.isForgettable(at: now), "something is kept for no reason")
    } else {
      expect(!state.isForgettable(at: now), "something would be forgotten")
    }
  }
}
