extension RequestCore {
  /// Answers a request, after a wait if need be.
  ///
  /// - Parameters:
  ///   - key: What is asked for.
  ///   - hash: Its hash.
  ///   - ticket: The newest refresh that the caller insists on.
  /// - Returns: The value.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller's task is cancelled and
  ///   would have to wait; ``MultiplexerError/recursiveRequest(chain:)``.
  @inlinable
  @inline(never)
  func settle(_ key: Key, hash: UInt64, ticket: RefreshTicket) async throws -> Answer<Value> {
    // All that may suspend is the wait, and it keeps little: many callers may be waiting at once.
    switch try admit(key, hash: hash, ticket: ticket) {
    case .answered(let answer):
      return answer
    case .waits(let flight, let place, nil):
      let ending = await flight.waiters.wait(in: place) {
        self.leave(flight, place, scope: nil)
      }
      guard ending == .finished else { throw CancellationError() }
      return try flight.answer()
    case .waits(let flight, let place, let scope?):
      return try await wait(for: flight, in: place, scope: scope)
    }
  }

  /// Waits for a flight on behalf of another one.
  @usableFromInline
  func wait(
    for flight: Flight<Key, Value>,
    in place: WaitPlace,
    scope: any FlightNode
  ) async throws -> Answer<Value> {
    let ending = await flight.waiters.wait(in: place) {
      self.leave(flight, place, scope: scope)
    }
    guard ending == .finished else { throw CancellationError() }
    WaitGraph.stopWaiting(scope, for: flight.mark)
    return try flight.answer()
  }

  /// Returns how long ago something was, which may be more than can be counted.
  func age(of moment: Nanoseconds) -> Nanoseconds {
    let now = time.now()
    guard now > moment else { return 0 }
    let (age, overflows) = now.subtractingReportingOverflow(moment)
    return overflows ? .max : age
  }

  /// Answers a request with all that is known of the value.
  func response(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) async throws -> Response<Value> {
    let answer = try await settle(key, hash: hash, ticket: ticket)
    let age = answer.source == .fetch ? 0 : age(of: answer.storedAt)
    return Response(
      value: answer.value,
      source: answer.source,
      age: .nanoseconds(age),
      isStale: answer.isStale,
      error: answer.error
    )
  }

  /// Answers a request or gives it a place to wait in.
  @inlinable
  func admit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) throws -> Admission<Key, Value> {
    // Most of those who wait do so for the first value of a key, in great numbers.
    if ticket.isNone, FlightScope.isEmpty, !Task.isCancelled,
      let (flight, place) = stripes.withLock(hash: hash, { $0.join(key, hash: hash) })
    {
      return .waits(flight, place, scope: nil)
    }
    return try decide(key, hash: hash, ticket: ticket)
  }

  @usableFromInline
  func decide(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) throws -> Admission<Key, Value> {
    var launches: [Launch<Key, Value>] = []
    defer { for launch in launches { self.launch(launch) } }
    return try decide(key, hash: hash, ticket: ticket, &launches)
  }

  /// Answers a request or gives it a place to wait in, and hands out the flights that have to be
  /// launched for it, also when it throws.
  func decide(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    _ launches: inout [Launch<Key, Value>]
  ) throws -> Admission<Key, Value> {
    let scope = FlightScope.awaited
    let isOwn = scope.map { isFetch(of: key, $0) } ?? false
    let inquiry = Inquiry(
      key: key,
      hash: hash,
      ticket: ticket,
      now: time.now(),
      priority: Task.currentPriority,
      mayWait: !isOwn && !Task.isCancelled
    )
    var aftermath = makeAftermath()
    let verdict = stripes.withLock(hash: hash) { stripe in
      stripe.admit(inquiry, staleTime: staleTime, source: source, &aftermath)
    }
    launches += aftermath.launches
    aftermath.launches = []
    carryOut(aftermath)
    switch verdict {
    case .answered(let answer):
      return .answered(answer)
    case .failed(let error):
      throw error
    case .waits(let flight, let place):
      guard let scope, let chain = WaitGraph.wait(scope, for: flight.mark) else {
        return .waits(flight, place, scope: scope)
      }
      leave(flight, place, scope: nil)
      flight.waiters.giveBack(place)
      throw MultiplexerError.recursiveRequest(chain: chain)
    case .refused:
      guard isOwn, let label = scope?.label else { throw CancellationError() }
      throw MultiplexerError.recursiveRequest(chain: [label, label])
    }
  }

  /// Whether a flight fetches this key of this multiplexer.
  private func isFetch(of key: Key, _ node: any FlightNode) -> Bool {
    guard let mark = node as? FlightMark<Key> else { return false }
    return mark.source === source && mark.key == key
  }

  /// A caller leaves early.
  @usableFromInline
  func leave(_ flight: Flight<Key, Value>, _ place: WaitPlace, scope: (any FlightNode)?) {
    let departure = flight.waiters.leave(place)
    if departure.hasLeft, let scope { WaitGraph.stopWaiting(scope, for: flight.mark) }
    if departure.isLast, policy.whenUnobserved == .cancel { abandon(flight) }
    departure.resume()
  }

  /// Cancels a flight that nobody waits for, unless it goes on for another reason.
  private func abandon(_ flight: Flight<Key, Value>) {
    var aftermath = makeAftermath()
    stripes.withLock(hash: flight.hash) { $0.abandon(flight, &aftermath) }
    carryOut(aftermath)
  }
}

