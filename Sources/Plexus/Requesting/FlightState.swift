/// The name of a flight within its multiplexer.
@usableFromInline
struct FlightID: Hashable, Sendable {
  @usableFromInline let rawValue: UInt64

  @usableFromInline
  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  @inlinable
  static func == (left: Self, right: Self) -> Bool {
    left.rawValue == right.rawValue
  }

  @inlinable
  func hash(into hasher: inout Hasher) {
    hasher.combine(rawValue)
  }
}

/// The place of a refresh in the order of all refreshes of a multiplexer.
@usableFromInline
struct RefreshTicket: Hashable, Comparable, Sendable {
  @usableFromInline let rawValue: UInt64

  @inlinable
  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// No refresh at all; it comes before every other one.
  @inlinable static var none: Self { Self(rawValue: 0) }

  @inlinable var isNone: Bool { rawValue == 0 }

  @inlinable
  static func < (left: Self, right: Self) -> Bool {
    left.rawValue < right.rawValue
  }

  /// The earlier one of two, where none at all does not count.
  static func earlier(_ left: Self, _ right: Self) -> Self {
    if left.isNone { return right }
    return right.isNone ? left : min(left, right)
  }

  /// Whether there is a refresh that somebody who holds the given ticket insists on.
  func isDemanded(by ticket: Self) -> Bool {
    !isNone && self <= ticket
  }
}

/// What is known of one key: its value, and the flight that fetches it.
///
/// Everything that happens to a key is one call, which takes names and instants and returns what
/// has to be done about it. What a key at rest needs is stored in place; all the rest is in
/// ``FlightDetails``, for which there is no room as long as they have nothing to say.
///
/// Invariants:
///
/// - At most one flight is under way, and at most one is queued behind it.
/// - The result of any other flight than the one under way changes nothing: that one was cut off.
/// - A refresh that no successful flight has served yet is noted in one of three places: in
///   ``unserved`` while no flight is under way, as served by the one under way, or as a reason for the
///   queued one. Of several refreshes noted in one place only the first matters.
@usableFromInline
struct FlightState<Value: Sendable>: Sendable {
  @usableFromInline private(set) var value: Value?
  /// When the value was fetched or stored.
  private(set) var storedAt: Nanoseconds = .min
  /// From when on the value is stale; in the past if there is none.
  @usableFromInline private(set) var deadline: Nanoseconds = .min
  /// The first refresh that the value does not satisfy and that no flight is about to serve.
  @usableFromInline private(set) var unserved = RefreshTicket.none
  @usableFromInline private(set) var box = FlightDetails.Box.empty

  /// What is rarely there.
  private(set) var details: FlightDetails {
    get { box.details }
    set { box = newValue.isEmpty ? .empty : .full(newValue) }
  }

  /// Whether a request is answered with the value at once, whatever else is going on.
  @inlinable
  func isFresh(at now: Nanoseconds) -> Bool {
    now < deadline && unserved.isNone
  }

  /// Whether the value is past its time to live.
  func isExpired(at now: Nanoseconds) -> Bool {
    now >= deadline
  }

  /// Whether no flight is under way.
  @inlinable var isAtRest: Bool {
    if case .full(let details) = box { details.running == nil } else { true }
  }

  /// Whether nothing is known.
  var isEmpty: Bool {
    if case .empty = box { value == nil } else { false }
  }

  /// Whether nothing is left that a request could tell from a key never asked for.
  func isForgettable(at now: Nanoseconds) -> Bool {
    guard value == nil else { return false }
    let details = details
    return details.running == nil && now >= (details.failure?.until ?? .min)
  }

  /// The flight that a request of a value that is not there at all waits for.
  @inlinable var onlyHope: FlightID? {
    guard value == nil, case .full(let details) = box else { return nil }
    return details.running?.id
  }

  /// The flight under way.
  var running: FlightID? {
    if case .full(let details) = box { details.running?.id } else { nil }
  }

  /// The flight that begins when the one under way has ended.
  var queued: FlightID? { details.running?.queued }

  /// Whether the flight under way has to serve a refresh, for which nothing older will do.
  var servesRefresh: Bool { details.running.map { !$0.serves.isNone } ?? false }

  /// The value with what belongs to it.
  var copy: StoredCopy<Value>? {
    guard let value else { return nil }
    let details = details
    return StoredCopy(
      value: value,
      validator: details.validator,
      storedAt: storedAt,
      ownTimeToLive: details.ownTimeToLive
    )
  }
}

// MARK: - Requests

extension FlightState {
  /// How a request is answered.
  enum Answer: Hashable, Sendable {
    /// With the value, which is fresh.
    case fresh
    /// With the value, which is stale.
    case stale
    /// With the remembered failure.
    case failure
    /// With the result of this flight.
    case waits(FlightID)
    /// Not at all: it would have to wait.
    case refused
  }

