internal import Synchronization

/// The limit of a cache for the fetches that run at the same time.
///
/// A fetch enters, waits for its place, and leaves once its work for the origin is done: after each attempt, if another one
/// follows. It enters on the thread that launches it, so that fetches wait in the order in which they were requested.
///
/// A fetch that a fetch with a place waits for, directly or through others, uses that place: the other one does nothing
/// meanwhile, and would wait for itself. The graph of waits is searched when a fetch begins to wait for a place, when a wait
/// is recorded, and when a place has nothing left above a fetch. The locks of the graph and of a limit are never acquired one
/// under the other in the wrong order: the graph asks limits for their holders, and a limit asks nothing under its lock.
@usableFromInline
final class FetchLimit: Sendable {
  /// The end of the wait for a place.
  @usableFromInline
  enum Admission: Hashable, Sendable {
    case granted
    /// Too many others wait.
    case refused
    /// The fetch was cancelled.
    case cancelled
  }

  /// The place of a fetch, which a call uses until it is released.
  struct Hold: Sendable {
    fileprivate let flight: Flight
    fileprivate let place: FetchLimitState<ObjectIdentifier>.Hold
  }

  /// A fetch that has entered and not left.
  struct Guest: Sendable {
    let flight: Flight
    /// The end of its wait; `nil` if it had a place at once.
    var admission: OneShot<Admission>?
  }

  struct State: Sendable {
    var places: FetchLimitState<ObjectIdentifier>
    var guests: [ObjectIdentifier: Guest] = [:]
    /// The fetches that have entered as parts of others.
    var parts: [ObjectIdentifier: [ObjectIdentifier]] = [:]
    /// The fetches with calls that use a place, and the numbers of the calls.
    var held: [ObjectIdentifier: (flight: Flight, count: Int)] = [:]
    /// The fetches that wait for a place and that a work waits for, the last one first, as they were when it was asked.
    var lines: [ObjectIdentifier: [ObjectIdentifier]] = [:]

    /// Returns the fetch of a work.
    func flight(of work: ObjectIdentifier) -> Flight? {
      if let flight = guests[work]?.flight ?? held[work]?.flight { return flight }
      if let part = parts[work]?.first { return guests[part]?.flight.whole }
      return held.values.first { ObjectIdentifier($0.flight.whole) == work }?.flight.whole
    }
  }

  /// The work that remains after unlocking.
  private struct Effects: Sendable {
    /// Waits that have ended.
    var ended: [(wait: OneShot<Admission>, admission: Admission)] = []
    /// Fetches whose places are free for fetches that they wait for.
    var exposed: [Flight] = []
    /// Fetches to be released.
    var released: [Flight] = []

    func perform() {
      for (wait, admission) in ended { wait.set(admission) }
    }
  }

  /// The number of fetches of all caches that wait for a place.
  static let waitingCount = Atomic<Int>(0)

  /// The number of recorded waits of fetches with a limit, and of those with this one.
  static let nestedCount = Atomic<Int>(0)
  let ownNestedCount = Atomic<Int>(0)

  /// Whether any fetch waits for a place.
  static var isAnyWaiting: Bool { waitingCount.load(ordering: .sequentiallyConsistent) > 0 }

  /// Whether fetches take leases of a shared tier, so that they have a place before they look there, and keep it between
  /// their attempts.
  let isBeforeLeases: Bool
  let state: Locked<State>
  private let isFullNow = Atomic<Bool>(false)
  private let isCrowdedNow = Atomic<Bool>(false)

  /// - Parameters:
  ///   - maximum: The maximum number of fetches that run at the same time.
  ///   - maximumWaiting: The maximum number of fetches that wait for that; `nil` for no limit.
  ///   - isBeforeLeases: Whether fetches take leases of a shared tier.
  @usableFromInline
  init(_ maximum: Int, maximumWaiting: Int?, isBeforeLeases: Bool) {
    self.isBeforeLeases = isBeforeLeases
    state = Locked(State(places: FetchLimitState(placeCount: maximum, room: maximumWaiting)))
  }

