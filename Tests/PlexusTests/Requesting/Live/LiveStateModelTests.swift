import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Every sequence of events of live subscriptions` {
  @Test(.guarantee(.clearsCauseLiveFetches))
  func `one live subscription keeps every promise in every sequence of events`()
    throws
  {
    try walk(
      World(members: [World.Member(isWhenStale: true, interval: 3)]),
      events: [.fetchEnds, .fetchFails, .signal, .refresh, .clear, .signOut, .request, .advance],
      depth: 6
    )
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `live subscriptions that come and go keep every promise in every sequence of events`() throws
  {
    try walk(World(members: []), events: World.Event.allCases, depth: 5)
  }
}

/// The state of live subscriptions, and the belief of an observer of the value and of the fetches.
private struct World: ModelWorld {
  enum Event: CaseIterable {
    case joinWhenStale, joinEvery2, joinEvery3, leave
    case fetchEnds, fetchFails, request
    case signal, refresh, clear, signOut, advance
  }

  struct Member {
    let isWhenStale: Bool
    let interval: Nanoseconds?
    var start: Nanoseconds = 0
  }

  private static let timeToLive: Nanoseconds = 2

  private(set) var history: [Event] = []
  private(set) var brokenPromise: String?
  private var state = LiveState()
  private var members: [UInt64: Member] = [:]
  private var lastID: UInt64 = 0
  private var now: Nanoseconds = 0
  private var sight = LiveState.Sight()
  /// The fetch in flight, and its number if it is one of the live subscriptions.
  private var fetch: (number: Int?, isMarked: Bool)?
  private var isAtRest = false

  init(members: [Member]) {
    for member in members { join(isWhenStale: member.isWhenStale, interval: member.interval) }
    history = []
  }

  /// Performs an event.
  ///
  /// - Returns: Whether it is possible now.
  mutating func apply(_ event: Event) -> Bool {
    history.append(event)
    switch event {
    case .joinWhenStale: join(isWhenStale: true, interval: nil)
    case .joinEvery2: join(isWhenStale: false, interval: 2)
    case .joinEvery3: join(isWhenStale: false, interval: 3)
    case .leave:
      guard let first = members.keys.min() else { return false }
      leave(first)
    case .fetchEnds, .fetchFails:
      guard let fetch else { return false }
      end(fetch.number, fails: event == .fetchFails)
    case .request:
      guard fetch == nil, !sight.hasValue || sight.isStale(at: now) || sight.hasFailed else {
        return false
      }
      begin(nil)
      isAtRest = false
      state.note(sight, at: now)
    case .signal: signal()
    case .refresh: refresh()
    case .clear: clear(isSignedOut: false)
    case .signOut: clear(isSignedOut: true)
    case .advance: advance()
    }
    check()
    return true
  }

  private mutating func expect(_ condition: Bool, _ promise: String) {
    if !condition, brokenPromise == nil { brokenPromise = promise }
  }

  private mutating func begin(_ number: Int?) {
    fetch = (number, false)
    sight.isFetching = true
  }

  /// Starts what an event asks for, as the cache does: it joins a fetch in flight.
  private mutating func perform(
    _ effects: LiveState.Effects,
    mustFetch: Bool,
    mayFetch: Bool = false,
    _ event: String
  ) {
    if effects.leavesFetch { expect(members.isEmpty || !sight.isFetching, "a fetch was left") }
    expect(!mustFetch || effects.fetch != nil || fetch?.number != nil, "\(event) fetches nothing")
    guard let new = effects.fetch else { return }
    expect(mustFetch || mayFetch, "\(event) fetches")
    expect(!members.isEmpty, "something is fetched without subscriptions")
    expect(fetch?.number == nil, "two fetches at once")
    // A caller's fetch is joined.
    if fetch != nil { fetch?.number = new.number } else { begin(new.number) }
    expect(state.isRunning(new.number), "a fetch that was started is not the one in flight")
  }

  private mutating func join(isWhenStale: Bool, interval: Nanoseconds?) {
    lastID += 1
    members[lastID] = Member(isWhenStale: isWhenStale, interval: interval, start: now)
    isAtRest = false
    let effects = state.join(
      lastID,
      isWhenStale: isWhenStale,
      interval: interval,
      sight,
      at: now
    )
    let needsValue = !sight.hasValue || isWhenStale && sight.isStale(at: now)
    perform(effects, mustFetch: needsValue, "a subscription")
  }

  private mutating func leave(_ id: UInt64) {
    members[id] = nil
    let effects = state.leave(id, at: now)
    expect(effects.fetch == nil, "leaving fetches")
    expect(
      effects.leavesFetch == (members.isEmpty && fetch?.number != nil),
      "the last subscription leaves its fetch, and no other"
    )
    if effects.leavesFetch { fetch?.number = nil }
  }

  private mutating func end(_ number: Int?, fails: Bool) {
    fetch = nil
    sight.isFetching = false
    sight.isOutdated = false
    sight.hasFailed = fails
    if !fails {
      sight.hasValue = true
      sight.deadline = now + Self.timeToLive
      isAtRest = false
    }
    // The cache reports the change of the value, then the end to the waiting callers.
    state.note(sight, at: now)
    if let number { state.finish(number, sight, at: now) }
  }

  private mutating func signal() {
    let effects = state.signal(sight, at: now)
    if !members.isEmpty { isAtRest = false }
    perform(effects, mustFetch: !members.isEmpty, "a signal")
  }

  private mutating func refresh() {
    if sight.hasValue { sight.isOutdated = true }
    let effects = state.refresh(sight)
    // A fetch in flight is followed by another one of the cache itself.
    perform(effects, mustFetch: !members.isEmpty && !isAtRest && fetch == nil, "a refresh")
  }

  private mutating func clear(isSignedOut: Bool) {
    fetch = nil
    sight = LiveState.Sight()
    if isSignedOut, !members.isEmpty { isAtRest = true }
    let effects = state.clear(isSignedOut: isSignedOut)
    perform(effects, mustFetch: !members.isEmpty && !isAtRest, "a clear")
  }

  private mutating func advance() {
    now += 1
    let isDue = state.nextWake.map { now >= $0 } ?? false
    guard isDue else { return }
    let ticks = members.values.contains { member in
      member.interval.map { (now - member.start) % $0 == 0 } ?? false
    }
    let isStale =
      sight.hasValue && !sight.hasFailed && sight.isStale(at: now)
      && members.values.contains(where: \.isWhenStale)
    let effects = state.wake(sight, at: now)
    perform(effects, mustFetch: isStale && fetch == nil, mayFetch: ticks || isStale, "the time")
  }

  private mutating func check() {
    guard !members.isEmpty, !isAtRest else {
      return expect(state.nextWake == nil, "something wakes at rest")
    }
    let shortest = members.values.compactMap(\.interval).min()
    if let shortest {
      expect(state.nextWake.map { $0 <= now + shortest } ?? false, "an interval is not awaited")
    }
    if members.values.contains(where: \.isWhenStale), sight.hasValue, !sight.hasFailed,
      sight.deadline > now
    {
      expect(state.nextWake.map { $0 <= sight.deadline } ?? false, "a deadline is not awaited")
    }
    expect(state.nextWake.map { $0 > now } ?? true, "a time in the past is awaited")
    let awaitsDeadline = members.values.contains(where: \.isWhenStale) && !sight.hasFailed
    if shortest == nil, !awaitsDeadline || !sight.hasValue {
      expect(state.nextWake == nil, "something is awaited without a reason")
    }
  }
}