  /// What a request leads to.
  struct RequestEffects: Hashable, Sendable {
    var answer: Answer
    /// Whether the flight begins that was offered.
    var startsFlight = false
  }

  /// Somebody asks for the value.
  ///
  /// - Parameters:
  ///   - ticket: The newest refresh that the caller insists on.
  ///   - now: The instant.
  ///   - staleTime: How long a stale value is handed out while it is renewed.
  ///   - next: The name of the flight that may begin.
  ///   - mayWait: Whether the caller may wait for a flight or begin one.
  /// - Returns: The answer, and whether the offered flight begins.
  mutating func request(
    ticket: RefreshTicket = .none,
    at now: Nanoseconds,
    staleTime: Nanoseconds,
    next: FlightID,
    mayWait: Bool = true
  ) -> RequestEffects {
    let details = details
    if let running = details.running {
      if running.unserved.isDemanded(by: ticket), let queued = running.queued {
        return RequestEffects(answer: mayWait ? .waits(queued) : .refused)
      }
      if !running.serves.isDemanded(by: ticket) {
        if now < deadline { return RequestEffects(answer: .fresh) }
        if isUsable(at: now, staleTime: staleTime) { return RequestEffects(answer: .stale) }
      }
      return RequestEffects(answer: mayWait ? .waits(running.id) : .refused)
    }

    let isFailureRemembered = details.failure.map { now < $0.until } ?? false
    if isFresh(at: now) { return RequestEffects(answer: .fresh) }
    if unserved.isNone, isUsable(at: now, staleTime: staleTime) {
      let renews = mayWait && !isFailureRemembered
      if renews { begin(next, inBackground: true) }
      return RequestEffects(answer: .stale, startsFlight: renews)
    }
    if isFailureRemembered { return RequestEffects(answer: .failure) }
    guard mayWait else { return RequestEffects(answer: .refused) }
    begin(next, inBackground: false)
    return RequestEffects(answer: .waits(next), startsFlight: true)
  }

  private func isUsable(at now: Nanoseconds, staleTime: Nanoseconds) -> Bool {
    value != nil && now < deadline.addingSaturating(max(staleTime, 0))
  }

  private mutating func begin(_ id: FlightID, inBackground: Bool) {
    details.running = FlightDetails.Running(
      id: id,
      serves: unserved,
      isInBackground: inBackground
    )
    unserved = .none
  }
}

// MARK: - Flights

extension FlightState {
  /// What the end of a flight leads to.
  struct EndEffects: Hashable, Sendable {
    /// Whether it was the flight under way, so that something has changed.
    var isCurrent = false
    /// The queued flight that begins now.
    var startsFlight: FlightID?
  }

