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
    if details.running != nil { details.running?.mayUsePrevious = false }
  }

  /// The value has to make room; the flight under way goes on, and the value may still stand in if it fails.
  mutating func dropValue() {
    let running = details.running
    self = FlightState()
    if running != nil { details.running = running }
  }

  /// Whether the value that the flight under way began with may stand in for its result, here or not.
  var mayUsePrevious: Bool { details.running?.mayUsePrevious == true }
}
