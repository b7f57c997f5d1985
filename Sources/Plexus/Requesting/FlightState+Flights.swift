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
    details = FlightDetails(validator: validator, terms: lifetime.terms)
    unserved = running.unserved
    return EndEffects(isCurrent: true, startsFlight: beginQueued(of: running))
  }

  /// A flight brings a value that must not be kept, and that is newer than the one there is.
  mutating func pass(_ id: FlightID) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    self = FlightState()
    unserved = running.unserved
    return EndEffects(isCurrent: true, startsFlight: beginQueued(of: running))
  }

  /// A flight fails.
  ///
  /// - Parameters:
  ///   - id: The flight.
  ///   - error: Why.
  ///   - grounds: What it has to say for the value to stand in.
  ///   - memory: How long the failure is remembered.
  ///   - now: The instant.
  /// - Returns: What has to be done now.
  mutating func fail(
    _ id: FlightID,
    with error: any Error,
    grounds: StandInGrounds = StandInGrounds(),
    memory: Nanoseconds = 0,
    at now: Nanoseconds
  ) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    // A refresh that came while it was under way has ended the memory of it in advance.
    let isRemembered = memory > 0 && running.queued == nil
    details.failure = FlightDetails.Failure(
      error: error,
      grounds: grounds,
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
  ///   - renewal: The name of the flight that renews it, if it is stale already.
  /// - Returns: What has to be done now.
  mutating func restore(
    _ id: FlightID,
    _ copy: StoredCopy<Value>,
    renewal: FlightID?
  ) -> EndEffects {
    guard let running = details.running, running.id == id else { return EndEffects() }
    adopt(copy, until: copy.deadline)
    details = FlightDetails(validator: copy.validator, terms: copy.terms)
    unserved = running.unserved
    if let next = beginQueued(of: running) {
      return EndEffects(isCurrent: true, startsFlight: next)
    }
    if let renewal { begin(renewal, inBackground: true) }
    return EndEffects(isCurrent: true, startsFlight: renewal)
  }

  /// A flight that is about to fail has found a copy that may stand in for the value.
  ///
  /// The next request fetches: nothing says that the copy is still the right one.
  mutating func standIn(_ id: FlightID, _ copy: StoredCopy<Value>, at now: Nanoseconds) {
    guard value == nil, details.running?.id == id else { return }
    adopt(copy, until: min(copy.deadline, now))
    details.validator = copy.validator
    details.terms = copy.terms
    details.ownDeadline = copy.deadline > now ? copy.deadline : nil
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

  /// A new value takes the place of the old one.
  mutating func keep(_ newValue: Value, lifetime: Lifetime, at now: Nanoseconds) {
    value = newValue
    storedAt = now
    deadline = now.addingSaturating(max(lifetime.duration, 0))
  }

  /// How long a value is fresh.
  struct Lifetime: Hashable, Sendable {
    /// The time until its deadline.
    var duration: Nanoseconds
    /// What came with the value itself.
    var terms = ValueTerms()
  }
}