  /// Whether a fetch for a caller would be refused now.
  @usableFromInline var isFull: Bool { isFullNow.load(ordering: .relaxed) }

  /// Whether a fetch without callers would be refused now.
  @usableFromInline var isCrowded: Bool { isCrowdedNow.load(ordering: .relaxed) }

  /// The numbers of places that are used, and of fetches that wait.
  var counts: (running: Int, waiting: Int) {
    state.withLock { ($0.places.runningCount, $0.places.waitingCount) }
  }

  private func change<Result>(_ body: (inout State, inout Effects) -> Result) -> Result {
    var effects = Effects()
    let result = state.withLock { state in
      let before = state.places.waitingCount
      let result = body(&state, &effects)
      let added = state.places.waitingCount - before
      if added != 0 { Self.waitingCount.add(added, ordering: .sequentiallyConsistent) }
      isFullNow.store(state.places.isFull, ordering: .relaxed)
      isCrowdedNow.store(state.places.isCrowded, ordering: .relaxed)
      return result
    }
    effects.perform()
    for flight in effects.exposed { offer(placeOf: flight) }
    return result
  }

  // MARK: - Entering

  /// Asks for a place for a fetch that has not entered.
  ///
  /// - Parameters:
  ///   - flight: The fetch.
  ///   - other: Another part of the same work, whose place it shares if that has one.
  @usableFromInline
  func enter(_ flight: Flight, beside other: Flight? = nil) {
    // A part whose call continues after its time limit waits for another place.
    let other = other ?? (flight.whole === flight || isHeld(flight) ? nil : flight.whole)
    if let other, share(placeOf: other, with: flight) { return }
    let hosts = hosts(of: flight)
    if let free = hosts.free, use(placeOf: free, for: flight, isNew: true) { return }
    let admission = OneShot<Admission>()
    let (hasCallers, priority) = (flight.hasCallers, flight.priority)
    let waits = change { state, effects in
      let id = ObjectIdentifier(flight)
      let arrival = state.places.arrive(
        id,
        of: ObjectIdentifier(flight.whole),
        hasCallers: hasCallers,
        priority: priority,
        isNested: hosts.free != nil || hosts.hasBusy
      )
      add(Guest(flight: flight, admission: arrival == .begins ? nil : admission), &state)
      switch arrival {
      case .begins: return false
      case .refused:
        effects.ended.append((admission, .refused))
        return false
      case .waits(let displaced):
        if let displaced, let other = state.guests[displaced]?.admission {
          effects.ended.append((other, .refused))
        }
        return true
      }
    }
    // A wait for it can have been recorded meanwhile, or its callers can have changed.
    guard waits else { return }
    resolve(flight)
    if flight.hasCallers != hasCallers { updateCallers(of: flight) }
    raise(flight, to: flight.priority)
  }

  private func add(_ guest: Guest, _ state: inout State) {
    let id = ObjectIdentifier(guest.flight)
    state.guests[id] = guest
    let whole = ObjectIdentifier(guest.flight.whole)
    if whole != id { state.parts[whole, default: []].append(id) }
  }

  /// Lets a fetch share the place of another part of its work.
  private func share(placeOf other: Flight, with flight: Flight) -> Bool {
    change { state, _ in
      let (id, work) = (ObjectIdentifier(flight), ObjectIdentifier(flight.whole))
      guard state.places.arrive(id, of: work, beside: ObjectIdentifier(other.whole)) else {
        return false
      }
      add(Guest(flight: flight), &state)
      return true
    }
  }

