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
  ///   - staleTime: How long a stale value is handed out while it is renewed, if it has no time of its own.
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
        if isUsable(at: now, staleTime: details.terms.staleTime(staleTime)) {
          return RequestEffects(answer: .stale)
        }
      }
      return RequestEffects(answer: mayWait ? .waits(running.id) : .refused)
    }

    let isFailureRemembered = details.failure.map { now < $0.until } ?? false
    if isFresh(at: now) { return RequestEffects(answer: .fresh) }
    if unserved.isNone, isUsable(at: now, staleTime: details.terms.staleTime(staleTime)) {
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
    value != nil && now < deadline.addingSaturating(staleTime)
  }

  /// A flight begins, which serves every refresh so far.
  mutating func begin(_ id: FlightID, inBackground: Bool) {
    details.running = FlightDetails.Running(
      id: id,
      serves: unserved,
      isInBackground: inBackground
    )
    unserved = .none
  }
}
