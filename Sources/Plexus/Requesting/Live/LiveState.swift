/// The pure state of the live subscriptions of one key.
///
/// Each event is one call, which returns the effects to be performed. Times are those of the cache.
///
/// Invariants:
///
/// - The subscriptions wait for one fetch at a time: no other one starts for them while it is in flight, not even for a
///   signal. The end of a fetch that they have left is ignored.
/// - Without a subscription nothing is fetched, and there is no time to wake at.
struct LiveState: Sendable {
  /// The facts about the value.
  struct Sight: Hashable, Sendable {
    var hasValue = false
    /// The time from which the value is stale.
    var deadline = Nanoseconds.min
    /// Whether the value was marked as changed since it was fetched.
    var isOutdated = false
    /// Whether a fetch is in flight, whatever started it.
    var isFetching = false
    /// Whether the last fetch has failed.
    var hasFailed = false

    func isStale(at now: Nanoseconds) -> Bool { now >= deadline || isOutdated }
  }

  /// A fetch to be started.
  struct Fetch: Hashable, Sendable {
    let number: Int
    /// Whether the value must come from the origin.
    let isFresh: Bool
    /// Whether nothing is fetched while a failure is remembered, as for a request.
    let acceptsFailure: Bool
  }

  /// The effects of an event.
  struct Effects: Hashable, Sendable {
    /// Whether to stop waiting for the fetch in flight.
    var leavesFetch = false
    var fetch: Fetch?
  }

  private struct Member: Sendable {
    let isWhenStale: Bool
    let interval: Nanoseconds?
    let start: Nanoseconds
  }

  private var members: [UInt64: Member] = [:]
  /// The number of the fetch in flight for the subscriptions.
  private var running: Int?
  private var lastNumber = 0
  /// Whether nothing is fetched until the value is requested.
  private var isAtRest = false
  /// The deadline of the value, if its end is awaited.
  private var deadline: Nanoseconds?
  /// The end of the interval.
  private var tick: Nanoseconds?

  /// The next time at which ``wake(_:at:)`` has to be called.
  var nextWake: Nanoseconds? {
    guard !isAtRest else { return nil }
    let deadline = members.values.contains(where: \.isWhenStale) ? deadline : nil
    return [deadline, tick].compactMap { $0 }.min()
  }

  /// Whether a fetch is the one in flight for the subscriptions.
  func isRunning(_ number: Int) -> Bool { running == number }

  // MARK: - Subscriptions

  /// Adds a live subscription.
  mutating func join(
    _ id: UInt64,
    isWhenStale: Bool,
    interval: Nanoseconds?,
    _ sight: Sight,
    at now: Nanoseconds
  ) -> Effects {
    // No timer has awaited the deadline so far.
    if !members.values.contains(where: \.isWhenStale) { deadline = nil }
    members[id] = Member(isWhenStale: isWhenStale, interval: interval, start: now)
    isAtRest = false
    note(sight, at: now)
    scheduleTick(after: now)
    let needsValue = !sight.hasValue || isWhenStale && sight.isStale(at: now)
    return needsValue ? begin(isFresh: false, sight) : Effects()
  }

  /// Removes a live subscription; the last one stops everything.
  mutating func leave(_ id: UInt64, at now: Nanoseconds) -> Effects {
    guard members.removeValue(forKey: id) != nil else { return Effects() }
    if members.isEmpty { return rest() }
    scheduleTick(after: now)
    return Effects()
  }

  private mutating func scheduleTick(after now: Nanoseconds) {
    let shortest = members.values.filter { $0.interval != nil }
      .min { ($0.interval ?? 0, $0.start) < ($1.interval ?? 0, $1.start) }
    guard let shortest, let interval = shortest.interval else {
      tick = nil
      return
    }
    let intervals = (now &- shortest.start) / interval &+ 1
    let (elapsed, overflows) = intervals.multipliedReportingOverflow(by: interval)
    tick = overflows ? .max : shortest.start.addingSaturating(elapsed)
  }

  // MARK: - Reasons to fetch

  /// Handles a signal.
  mutating func signal(_ sight: Sight, at now: Nanoseconds) -> Effects {
    guard !members.isEmpty else { return Effects() }
    wakeUp(at: now)
    return begin(isFresh: true, sight)
  }

  /// Marks the value as changed at its origin.
  mutating func refresh(_ sight: Sight) -> Effects {
    // A fetch that started too early is followed by another one of the cache itself.
    guard !members.isEmpty, !isAtRest, !sight.isFetching else { return Effects() }
    return begin(isFresh: true, sight)
  }

  /// Looks the value up again: another process may have changed it.
  mutating func confirm(_ sight: Sight) -> Effects {
    guard !members.isEmpty, !isAtRest, !sight.isFetching else { return Effects() }
    return begin(isFresh: false, acceptsFailure: false, sight)
  }

  /// Handles the removal of the value.
  ///
  /// - Parameter isSignedOut: Whether nothing is fetched until the value is requested.
  /// - Returns: The effects.
  mutating func clear(isSignedOut: Bool) -> Effects {
    guard !members.isEmpty else { return Effects() }
    // The fetch in flight was detached.
    var effects = rest()
    guard !isSignedOut, !isAtRest else {
      isAtRest = true
      return effects
    }
    effects.fetch = begin(isFresh: false, Sight()).fetch
    return effects
  }

  /// Handles the time returned last as ``nextWake``, or any other time.
  mutating func wake(_ sight: Sight, at now: Nanoseconds) -> Effects {
    guard !members.isEmpty, !isAtRest else { return Effects() }
    let isTick = tick.map { now >= $0 } ?? false
    if isTick { scheduleTick(after: now) }
    var isDue = isTick
    if let deadline, now >= deadline {
      self.deadline = nil
      let isStale = sight.hasValue && !sight.hasFailed && sight.isStale(at: now)
      if isStale, members.values.contains(where: \.isWhenStale) { isDue = true }
    }
    return isDue ? begin(isFresh: isTick, sight) : Effects()
  }

  // MARK: - Effects

  /// Handles a change of the value.
  mutating func note(_ sight: Sight, at now: Nanoseconds) {
    guard !members.isEmpty else { return }
    if isAtRest, sight.hasValue || sight.isFetching { wakeUp(at: now) }
    // A value that is stale when it arrives is not fetched again and again. The end of one that was awaited is handled
    // by the timer, which can be late.
    let isAwaited = sight.deadline > now || sight.deadline == deadline
    deadline = sight.hasValue && !sight.hasFailed && isAwaited ? sight.deadline : nil
  }

  /// Handles the end of a fetch.
  mutating func finish(_ number: Int, _ sight: Sight, at now: Nanoseconds) {
    guard running == number else { return }
    running = nil
    note(sight, at: now)
  }

  private mutating func wakeUp(at now: Nanoseconds) {
    guard isAtRest else { return }
    isAtRest = false
    scheduleTick(after: now)
  }

  private mutating func begin(
    isFresh: Bool,
    acceptsFailure: Bool? = nil,
    _ sight: Sight
  ) -> Effects {
    // The end of a fetch is visible before it is reported, and events in between must not be lost.
    guard running == nil || !sight.isFetching else { return Effects() }
    lastNumber += 1
    running = lastNumber
    let fetch = Fetch(
      number: lastNumber,
      isFresh: isFresh,
      acceptsFailure: acceptsFailure ?? !isFresh
    )
    return Effects(fetch: fetch)
  }

  private mutating func rest() -> Effects {
    defer { (running, deadline) = (nil, nil) }
    if members.isEmpty { tick = nil }
    return Effects(leavesFetch: running != nil)
  }
}