  /// Lets a fetch use the place of another one that waits for it, unless something else uses that meanwhile.
  ///
  /// - Parameters:
  ///   - host: The other fetch.
  ///   - flight: The fetch.
  ///   - isNew: Whether it enters now. Otherwise it must still wait: it can have got another place, and left that, since
  ///     it was found.
  /// - Returns: Whether it uses the place.
  func use(placeOf host: Flight, for flight: Flight, isNew: Bool = false) -> Bool {
    change { state, effects in
      let (id, work) = (ObjectIdentifier(flight), ObjectIdentifier(flight.whole))
      guard isNew || state.places.isWaiting(id),
        state.places.arrive(id, of: work, above: ObjectIdentifier(host.whole))
      else { return false }
      if isNew {
        add(Guest(flight: flight), &state)
      } else if let admission = state.guests[id]?.admission {
        effects.ended.append((admission, .granted))
      }
      return true
    }
  }

  /// Waits for the place of a fetch that has entered.
  @usableFromInline
  func admission(of flight: Flight) async -> Admission {
    let guest = state.withLock { $0.guests[ObjectIdentifier(flight)] }
    guard let guest else { return .cancelled }
    guard let admission = guest.admission else { return .granted }
    return await withTaskCancellationHandler {
      await admission.value()
    } onCancel: {
      _ = change { state, _ in state.places.withdraw(ObjectIdentifier(flight)) }
      admission.set(.cancelled)
    }
  }

  /// Returns whether a fetch has entered.
  @usableFromInline
  func hasEntered(_ flight: Flight) -> Bool {
    state.withLock { $0.guests[ObjectIdentifier(flight)] != nil }
  }

  /// Returns whether a fetch has entered and has its place.
  func isInside(_ flight: Flight) -> Bool {
    state.withLock { $0.places.isInside(ObjectIdentifier(flight)) }
  }

  // MARK: - Waiting

  /// Returns the fetches of several keys of which a fetch is one: all of it, and the part that comes later.
  private func batches(of flight: Flight) -> [BulkFlight] {
    guard let batch = flight.batch else { return [] }
    return state.withLock { state in
      let parts = state.parts[ObjectIdentifier(batch)] ?? []
      return [batch]
        + parts.compactMap { state.guests[$0]?.flight as? BulkFlight }
        .filter { $0.parts.contains { $0 === flight } }
    }
  }

  /// Raises the priority of a fetch that waits.
  func raise(_ flight: Flight, to priority: PriorityLevel) {
    guard Self.isAnyWaiting else { return }
    let guests = [flight] + batches(of: flight)
    change { state, _ in
      for guest in guests { state.places.raise(ObjectIdentifier(guest), to: priority) }
    }
  }

  /// Lets a fetch that waits go before the ones without callers, or among them, as its callers are now.
  @usableFromInline
  func updateCallers(of flight: Flight) {
    guard Self.isAnyWaiting else { return }
    setCallers(of: flight)
    for batch in batches(of: flight) { setCallers(of: batch) }
  }

  private func setCallers(of flight: Flight) {
    // Callers of other keys of a batch can join or leave at the same time: the last one that changes it is right.
    var hasCallers = flight.hasCallers
    while true {
      change { state, _ in state.places.setCallers(hasCallers, of: ObjectIdentifier(flight)) }
      let present = flight.hasCallers
      if present == hasCallers { return }
      hasCallers = present
    }
  }

  /// Removes a fetch from the queue, unless it is one of several keys that wait together.
  ///
  /// - Returns: Whether it has waited. It is cancelled next, which ends its wait.
  func withdraw(_ flight: Flight) -> Bool {
    guard Self.isAnyWaiting else { return false }
    let batches = batches(of: flight)
    return change { state, _ in
      if batches.contains(where: { state.places.isWaiting(ObjectIdentifier($0)) }) { return true }
      return state.places.withdraw(ObjectIdentifier(flight))
    }
  }

  /// Removes a cancelled fetch from the queue, and ends its wait: it can wait in a task that continues.
  func forget(_ flight: Flight) {
    endWait(of: flight, with: .cancelled)
  }

