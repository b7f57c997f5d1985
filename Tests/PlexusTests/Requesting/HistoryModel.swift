import Plexus
import TestSupport

/// A model of a cache, one event after the other.
///
/// Everything that begins is given a moment. Only the order of moments is ever used.
struct HistoryModel {
  private struct Fetch {
    let number: Int
    let moment: Int
    var isInBackground: Bool
    var remembersFailure = true
    var callers: [Int] = []
    /// Whether it serves a refresh.
    var servesRefresh = false
  }

  private(set) var now = 0
  private(set) var fetches = 0
  private(set) var states = ["unknown"]
  private(set) var resultCount = 0
  private var newResults: [(caller: Int, name: String)] = []
  private let policy: CachePolicy
  private var moment = 0
  private var value: (content: Int, moment: Int, deadline: Int)?
  private var failure: (error: any Error, until: Int, renewsFrom: Double)?
  private var running: Fetch?
  private var queued: [Int]?
  /// Whether the last caller of the queued fetch has left.
  private var queueWasLeft = false
  private var invalidate: [Fetch] = []
  private var lastRefresh = 0
  /// Whether a refresh is to be served by the next fetch.
  private var isOutdated = false
  private var stores = 0
  private var changes = ChangesModel()
  /// The moment of the last change by which a value that was fetched before it is not kept.
  private var lastChange = 0
  /// The moments at which the calls in progress began that bring the value although it was not requested.
  private(set) var bringing: [Int: Int] = [:]
  private(set) var broughtCount = 0
  /// The times at which the soft timeout answers callers.
  private var softDeadlines: [Int: Int] = [:]

  init(policy: CachePolicy) {
    self.policy = policy
  }

  /// Returns the error of a fetch with this number, if it fails.
  static func error(of number: Int) -> (any Error)? {
    switch number % 6 {
    case 3: Broken()
    case 5: Offline()
    default: nil
    }
  }

  var cachedValue: Int? { value?.content }

  /// The optimistic updates whose commits have not ended.
  var uncommitted: [Int] { changes.uncommitted }

  /// The fetches in flight.
  var flying: [Int] { (running.map { [$0.number] } ?? []) + invalidate.map(\.number) }

  /// The waiting callers.
  var waiting: [Int] {
    (running?.callers ?? []) + (queued ?? []) + invalidate.flatMap(\.callers)
  }

  mutating func takeNewResults() -> [(caller: Int, name: String)] {
    defer { newResults = [] }
    return newResults
  }

  // MARK: - Events

  mutating func request(caller: Int, insistsOn wish: Int?) {
    moment += 1
    if let value, value.moment > wish ?? 0, isUsable {
      if isRenewed { begin(inBackground: true) }
      answer([caller], "\(value.content)")
    } else if isFailureRemembered, let failure {
      answer([caller], standIn(for: failure.error) ?? "\(type(of: failure.error))")
    } else if let current = running {
      let satisfies = current.moment > wish ?? 0 || (value?.moment ?? 0) > wish ?? 0
      if satisfies { running?.callers.append(caller) } else { queued?.append(caller) }
      setSoftDeadline(of: caller, insistsOn: wish)
    } else {
      begin(inBackground: false)
      running?.callers = [caller]
      setSoftDeadline(of: caller, insistsOn: wish)
    }
  }

  private mutating func setSoftDeadline(of caller: Int, insistsOn wish: Int?) {
    guard wish == nil, let timeout = policy.softTimeout else { return }
    softDeadlines[caller] = now + Int(timeout.components.seconds)
  }

  /// Lets time pass, unless a soft timeout would end without an answer, which cannot be observed.
  ///
  /// - Returns: Whether time has passed.
  mutating func advance(by seconds: Int) -> Bool {
    let due = Set(softDeadlines.filter { $0.value <= now + seconds }.keys)
    let answered = value == nil ? [] : due.intersection(running?.callers ?? [])
    guard answered.count == due.count else { return false }
    now += seconds
    guard let value, !answered.isEmpty else { return true }
    answer(Array(answered), "\(value.content)")
    running?.callers.removeAll(where: answered.contains)
    running?.isInBackground = true
    return true
  }

