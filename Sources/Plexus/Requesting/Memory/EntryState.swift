/// The state of one key, apart from its value: the age of the value, the running flight, the last failure.
///
/// Each event is one call, which takes flights and instants and returns the consequence. The state of a key
/// at rest is stored inline; the rest is in ``Details``, which take one word while they are empty. Whether the value
/// answers a request is decided in `EntryState+Decision.swift`.
///
/// Invariants:
///
/// - At most one flight is running, and at most one is queued behind it.
/// - The result of any other flight than the running one changes nothing: that flight was detached.
/// - A refresh that no successful flight has served yet is recorded in one of three places: in
///   ``unserved`` while no flight is running, as served by the running one, or as a reason for the
///   queued one. Of several refreshes recorded in one place only the first matters.
@usableFromInline
struct EntryState: Sendable {
  /// The time at which the value was fetched or stored.
  @usableFromInline private(set) var storedAt = Nanoseconds.min
  /// The time from which the value is stale; in the past if there is no value.
  @usableFromInline private(set) var deadline = Nanoseconds.min
  /// The first refresh that the value does not satisfy and that no flight is about to serve.
  @usableFromInline private(set) var unserved = RefreshTicket.none
  @usableFromInline private(set) var box = Details.Box.empty

  @inlinable
  init() {}

  private(set) var details: Details {
    get { box.details }
    set { box = newValue.isEmpty ? .empty : .full(newValue) }
  }

  /// Whether no flight is running.
  @inlinable var isAtRest: Bool {
    switch box {
    case .empty: true
    case .waiting, .running: false
    case .full(let details): details.running == nil
    }
  }

  /// Whether the key has no flight, failure, validator or directives.
  @usableFromInline var hasNoDetails: Bool {
    if case .empty = box { true } else { false }
  }

  /// Returns whether a key in this state and without a value is equivalent to a new one.
  func isForgettable(at now: Nanoseconds) -> Bool {
    isAtRest && now >= (failure?.until ?? .min)
  }

  /// The running flight.
  @inlinable
  @inline(__always)
  var running: Flight? {
    switch box {
    case .empty: nil
    case .waiting(let flight), .running(let flight): flight
    case .full: detailed
    }
  }

  /// Whether a flight is running whose fetch has begun.
  var isFetching: Bool {
    switch box {
    case .empty, .waiting: false
    case .running: true
    case .full(let details): details.running?.hasDeparted == true
    }
  }

  /// The running flight, if it is in the details.
  @usableFromInline var detailed: Flight? {
    if case .full(let details) = box { details.running?.flight } else { nil }
  }

  /// The flight that begins when the running one has ended.
  @usableFromInline var queued: Flight? {
    if case .full(let details) = box { details.running?.queued } else { nil }
  }

  /// The first refresh since the running flight began.
  private var refreshedSince: RefreshTicket {
    if case .full(let details) = box { details.running?.unserved ?? .none } else { .none }
  }

  /// Whether the running flight has to serve a refresh, so that no stored copy is new enough.
  @usableFromInline var servesRefresh: Bool {
    if case .full(let details) = box { details.running?.serves.isNone == false } else { false }
  }

  /// Whether the value that the running flight began with can be the answer if it fails.
  @usableFromInline var allowsPrevious: Bool { details.running?.allowsPrevious == true }

  /// The remembered or last failure.
  @usableFromInline var failure: Details.Failure? {
    if case .full(let details) = box { details.failure } else { nil }
  }

  /// The error of the remembered or last failure.
  @usableFromInline var failureError: (any Error)? { failure?.error }

  /// Copies the metadata of the value to a copy of it.
  @usableFromInline
  func describe(_ copy: Outcome) {
    copy.storedAt = storedAt
    copy.deadline = deadline
    guard case .full(let details) = box else { return }
    copy.deadline = details.ownDeadline ?? deadline
    copy.validator = details.validator
    copy.terms = details.terms
  }
}

// MARK: - The start of a flight

extension EntryState {
  /// Begins a flight, which serves every refresh so far.
  @usableFromInline
  mutating func begin(_ flight: Flight, inBackground: Bool) {
    defer { unserved = .none }
    if case .empty = box, unserved.isNone, !inBackground {
      box = flight.isDelayed ? .waiting(flight) : .running(flight)
      return
    }
    details.running = Details.Running(
      flight: flight,
      serves: unserved,
      isInBackground: inBackground
    )
  }
}