  /// Ends the wait of a fetch, unless it has its place.
  ///
  /// It can have been withdrawn, so that none is in the queue.
  private func endWait(of flight: Flight, with admission: Admission) {
    change { state, effects in
      let id = ObjectIdentifier(flight)
      _ = state.places.withdraw(id)
      guard !state.places.isInside(id), let wait = state.guests[id]?.admission else { return }
      effects.ended.append((wait, admission))
    }
  }

  // MARK: - Leaving

  /// Ends the visit of a fetch, if it has entered.
  @usableFromInline
  func leave(_ flight: Flight) {
    change { state, effects in
      let (id, whole) = (ObjectIdentifier(flight), ObjectIdentifier(flight.whole))
      if let guest = state.guests.removeValue(forKey: id) { effects.released.append(guest.flight) }
      if whole != id {
        state.parts[whole]?.removeAll { $0 == id }
        if state.parts[whole]?.isEmpty == true { state.parts[whole] = nil }
      }
      settle(state.places.leave(id), &state, &effects)
      if !state.places.hasPlace(whole) { state.lines[whole] = nil }
    }
  }

  /// Keeps the place of a fetch until it is released: also after the fetch has left.
  ///
  /// - Returns: The place, if the fetch has one.
  func hold(_ flight: Flight) -> Hold? {
    change { state, _ in
      let place =
        state.places.hold(ObjectIdentifier(flight))
        ?? state.places.hold(ObjectIdentifier(flight.whole))
      guard let place else { return nil }
      state.held[ObjectIdentifier(flight), default: (flight, 0)].count += 1
      return Hold(flight: flight, place: place)
    }
  }

  /// Ends what ``hold(_:)`` has begun.
  func release(_ hold: Hold) {
    change { state, effects in
      let (id, whole) = (ObjectIdentifier(hold.flight), ObjectIdentifier(hold.flight.whole))
      settle(state.places.release(hold.place), &state, &effects)
      if let count = state.held[id]?.count {
        if count > 1 { state.held[id]?.count -= 1 } else { state.held[id] = nil }
      }
      // The next attempt of a part has waited for this call, or for another place than that of the whole.
      if whole != id, state.held[id] == nil, state.places.isWaiting(id),
        state.places.arrive(id, of: whole, beside: whole),
        let admission = state.guests[id]?.admission
      {
        effects.ended.append((admission, .granted))
      }
      if !state.places.hasPlace(whole) { state.lines[whole] = nil }
    }
  }

  /// Returns whether calls of a fetch use a place.
  func isHeld(_ flight: Flight) -> Bool {
    state.withLock { $0.held[ObjectIdentifier(flight)] != nil }
  }

  private func settle(
    _ departure: FetchLimitState<ObjectIdentifier>.Departure,
    _ state: inout State,
    _ effects: inout Effects
  ) {
    if let id = departure.granted, let admission = state.guests[id]?.admission {
      effects.ended.append((admission, .granted))
    }
    guard state.places.waitingCount > 0 else { return }
    effects.exposed += departure.exposed.compactMap { state.flight(of: $0) }
  }

  /// Gives back the place of a fetch until ``takeBack(placeOf:within:on:)``, if the fetch has entered.
  ///
  /// - Returns: Whether it has.
  func giveBack(placeOf flight: Flight) -> Bool {
    guard hasEntered(flight) else { return false }
    leave(flight)
    return true
  }

  /// Waits for another place for a fetch that has given back the one before.
  ///
  /// - Parameters:
  ///   - flight: The fetch.
  ///   - timeout: The time after which it is refused, if there is one.
  ///   - clock: The clock for that time.
  /// - Returns: The end of the wait.
  func takeBack(
    placeOf flight: Flight,
    within timeout: Duration? = nil,
    on clock: any Clock<Duration>
  ) async -> Admission {
    enter(flight)
    guard let timeout, !isInside(flight) else { return await admission(of: flight) }
    let timer = clock.timer(timeout) { self.endWait(of: flight, with: .refused) }
    defer { timer.cancel() }
    return await admission(of: flight)
  }
}