  /// Begins a call that brings the value although it was not requested, and returns its number.
  mutating func beginBringing() -> Int {
    moment += 1
    broughtCount += 1
    bringing[broughtCount] = moment
    return broughtCount
  }

  /// Returns the value of a key that a call brings.
  static func broughtValue(of number: Int) -> Int { 1_000_000 + number }

  mutating func endBringing(_ number: Int) {
    guard let start = bringing.removeValue(forKey: number) else { return }
    moment += 1
    guard running == nil, uncommitted.isEmpty, lastChange < start else { return }
    lastChange = moment
    value = (Self.broughtValue(of: number), start, now + timeToLive)
    failure = nil
    isOutdated = false
    publish()
  }

  mutating func prefetch() {
    moment += 1
    guard running == nil, !isFailureRemembered, !isUsable || isRenewed else { return }
    begin(inBackground: true, remembersFailure: false)
  }

  private var timeToLive: Int { Int(policy.timeToLive.components.seconds) }

  private var isFailureRemembered: Bool {
    running == nil && failure.map { now < $0.until } == true
  }

  /// Whether the value is an answer for callers that require no refresh.
  private var isUsable: Bool {
    guard let value else { return false }
    return now < value.deadline + Int(policy.staleWhileRevalidate.components.seconds)
      && (value.moment > lastRefresh || queued != nil || (running?.moment ?? 0) > lastRefresh)
  }

  /// Whether a value that is an answer is fetched in the background.
  private var isRenewed: Bool {
    guard running == nil, !isFailureRemembered, let value else { return false }
    let refreshAhead = Int(policy.refreshAhead.components.seconds)
    if now >= value.deadline { return true }
    return refreshAhead > 0 && now >= value.deadline - refreshAhead
      && Double(now) >= failure?.renewsFrom ?? 0
  }

  mutating func refresh() -> Int {
    moment += 1
    lastRefresh = moment
    lastChange = moment
    failure?.until = 0
    if running == nil { isOutdated = value != nil }
    if running != nil, queued == nil { (queued, queueWasLeft) = ([], false) }
    return moment
  }

  mutating func end(_ number: Int) {
    moment += 1
    let error = Self.error(of: number)
    if let index = invalidate.firstIndex(where: { $0.number == number }) {
      let fetch = invalidate.remove(at: index)
      answer(fetch.callers, error.map { "\(type(of: $0))" } ?? "\(number)")
      return
    }
    guard let fetch = running else { return }
    running = nil
    lastChange = moment
    if let error {
      answer(fetch.callers, standIn(for: error) ?? "\(type(of: error))")
      let memory = fetch.remembersFailure ? Int(policy.failureTimeToLive.components.seconds) : 0
      let rest = value.map { max(0, $0.deadline - now) } ?? 0
      failure = (error, queued == nil ? now + memory : 0, Double(now) + Double(rest) / 2)
      isOutdated = fetch.servesRefresh && value != nil
      changes.endFetch()
    } else {
      value = (changes.fetch(number), fetch.moment, now + timeToLive)
      failure = nil
      answer(fetch.callers, "\(number)")
    }
    publish()
    // No fetch begins for callers that have left.
    if policy.whenUnobserved == .cancel, queueWasLeft, queued == [] { queued = nil }
    beginQueued()
  }

  mutating func leave(_ caller: Int) {
    moment += 1
    answer([caller], "CancellationError")
    if queued == [caller] { queueWasLeft = true }
    queued?.removeAll { $0 == caller }
    for index in invalidate.indices { invalidate[index].callers.removeAll { $0 == caller } }
    guard let fetch = running, fetch.callers.contains(caller) else { return }
    running?.callers.removeAll { $0 == caller }
    guard running?.callers.isEmpty == true, policy.whenUnobserved == .cancel,
      !fetch.isInBackground
    else { return }
    isOutdated = fetch.servesRefresh && value != nil
    changes.endFetch()
    cutOffRunning()
    if queued == [] { queued = nil }
    if queued == nil { publish() } else { beginQueued() }
  }