/// What a request asks for, and under which circumstances.
struct Inquiry<Key: Hashable & Sendable>: Sendable {
  let key: Key
  let hash: UInt64
  /// The newest refresh that the caller insists on.
  let ticket: RefreshTicket
  let now: Nanoseconds
  let priority: TaskPriority
  /// Whether the caller may wait.
  let mayWait: Bool
}

/// What a request comes to before it suspends.
@usableFromInline
enum Admission<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  case answered(Answer<Value>)
  /// It waits for a flight, in a place of its own, on behalf of the flight that it works for.
  case waits(Flight<Key, Value>, WaitPlace, scope: (any FlightNode)?)
}

/// What the state of a key has to say about a request.
enum Verdict<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  case answered(Answer<Value>)
  case failed(any Error)
  case waits(Flight<Key, Value>, WaitPlace)
  case refused
}

extension Stripe {
  /// Answers a request or gives it a place to wait in.
  mutating func admit(
    _ inquiry: Inquiry<Key>,
    staleTime: Nanoseconds,
    source: FlightSource,
    _ aftermath: inout Aftermath<Key, Value>
  ) -> Verdict<Key, Value> {
    let index = place(of: inquiry.key, hash: inquiry.hash)
    let next = nextFlight
    if self[index].value != nil { noteUse(index) }
    let effects = self[index].request(
      ticket: inquiry.ticket,
      at: inquiry.now,
      staleTime: staleTime,
      next: next,
      mayWait: inquiry.mayWait
    )
    var flightOfItsOwn: Flight<Key, Value>?
    if effects.startsFlight {
      let flight = makeFlight(
        for: inquiry.key,
        hash: inquiry.hash,
        source: source,
        priority: inquiry.priority
      )
      if self[index].value != nil, self[index].isExpired(at: inquiry.now) {
        aftermath.note(inquiry.key) { .expired(key: $0) }
      }
      launch(flight.id, index: index, takesStoredCopy: inquiry.ticket.isNone, &aftermath)
      if holds > 0 {
        // It is cut off from its beginning: its result is for those who wait now.
        _ = self[index].giveUp(flight.id)
        flightOfItsOwn = removeFlight(flight.id, &aftermath)
      } else {
        publish(index, &aftermath)
      }
    }
    let state = self[index]
    switch effects.answer {
    case .fresh:
      statistics.hits += 1
    case .stale:
      statistics.staleHits += 1
    case .failure:
      return standIn(for: state, at: inquiry.now)
    case .waits(let id):
      if effects.startsFlight { statistics.misses += 1 } else { statistics.joins += 1 }
      // A flight that its state waits for is among the flights: both change together.
      guard let flight = flightOfItsOwn ?? flights[id] else { return .refused }
      if flightOfItsOwn != nil { removeIfEmpty(index, &aftermath) }
      return .waits(flight, flight.waiters.join())
    case .refused:
      removeIfEmpty(index, &aftermath)
      return .refused
    }
    guard let value = state.value else { return .refused }
    return .answered(
      Answer(
        value: value,
        source: .memory,
        storedAt: state.storedAt,
        isStale: effects.answer == .stale,
        error: effects.answer == .stale ? state.details.failure?.error : nil
      )
    )
  }

  /// What a request gets in place of a fetch, of which it is remembered that it failed.
  private mutating func standIn(for state: State, at now: Nanoseconds) -> Verdict<Key, Value> {
    guard let failure = state.details.failure else { return .refused }
    guard let value = state.value, state.copy?.mayStandIn(failure.grounds, at: now) == true else {
      statistics.misses += 1
      return .failed(failure.error)
    }
    statistics.staleHits += 1
    return .answered(
      Answer(
        value: value,
        source: .memory,
        storedAt: state.storedAt,
        isStale: true,
        error: failure.error
      )
    )
  }

  /// Nobody waits for a flight any more, and the policy is to cancel it then.
  mutating func abandon(_ flight: Flight<Key, Value>, _ aftermath: inout Aftermath<Key, Value>) {
    // Somebody may have come since.
    guard flight.waiters.count == 0, !flight.waiters.isFinished else { return }
    guard flights[flight.id] != nil else {
      aftermath.cancels.append(flight)
      return
    }
    guard let index = keys.index(of: flight.key, hash: flight.hash) else { return }
    let before = self[index]
    let effects = self[index].abandon(flight.id)
    guard effects.isCurrent else { return }
    aftermath.states.append(before)
    removeFlight(flight.id, &aftermath)
    aftermath.cancels.append(flight)
    ended(index, startsFlight: effects.startsFlight, &aftermath)
  }

  /// A flight has ended: announces the state, and begins what was queued.
  mutating func ended(
    _ index: Int,
    startsFlight next: FlightID?,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    if let next { launch(next, index: index, &aftermath) }
    publish(index, &aftermath)
    if next == nil { removeIfEmpty(index, &aftermath) }
  }
}