  /// A flight brings a value.
  ///
  /// - Parameters:
  ///   - id: The flight.
  ///   - newValue: The value.
  ///   - validator: What came with it for the next fetch.
  ///   - lifetime: How long it is fresh.
  ///   - now: The instant.
  /// - Returns: What has to be done now.
  mutating func succeed(
    _ id: FlightID,
    with newValue: Value,
    validator: String? = nil,
    lifetime: Lifetime,
    at now: Nanoseconds
  ) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    keep(newValue, lifetime: lifetime, at: now)
    details = FlightDetails(validator: validator, ownTimeToLive: lifetime.own)
    unserved = running.unserved
    return EndEffects(isCurrent: true, startsFlight: beginQueued(of: running))
  }

  /// A flight fails.
  ///
  /// - Parameters:
  ///   - id: The flight.
  ///   - error: Why.
  ///   - usesValue: Whether the value may stand in.
  ///   - memory: How long the failure is remembered.
  ///   - now: The instant.
  /// - Returns: What has to be done now.
  mutating func fail(
    _ id: FlightID,
    with error: any Error,
    usesValue: Bool = false,
    memory: Nanoseconds = 0,
    at now: Nanoseconds
  ) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    // A refresh that came while it was under way has ended the memory of it in advance.
    let isRemembered = memory > 0 && running.queued == nil
    details.failure = FlightDetails.Failure(
      error: error,
      usesValue: usesValue,
      until: isRemembered ? now.addingSaturating(memory) : .min
    )
    return EndEffects(isCurrent: true, startsFlight: withdraw(running))
  }

  /// A flight ends without a result, as if it had never begun.
  mutating func giveUp(_ id: FlightID) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    return EndEffects(isCurrent: true, startsFlight: withdraw(running))
  }

  /// The last one who waited for a flight has left, and nobody wants it to go on.
  ///
  /// A flight that began without anybody waiting for it stays.
  mutating func abandon(_ id: FlightID) -> EndEffects {
    guard details.running?.isInBackground == false else { return EndEffects() }
    return giveUp(id)
  }

  /// Ends a flight that has served nothing.
  private mutating func withdraw(_ running: FlightDetails.Running) -> FlightID? {
    details.running = nil
    unserved =
      value == nil && running.queued == nil
      ? .none : RefreshTicket.earlier(running.serves, running.unserved)
    return beginQueued(of: running)
  }

  /// A flight has found a copy that was stored before, in place of a new value.
  ///
  /// - Parameters:
  ///   - id: The flight.
  ///   - copy: The copy.
  ///   - end: Until when it is fresh.
  ///   - renewal: The name of the flight that renews it, if it is stale already.
  /// - Returns: What has to be done now.
  mutating func restore(
    _ id: FlightID,
    _ copy: StoredCopy<Value>,
    until end: Nanoseconds,
    renewal: FlightID?
  ) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    adopt(copy, until: end)
    details = FlightDetails(validator: copy.validator, ownTimeToLive: copy.ownTimeToLive)
    unserved = running.unserved
    if let next = beginQueued(of: running) {
      return EndEffects(isCurrent: true, startsFlight: next)
    }
    if let renewal { begin(renewal, inBackground: true) }
    return EndEffects(isCurrent: true, startsFlight: renewal)
  }

  /// A flight that is about to fail has found a copy that may stand in for the value, which is stale.
  mutating func standIn(_ id: FlightID, _ copy: StoredCopy<Value>, until end: Nanoseconds) {
    guard value == nil, details.running?.id == id else { return }
    adopt(copy, until: end)
    details.validator = copy.validator
    details.ownTimeToLive = copy.ownTimeToLive
  }

  private mutating func adopt(_ copy: StoredCopy<Value>, until end: Nanoseconds) {
    value = copy.value
    storedAt = copy.storedAt
    deadline = end
  }

  private mutating func beginQueued(of running: FlightDetails.Running) -> FlightID? {
    guard let queued = running.queued else { return nil }
    begin(queued, inBackground: true)
    return queued
  }

  private mutating func keep(_ newValue: Value, lifetime: Lifetime, at now: Nanoseconds) {
    value = newValue
    storedAt = now
    deadline = now.addingSaturating(max(lifetime.duration, 0))
  }

  /// How long a value is fresh.
  struct Lifetime: Hashable, Sendable {
    /// The time until its deadline.
    var duration: Nanoseconds
    /// The time that came with the value itself, if it did.
    var own: Nanoseconds?
  }
}

// MARK: - Commands

extension FlightState {
  /// The flights that have nothing to do with the key any more.
  struct CutEffects: Hashable, Sendable {
    /// The one that was under way.
    var cutsOff: FlightID?
    /// The one that was queued and has not begun.
    var drops: FlightID?
  }

  /// What has nothing to do with the key any more once this state is thrown away for a new one.
  var cut: CutEffects {
    guard case .full(let details) = box, let running = details.running else { return CutEffects() }
    return CutEffects(cutsOff: running.id, drops: running.queued)
  }

  /// Somebody knows that the value has changed.
  ///
  /// - Parameters:
  ///   - ticket: The place of this refresh among all of them.
  ///   - next: The name of the flight that may be queued.
  /// - Returns: Whether that flight is queued now.
  mutating func refresh(_ ticket: RefreshTicket, next: FlightID) -> Bool {
    if case .empty = box {
      // Without a value the next flight begins after this refresh anyway.
      if value != nil { unserved = .earlier(unserved, ticket) }
      return false
    }
    if details.failure != nil { details.failure?.until = .min }
    guard var running = details.running else {
      if value != nil { unserved = .earlier(unserved, ticket) }
      return false
    }
    let isFirst = running.queued == nil
    running.unserved = .earlier(running.unserved, ticket)
    if isFirst { running.queued = next }
    details.running = running
    return isFirst
  }

  /// Somebody brings a value, which is newer than whatever a flight may bring.
  mutating func store(_ newValue: Value, lifetime: Lifetime, at now: Nanoseconds) -> CutEffects {
    let effects = cut
    keep(newValue, lifetime: lifetime, at: now)
    unserved = .none
    box = .empty
    return effects
  }

  /// What is in memory is forgotten; the flight under way goes on.
  mutating func clearMemory() {
    dropValue()
    if details.running != nil { details.running?.isForgetful = true }
  }

  /// The value has to make room; the flight under way goes on, and the value may stand in if it fails.
  mutating func dropValue() {
    let running = details.running
    self = FlightState()
    if running != nil { details.running = running }
  }

  /// Whether the value that the flight under way began with must not be used any more.
  var hasForgotten: Bool { details.running?.isForgetful == true }
}
