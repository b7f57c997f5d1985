import Plexus

/// A model of a cached value with requests, live subscriptions and failing fetches, one event after the other.
///
/// Everything that begins is given a moment. Only the order of moments is ever used.
struct LiveHistoryModel {
  struct Member: Equatable {
    var isWhenStale = false
    var interval: Int?
    var hasSignals = false
    var start = 0
  }

  private struct Fetch {
    let number: Int
    let moment: Int
    var needsNoObserver = false
    var callers: Set<Int> = []
  }

  static let timeToLive = 40

  private(set) var now = 0
  private(set) var fetches = 0
  private(set) var failures = 0
  private(set) var hits = 0
  private(set) var misses = 0
  private(set) var joins = 0
  private(set) var cachedValue: Int?
  /// The fetches that were cancelled.
  private(set) var cancelled: Set<Int> = []
  private(set) var members: [Int: Member] = [:]
  private(set) var results: [(caller: Int, name: String)] = []
  private let cancelsUnobserved: Bool
  private let failureTimeToLive: Int
  private var moment = 0
  private var valueMoment = 0
  private var deadline = 0
  private var rememberedUntil: Int?
  private var running: Fetch?
  private var queued: (callers: Set<Int>, wasLeft: Bool)?
  private var detached: [Fetch] = []
  private var lastRefresh = 0
  private var stores = 0
  /// Whether live subscriptions wait until the value is requested.
  private var isAtRest = false
  private var awaitedDeadline: Int?
  private var tick: Int?

  init(cancelsUnobserved: Bool, failureTimeToLive: Int) {
    self.cancelsUnobserved = cancelsUnobserved
    self.failureTimeToLive = failureTimeToLive
  }

  // MARK: - Observations

  /// The fetches in flight.
  var flying: [Int] { (running.map { [$0.number] } ?? []) + detached.map(\.number) }

  /// Whether a fetch is the current one.
  func isRunning(_ number: Int) -> Bool { running?.number == number }

  /// Whether the end of a fetch can be observed: by a state, or by its callers.
  func isObservable(_ number: Int) -> Bool {
    running?.number == number || detached.contains { $0.number == number && !$0.callers.isEmpty }
  }

  /// The waiting callers.
  var waiting: [Int] {
    ((running?.callers ?? []).union(queued?.callers ?? [])).sorted()
      + detached.flatMap { $0.callers.sorted() }
  }

  /// The time at which the live subscriptions act by themselves.
  var nextWake: Int? {
    guard !isAtRest, !members.isEmpty else { return nil }
    let isAwaited = members.values.contains(where: \.isWhenStale)
    return [isAwaited ? awaitedDeadline : nil, tick].compactMap { $0 }.min()
  }

  var hasQueuedCallers: Bool { queued?.callers.isEmpty == false }

  mutating func takeResults() -> [(caller: Int, name: String)] {
    defer { results = [] }
    return results
  }

  // MARK: - Requests

  mutating func request(caller: Int, insistsOn wish: Int?, isCancelled: Bool) {
    moment += 1
    if let cachedValue, valueMoment > wish ?? 0, isFresh {
      hits += 1
      answer([caller], "\(cachedValue)")
    } else if running == nil, isFailureRemembered {
      misses += 1
      answer([caller], "Broken")
    } else if isCancelled {
      misses += 1
      answer([caller], "CancellationError")
    } else if let current = running {
      joins += 1
      if current.moment > wish ?? 0 || valueMoment > wish ?? 0 {
        running?.callers.insert(caller)
      } else {
        queued?.callers.insert(caller)
      }
    } else {
      misses += 1
      begin([caller])
    }
  }

  private var isFresh: Bool {
    now < deadline
      && (valueMoment > lastRefresh || queued != nil || (running?.moment ?? 0) > lastRefresh)
  }

  private var isFailureRemembered: Bool { rememberedUntil.map { now < $0 } ?? false }

  mutating func refresh() -> Int {
    moment += 1
    let ticket = moment
    lastRefresh = ticket
    if rememberedUntil != nil { rememberedUntil = 0 }
    if running != nil {
      if queued == nil { queued = ([], false) }
    } else if !members.isEmpty, !isAtRest {
      begin([])
    }
    return ticket
  }

  mutating func leave(_ caller: Int) {
    moment += 1
    answer([caller], "CancellationError")
    for index in detached.indices.reversed() where detached[index].callers.remove(caller) != nil {
      if cancelsUnobserved, detached[index].callers.isEmpty {
        cancelled.insert(detached.remove(at: index).number)
      }
    }
    if queued?.callers.remove(caller) != nil, queued?.callers.isEmpty == true {
      queued?.wasLeft = true
    }
    if running?.callers.remove(caller) != nil { abandon() }
  }

  /// Cancels the running fetch if nothing observes it.
  private mutating func abandon() {
    guard cancelsUnobserved, members.isEmpty, let fetch = running, fetch.callers.isEmpty,
      !fetch.needsNoObserver
    else { return }
    cancelled.insert(fetch.number)
    running = nil
    let next = queued
    queued = nil
    if let next, !next.callers.isEmpty { begin(next.callers) }
    note()
  }

  // MARK: - Fetches