// MARK: - The end of a flight

extension EntryState {
  /// Ends a flight with a value.
  ///
  /// - Parameters:
  ///   - validator: The validator that came with the value.
  ///   - lifetime: The time for which the value is fresh.
  ///   - storedAt: The time at which its fetch began.
  ///   - now: The present time.
  /// - Returns: The queued flight, which begins now.
  @usableFromInline
  mutating func succeed(
    validator: String? = nil,
    lifetime: Lifetime,
    storedAt: Nanoseconds? = nil,
    at now: Nanoseconds
  ) -> Flight? {
    let (refreshedSince, queued) = (refreshedSince, queued)
    setTimes(lifetime, at: now)
    if let storedAt { self.storedAt = storedAt }
    if validator == nil, lifetime.terms.isEmpty {
      box = .empty
    } else {
      details = Details(validator: validator, terms: lifetime.terms)
    }
    unserved = refreshedSince
    return begin(queued: queued)
  }

  /// Ends a flight with a value that must not be stored; the caller removes the older value.
  @usableFromInline
  mutating func pass() -> Flight? {
    let (refreshedSince, queued) = (refreshedSince, queued)
    self = EntryState()
    unserved = refreshedSince
    return begin(queued: queued)
  }

  /// Ends a flight that has failed.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - grounds: The grounds on which the value can be the answer.
  ///   - memory: The time for which the failure is remembered.
  ///   - hasValue: Whether there is a value.
  ///   - now: The present time.
  /// - Returns: The queued flight, which begins now.
  @usableFromInline
  mutating func fail(
    with error: any Error,
    grounds: ValueTerms.FallbackGrounds = ValueTerms.FallbackGrounds(),
    memory: Nanoseconds = 0,
    hasValue: Bool,
    at now: Nanoseconds
  ) -> Flight? {
    // A refresh while the flight was running means that its failure is not remembered.
    let isRemembered = memory > 0 && refreshedSince.isNone
    details.failure = Details.Failure(
      error: error,
      grounds: grounds,
      until: isRemembered ? now.addingSaturating(memory) : .min,
      renewsFrom: now < deadline ? now + deadline.subtractingSaturating(now) / 2 : .min
    )
    if hasValue, grounds.isDefinitive { details.terms.isGone = true }
    return giveUp(hasValue: hasValue)
  }

  /// Ends a flight without a result, as if it had never begun.
  @usableFromInline
  mutating func giveUp(hasValue: Bool) -> Flight? {
    guard let running = details.running else { return nil }
    details.running = nil
    unserved =
      !hasValue && running.queued == nil
      ? .none : RefreshTicket.earlier(running.serves, running.unserved)
    return begin(queued: running.queued)
  }

  /// Whether the running flight continues without callers.
  var isInBackground: Bool {
    if case .full(let details) = box { details.running?.isInBackground == true } else { false }
  }

  /// Marks the fetch of the running flight as begun, some time after the flight was launched.
  ///
  /// Until then the flight serves new refreshes.
  @usableFromInline
  mutating func depart() {
    switch box {
    case .empty, .running: break
    case .waiting(let flight): box = .running(flight)
    case .full: if details.running != nil { details.running?.hasDeparted = true }
    }
  }

  /// Makes the running flight one that is cancelled when it is no longer observed.
  @usableFromInline
  mutating func needObservers() {
    if isInBackground { details.running?.isInBackground = false }
  }

  /// Lets the running flight continue without callers, after the soft timeout has answered one.
  mutating func keepRunning() {
    if details.running != nil { details.running?.isInBackground = true }
  }

  /// Ends a flight with a stored copy instead of a new value.
  ///
  /// - Parameter copy: The copy.
  /// - Returns: The queued flight, which begins now.
  @usableFromInline
  mutating func restore(_ copy: Outcome) -> Flight? {
    let (refreshedSince, queued) = (refreshedSince, queued)
    storedAt = copy.storedAt
    deadline = copy.deadline
    details = Details(validator: copy.validator, terms: copy.terms)
    unserved = refreshedSince
    return begin(queued: queued)
  }

  /// Uses a stored copy as the value, because the flight is about to fail.
  ///
  /// The value is stale, so that the next request renews it.
  @usableFromInline
  mutating func fallBack(to copy: Outcome, at now: Nanoseconds) {
    storedAt = copy.storedAt
    deadline = min(copy.deadline, now)
    details.validator = copy.validator
    details.terms = copy.terms
    details.ownDeadline = copy.deadline > now ? copy.deadline : nil
  }

