/// The live subscriptions of one key, and what they make the cache do.
///
/// Each event is one call, which returns what has to be done. Times are those of the cache.
///
/// Invariants:
///
/// - A fetch that is under way is joined: no other one begins for the subscriptions. An end that is reported for
///   any but the last one that began is ignored.
/// - Without a subscription nothing is fetched, and there is no time to wake at.
struct LiveState: Sendable {
  /// What is known of the value.
  struct Sight: Hashable, Sendable {
    var hasValue = false
    /// The time from which the value is stale.
    var deadline = Nanoseconds.min
    /// Whether the value has changed at its origin since it was fetched.
    var isOutdated = false
    /// Whether a fetch is under way, whoever began it.
    var isFetching = false
    /// Whether the last fetch has failed.
    var hasFailed = false

    func isStale(at now: Nanoseconds) -> Bool { now >= deadline || isOutdated }
  }

  /// A fetch that has to begin.
  struct Fetch: Hashable, Sendable {
    let number: Int
    /// Whether only a value from the origin will do.
    let isFresh: Bool
  }

  /// What has to be done after an event.
  struct Effects: Hashable, Sendable {
    /// Whether the fetch that is under way for the subscriptions is not waited for any more.
    var leavesFetch = false
    var fetch: Fetch?
  }

  private struct Member: Sendable {
    let isWhenStale: Bool
    let interval: Nanoseconds?
    let start: Nanoseconds
  }

  private var members: [UInt64: Member] = [:]
  /// The number of the fetch that is under way for the subscriptions.
  private var running: Int?
  private var lastNumber = 0
  /// Whether nothing is fetched until the value is asked for.
  private var isAtRest = false
  /// The deadline of the value, if it is still to come.
  private var deadline: Nanoseconds?
  /// The end of the interval.
  private var tick: Nanoseconds?

  /// The next time at which ``wake(_:at:)`` has to be called.
  var nextWake: Nanoseconds? {
    guard !isAtRest else { return nil }
    let deadline = members.values.contains(where: \.isWhenStale) ? deadline : nil
    return [deadline, tick].compactMap { $0 }.min()
  }

  /// Whether a fetch is the one that is under way for the subscriptions.
  func isRunning(_ number: Int) -> Bool { running == number }

  // MARK: - Subscriptions

  /// A live subscription begins.
  mutating func join(
    _ id: UInt64,
    isWhenStale: Bool,
    interval: Nanoseconds?,
    _ sight: Sight,
    at now: Nanoseconds
  ) -> Effects {
    members[id] = Member(isWhenStale: isWhenStale, interval: interval, start: now)
    isAtRest = false
    note(sight, at: now)
    scheduleTick(after: now)
    if !sight.hasValue { return begin(isFresh: false, sight) }
    return isWhenStale && sight.isStale(at: now) ? begin(isFresh: true, sight) : Effects()
  }

  /// A live subscription ends; the last one takes everything along.
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

  /// A signal has arrived.
  mutating func signal(_ sight: Sight, at now: Nanoseconds) -> Effects {
    guard !members.isEmpty else { return Effects() }
    wakeUp(at: now)
    return begin(isFresh: true, sight)
  }

  /// The value has changed at its origin.
  mutating func refresh(_ sight: Sight) -> Effects {
    // After a fetch that began too early the cache itself fetches once more.
    guard !members.isEmpty, !isAtRest, !sight.isFetching else { return Effects() }
    return begin(isFresh: true, sight)
  }

  /// The value has to be confirmed: another process may have changed it.
  mutating func confirm(_ sight: Sight) -> Effects {
    guard !members.isEmpty, !isAtRest, !sight.isFetching else { return Effects() }
    return begin(isFresh: false, sight)
  }

  /// The value was forgotten.
  ///
  /// - Parameter isSignedOut: Whether it is to stay so until it is asked for.
  /// - Returns: What has to be done.
  mutating func clear(isSignedOut: Bool) -> Effects {
    guard !members.isEmpty else { return Effects() }
    // A fetch that is under way was cut off.
    var effects = rest()
    guard !isSignedOut, !isAtRest else {
      isAtRest = true
      return effects
    }
    effects.fetch = begin(isFresh: false, Sight()).fetch
    return effects
  }

  /// The time has come that was given last, or another one.
  mutating func wake(_ sight: Sight, at now: Nanoseconds) -> Effects {
    guard !members.isEmpty, !isAtRest else { return Effects() }
    var isDue = false
    if let tick, now >= tick {
      isDue = true
      scheduleTick(after: now)
    }
    if let deadline, now >= deadline {
      self.deadline = nil
      let isStale = sight.hasValue && !sight.hasFailed && sight.isStale(at: now)
      if isStale, members.values.contains(where: \.isWhenStale) { isDue = true }
    }
    return isDue ? begin(isFresh: true, sight) : Effects()
  }

  // MARK: - What follows

  /// Something has happened to the value.
  mutating func note(_ sight: Sight, at now: Nanoseconds) {
    guard !members.isEmpty else { return }
    if isAtRest, sight.hasValue || sight.isFetching { wakeUp(at: now) }
    // A value that is stale when it arrives is not fetched over and over.
    deadline = sight.hasValue && !sight.hasFailed && sight.deadline > now ? sight.deadline : nil
  }

  /// A fetch is over.
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

  private mutating func begin(isFresh: Bool, _ sight: Sight) -> Effects {
    // The end of a fetch is seen before it is reported: what happens in between is not to be lost.
    guard running == nil || !sight.isFetching else { return Effects() }
    lastNumber += 1
    running = lastNumber
    return Effects(fetch: Fetch(number: lastNumber, isFresh: isFresh))
  }

  private mutating func rest() -> Effects {
    defer { (running, deadline) = (nil, nil) }
    if members.isEmpty { tick = nil }
    return Effects(leavesFetch: running != nil)
  }
}