  private mutating func begin(_ callers: Set<Int>) {
    moment += 1
    fetches += 1
    running = Fetch(number: fetches, moment: moment, callers: callers)
    note()
  }

  mutating func end(_ number: Int, fails: Bool) {
    moment += 1
    if fails { failures += 1 }
    let name = fails ? "Broken" : "\(number)"
    if let index = detached.firstIndex(where: { $0.number == number }) {
      answer(detached.remove(at: index).callers, name)
      return
    }
    guard let fetch = running else { return }
    running = nil
    if fails {
      rememberedUntil = lastRefresh > fetch.moment ? 0 : now + failureTimeToLive
    } else {
      (cachedValue, valueMoment, deadline) = (number, fetch.moment, now + Self.timeToLive)
      rememberedUntil = nil
    }
    answer(fetch.callers, name)
    note()
    guard let next = queued else { return }
    queued = nil
    if cancelsUnobserved, next.wasLeft, next.callers.isEmpty, members.isEmpty { return }
    begin(next.callers)
    running?.needsNoObserver = next.callers.isEmpty && members.isEmpty
  }

  private mutating func answer(_ callers: Set<Int>, _ name: String) {
    results += callers.map { ($0, name) }
  }

  /// Lets the running fetch end for its callers only.
  private mutating func detachRunning() {
    guard let fetch = running else { return }
    running = nil
    if cancelsUnobserved, fetch.callers.isEmpty {
      cancelled.insert(fetch.number)
    } else {
      detached.append(fetch)
    }
  }

  // MARK: - Changes

  /// Stores a value, and returns it.
  mutating func store() -> Int {
    moment += 1
    stores += 1
    answer((running?.callers ?? []).union(queued?.callers ?? []), "\(-stores)")
    running?.callers = []
    queued = nil
    detachRunning()
    (cachedValue, valueMoment, deadline) = (-stores, moment, now + Self.timeToLive)
    rememberedUntil = nil
    note()
    return -stores
  }

  mutating func clear(isSignedOut: Bool) {
    moment += 1
    let callers = queued?.callers ?? []
    queued = nil
    detachRunning()
    forgetValue()
    if !callers.isEmpty {
      fetches += 1
      detached.append(Fetch(number: fetches, moment: moment, callers: callers))
    }
    startAgain(isSignedOut: isSignedOut)
  }

  mutating func clearMemory() {
    moment += 1
    forgetValue()
    startAgain(isSignedOut: false)
  }

  private mutating func forgetValue() {
    (cachedValue, rememberedUntil, deadline, valueMoment) = (nil, nil, 0, 0)
  }

  private mutating func startAgain(isSignedOut: Bool) {
    guard !members.isEmpty else { return }
    awaitedDeadline = nil
    if isSignedOut { isAtRest = true }
    if running != nil {
      note()
    } else if !isAtRest {
      begin([])
    }
  }

  // MARK: - Live subscriptions

  mutating func join(_ id: Int, _ new: Member) {
    moment += 1
    var new = new
    new.start = now
    if !members.values.contains(where: \.isWhenStale) { awaitedDeadline = nil }
    members[id] = new
    isAtRest = false
    note()
    scheduleTick()
    let isStale = new.isWhenStale && (now >= deadline || valueMoment < lastRefresh)
    guard running == nil, cachedValue == nil || isStale, !isFailureRemembered else { return }
    begin([])
  }

  mutating func endMember(_ id: Int) {
    moment += 1
    members[id] = nil
    guard members.isEmpty else { return scheduleTick() }
    (awaitedDeadline, tick) = (nil, nil)
    abandon()
  }

  mutating func signal() {
    moment += 1
    guard !members.isEmpty else { return }
    wakeUp()
    if running == nil { begin([]) }
  }

  mutating func advance(by seconds: Int) {
    let wake = nextWake
    now += seconds
    guard let wake, now >= wake else { return }
    moment += 1
    let isTick = tick.map { now >= $0 } ?? false
    if isTick { scheduleTick() }
    var isDue = isTick
    if let awaited = awaitedDeadline, now >= awaited {
      awaitedDeadline = nil
      let isStale = cachedValue != nil && rememberedUntil == nil && now >= deadline
      if isStale, members.values.contains(where: \.isWhenStale) { isDue = true }
    }
    if isDue, running == nil { begin([]) }
  }

  /// Tells the live subscriptions about the value.
  private mutating func note() {
    guard !members.isEmpty else { return }
    if cachedValue != nil || running != nil { wakeUp() }
    let isAwaited = deadline > now || deadline == awaitedDeadline
    let canWait = cachedValue != nil && rememberedUntil == nil && isAwaited
    awaitedDeadline = canWait ? deadline : nil
  }

  private mutating func wakeUp() {
    guard isAtRest else { return }
    isAtRest = false
    scheduleTick()
  }

  private mutating func scheduleTick() {
    let shortest = members.values.filter { $0.interval != nil }
      .min { ($0.interval ?? 0, $0.start) < ($1.interval ?? 0, $1.start) }
    tick = shortest.flatMap { member in
      member.interval.map { member.start + ((now - member.start) / $0 + 1) * $0 }
    }
  }
}