  private mutating func begin(queued: Flight?) -> Flight? {
    guard let queued else { return nil }
    begin(queued, inBackground: queued.callerCount == 0)
    return queued
  }

  private mutating func setTimes(_ lifetime: Lifetime, at now: Nanoseconds) {
    storedAt = now
    deadline = now.addingSaturating(max(lifetime.duration, 0))
  }
}

// MARK: - Commands

extension EntryState {
  /// Marks the value as changed at its origin.
  ///
  /// - Parameters:
  ///   - ticket: The place of this refresh among all of them.
  ///   - hasValue: Whether there is a value.
  /// - Returns: Whether a flight has to be queued behind the running one: see ``enqueue(_:)``.
  @usableFromInline
  mutating func refresh(_ ticket: RefreshTicket, hasValue: Bool) -> Bool {
    if case .empty = box {
      // Without a value the next flight begins after this refresh anyway.
      if hasValue { unserved = .earlier(unserved, ticket) }
      return false
    }
    if details.failure != nil { details.failure?.until = .min }
    guard var running = details.running else {
      if hasValue { unserved = .earlier(unserved, ticket) }
      return false
    }
    guard running.hasDeparted else {
      running.serves = .earlier(running.serves, ticket)
      details.running = running
      return false
    }
    running.unserved = .earlier(running.unserved, ticket)
    details.running = running
    return running.queued == nil
  }

  /// Queues a flight behind the running one.
  @usableFromInline
  mutating func enqueue(_ flight: Flight) {
    details.running?.queued = flight
  }

  /// Removes the queued flight, which is not needed: the value is outdated when the running flight has ended.
  @usableFromInline
  mutating func dequeue() {
    details.running?.queued = nil
  }

  /// Records that the caller replaces the value with one that is newer than the result of any flight, and
  /// detaches the flights.
  @usableFromInline
  mutating func store(_ lifetime: Lifetime, at now: Nanoseconds) {
    setTimes(lifetime, at: now)
    unserved = .none
    box = .empty
  }

  /// Records that the caller changes the value, whose age stays the same, and detaches the flights.
  ///
  /// A refresh that was not served yet is still to be served: a change of an outdated value is outdated, too.
  /// The validator is removed, because it belongs to the value that the origin sent.
  mutating func update() {
    if case .empty = box { return }
    let details = details
    if let running = details.running {
      unserved = .earlier(unserved, .earlier(running.serves, running.unserved))
    }
    self.details = Details(terms: details.terms, ownDeadline: details.ownDeadline)
  }

  /// Records that the value is no longer the one that the origin sent.
  @usableFromInline
  mutating func removeValidator() {
    if case .full(let details) = box, details.validator != nil { self.details.validator = nil }
  }

  /// Lets requests wait for the running flight, as after a refresh that it serves.
  mutating func awaitRenewal(at now: Nanoseconds) {
    guard now < deadline else { return }
    details.ownDeadline = ownDeadline
    deadline = now
  }

  /// Makes the value stale from a moment on, because its time to idle is over.
  @usableFromInline
  mutating func expire(at moment: Nanoseconds) {
    deadline = min(deadline, moment)
  }

  /// Removes the state of the value, because memory is cleared; the running flight continues.
  mutating func clearMemory() {
    dropValue()
    if details.running != nil { details.running?.allowsPrevious = false }
  }

  /// Removes the state of the value, because it is evicted; the running flight continues, and the value can
  /// still be the answer if the flight fails.
  @usableFromInline
  mutating func dropValue() {
    let running = details.running
    self = EntryState()
    if running != nil { details.running = running }
  }

  /// Marks the value as possibly changed in another process: until it is revalidated, it is no answer, not even stale
  /// or instead of a failure.
  @usableFromInline
  mutating func distrust() {
    deadline = .min
    details.ownDeadline = nil
    details.terms.requiresRevalidation = true
  }

  /// Detaches the flights, and marks the value as possibly changed in another process.
  mutating func cutOff(hasValue: Bool) {
    guard hasValue else {
      self = EntryState()
      return
    }
    let running = details.running
    details.running = nil
    unserved = .earlier(unserved, .earlier(running?.serves ?? .none, running?.unserved ?? .none))
    distrust()
  }
}