  /// Stores a value, and returns it.
  mutating func store() -> Int {
    moment += 1
    lastChange = moment
    stores += 1
    let content = -stores
    answer((running?.callers ?? []) + (queued ?? []), "\(content)")
    running?.callers = []
    queued = nil
    cutOffRunning()
    value = (changes.store(content), moment, now + timeToLive)
    failure = nil
    isOutdated = false
    publish()
    return content
  }

  /// Changes the value, if there is one, and returns the result.
  mutating func update() -> Int? {
    guard value != nil else { return nil }
    moment += 1
    lastChange = moment
    stores += 1
    let content = -stores
    changes.update(to: content)
    change(to: content)
    return content
  }

  /// Begins an optimistic update, and returns its number.
  mutating func beginUpdate() -> Int {
    moment += 1
    lastChange = moment
    let (number, content) = changes.begin(on: value?.content)
    if let content { change(to: content) }
    return number
  }

  /// Ends the commit of an optimistic update.
  mutating func endUpdate(_ number: Int) {
    moment += 1
    lastChange = moment
    let end = changes.end(number, hasValue: value != nil, isBeingFetched: running != nil)
    if let content = end.content {
      value?.content = content
      publish()
    }
    let isCommitted = !ChangesModel.fails(number)
    guard end.refreshes || isCommitted && running != nil else { return }
    let isFetched = isCommitted && running == nil && value != nil
    _ = refresh()
    guard isFetched else { return }
    // Requests wait for the fetch that begins now, which serves the refresh.
    moment += 1
    begin(inBackground: true)
    let deadline = value?.deadline ?? now
    value?.deadline = min(now, deadline)
  }

  private mutating func change(to content: Int) {
    let next = queued
    if let fetch = running, !fetch.servesRefresh {
      answer(fetch.callers, "\(content)")
      running?.callers = []
    }
    isOutdated = isOutdated || running?.servesRefresh == true || next != nil
    queued = nil
    cutOffRunning()
    value?.content = content
    failure = nil
    // No fetch begins for callers that have left.
    let isLeft = policy.whenUnobserved == .cancel && queueWasLeft && next == []
    guard let next, !isLeft else { return publish() }
    begin(inBackground: true)
    running?.callers = next
  }

  mutating func clear() {
    moment += 1
    lastChange = moment
    let callers = queued ?? []
    let isKnown = value != nil || failure != nil || running != nil
    queued = nil
    cutOffRunning()
    if !callers.isEmpty {
      fetches += 1
      invalidate.append(
        Fetch(number: fetches, moment: moment, isInBackground: true, callers: callers)
      )
    }
    value = nil
    failure = nil
    isOutdated = false
    changes.clear()
    if isKnown { publish() }
  }

  mutating func clearMemory() {
    moment += 1
    let isKnown = value != nil || failure != nil || running != nil
    value = nil
    failure = nil
    isOutdated = false
    changes.removeValue()
    if isKnown { states.append("unknown") }
    if running != nil { publish() }
  }

  // MARK: - Effects

  private mutating func begin(
    inBackground isInBackground: Bool,
    remembersFailure: Bool = true
  ) {
    fetches += 1
    running = Fetch(
      number: fetches,
      moment: moment,
      isInBackground: isInBackground,
      remembersFailure: remembersFailure,
      servesRefresh: isOutdated
    )
    isOutdated = false
    publish()
  }

  private mutating func beginQueued() {
    guard let callers = queued else { return }
    queued = nil
    isOutdated = true
    begin(inBackground: callers.isEmpty)
    running?.callers = callers
  }

  private mutating func cutOffRunning() {
    if let running { invalidate.append(running) }
    running = nil
  }

  private mutating func answer(_ callers: [Int], _ name: String) {
    resultCount += callers.count
    for caller in callers { softDeadlines[caller] = nil }
    newResults += callers.map { ($0, name) }
  }

  private func standIn(for error: any Error) -> String? {
    error is Offline ? value.map { "\($0.content)" } : nil
  }

  private mutating func publish() {
    let known = value.map { " \($0.content)" } ?? ""
    if running != nil {
      states.append("loading\(known)")
    } else if let failure {
      states.append("failed \(type(of: failure.error))\(known)")
    } else {
      states.append(value == nil ? "unknown" : "loaded\(known)")
    }
  }
}
