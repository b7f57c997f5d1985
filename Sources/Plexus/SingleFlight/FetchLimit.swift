internal import Synchronization

/// The limit of a cache for the fetches that run at the same time.
///
/// A fetch enters, waits for its place, and leaves once its work for the origin is done: after each attempt, if another one
/// follows. It enters on the thread that launches it, so that fetches wait in the order in which they were requested.
///
/// A fetch that a fetch with a place waits for, directly or through others, uses that place: the other one does nothing
/// meanwhile, and would wait for itself. The graph of waits is searched when a fetch begins to wait for a place, and when a
/// wait is recorded. The locks of the graph and of a limit are never acquired one under the other in the wrong order: the
/// graph asks limits for their holders, and a limit asks nothing under its lock.
@usableFromInline
final class FetchLimit: Sendable {
  typealias Place = FetchLimitState<ObjectIdentifier>.Place

  /// The end of the wait for a place.
  enum Admission: Hashable, Sendable {
    case granted
    /// Too many others wait.
    case refused
    /// The fetch was cancelled.
    case cancelled
  }

  /// A fetch that has entered and not left.
  private struct Guest: Sendable {
    let flight: Flight
    /// The end of its wait; `nil` if it had a place at once.
    var admission: OneShot<Admission>?
  }

  private struct State: Sendable {
    var places: FetchLimitState<ObjectIdentifier>
    var guests: [ObjectIdentifier: Guest] = [:]
  }

  /// The work that remains after unlocking.
  private struct Effects: Sendable {
    var granted: [OneShot<Admission>] = []
    var refused: [OneShot<Admission>] = []
    /// Guests to be released.
    var released: [Guest] = []

    func perform() {
      for admission in granted { admission.set(.granted) }
      for admission in refused { admission.set(.refused) }
    }
  }

  /// The number of fetches of all caches that wait for a place.
  private static let waitingCount = Atomic<Int>(0)

  /// Whether any fetch waits for a place.
  static var isAnyWaiting: Bool { waitingCount.load(ordering: .sequentiallyConsistent) > 0 }

  /// Whether fetches take leases of a shared tier, so that they have a place before they look there, and keep it between
  /// their attempts.
  let isBeforeLeases: Bool
  private let state: Locked<State>
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
    return result
  }

  // MARK: - Entering

  /// Asks for a place for a fetch that has not entered.
  ///
  /// - Parameters:
  ///   - flight: The fetch.
  ///   - host: The fetch whose place it uses if that has one: another part of the same work.
  @usableFromInline
  func enter(_ flight: Flight, inPlaceOf host: Flight? = nil) {
    if let host, use(placeOf: host, for: flight) { return }
    if let holder = holder(waitingFor: flight), use(placeOf: holder, for: flight) { return }
    let admission = OneShot<Admission>()
    let (hasCallers, priority) = (flight.hasCallers, flight.priority)
    let waits = change { state, effects in
      let id = ObjectIdentifier(flight)
      let arrival = state.places.arrive(id, hasCallers: hasCallers, priority: priority)
      state.guests[id] = Guest(flight: flight, admission: arrival == .begins ? nil : admission)
      switch arrival {
      case .begins: return false
      case .refused:
        effects.refused.append(admission)
        return false
      case .waits(let displaced):
        if let displaced, let other = state.guests[displaced]?.admission {
          effects.refused.append(other)
        }
        return true
      }
    }
    // A wait for it can have been recorded meanwhile, or its callers can have become more.
    guard waits else { return }
    resolve(flight)
    if flight.hasCallers { addCallers(to: flight) }
    raise(flight, to: flight.priority)
  }

  /// Lets a fetch use the place of another one.
  private func use(placeOf host: Flight, for flight: Flight) -> Bool {
    change { state, effects in
      let id = ObjectIdentifier(flight)
      guard state.places.arrive(id, inPlaceOf: ObjectIdentifier(host)) else { return false }
      if let guest = state.guests[id] {
        if let admission = guest.admission { effects.granted.append(admission) }
      } else {
        state.guests[id] = Guest(flight: flight)
      }
      return true
    }
  }

  /// Waits for the place of a fetch that has entered.
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
  func hasEntered(_ flight: Flight) -> Bool {
    state.withLock { $0.guests[ObjectIdentifier(flight)] != nil }
  }

  // MARK: - Waiting

  /// Raises the priority of a fetch that waits.
  func raise(_ flight: Flight, to priority: PriorityLevel) {
    guard Self.isAnyWaiting else { return }
    change { state, _ in state.places.raise(ObjectIdentifier(flight), to: priority) }
  }

  /// Lets a fetch that waits go before the ones without callers.
  @usableFromInline
  func addCallers(to flight: Flight) {
    guard Self.isAnyWaiting else { return }
    let batch = flight.batch
    change { state, _ in
      state.places.addCallers(to: ObjectIdentifier(flight))
      if let batch { state.places.addCallers(to: ObjectIdentifier(batch)) }
    }
  }

  /// Removes a fetch from the queue, unless it is one of several keys that wait together.
  ///
  /// - Returns: Whether it has waited. It is cancelled next, which ends its wait.
  func withdraw(_ flight: Flight) -> Bool {
    guard Self.isAnyWaiting, !flight.hasBegun else { return false }
    let batch = flight.batch
    return change { state, _ in
      if let batch, state.places.isWaiting(ObjectIdentifier(batch)) { return true }
      return state.places.withdraw(ObjectIdentifier(flight))
    }
  }

  /// Removes a cancelled fetch from the queue.
  func forget(_ flight: Flight) {
    guard Self.isAnyWaiting else { return }
    change { state, _ in _ = state.places.withdraw(ObjectIdentifier(flight)) }
  }

  // MARK: - Leaving

  /// Ends the visit of a fetch, if it has entered.
  func leave(_ flight: Flight) {
    change { state, effects in
      let id = ObjectIdentifier(flight)
      if let guest = state.guests.removeValue(forKey: id) { effects.released.append(guest) }
      grant(state.places.leave(id), state, &effects)
    }
  }

  /// Keeps the place of a fetch until the place is released: also after the fetch has left.
  ///
  /// - Returns: The place, if the fetch has one.
  func hold(_ flight: Flight) -> Place? {
    change { state, _ in
      state.places.hold(ObjectIdentifier(flight))
        ?? state.places.hold(ObjectIdentifier(flight.whole))
    }
  }

  /// Ends what ``hold(_:)`` has begun.
  func release(_ place: Place) {
    change { state, effects in grant(state.places.release(place), state, &effects) }
  }

  private func grant(
    _ ids: [ObjectIdentifier],
    _ state: State,
    _ effects: inout Effects
  ) {
    effects.granted += ids.compactMap { state.guests[$0]?.admission }
  }

  /// Gives back the place of a fetch until ``takeBack(placeOf:)``, if the fetch has entered.
  ///
  /// - Returns: Whether it has.
  func giveBack(placeOf flight: Flight) -> Bool {
    guard hasEntered(flight) else { return false }
    leave(flight)
    return true
  }

  /// Waits for another place for a fetch that has given back the one before.
  func takeBack(placeOf flight: Flight) async -> Admission {
    enter(flight, inPlaceOf: flight.whole === flight ? nil : flight.whole)
    return await admission(of: flight)
  }
}

// MARK: - Fetches that wait for each other

extension FetchLimit {
  /// The fetches with a place.
  var holders: [Flight] {
    state.withLock { state in state.places.holders.compactMap { state.guests[$0]?.flight } }
  }

  /// The fetches whose places a fetch waits for; none if it does not wait.
  func holders(blocking flight: Flight) -> [Flight] {
    guard Self.isAnyWaiting else { return [] }
    return waitingGuest(flight) == nil ? [] : holders
  }

  /// Returns the fetch that waits, as which callers wait for a node.
  private func waitingGuest(_ node: Flight) -> Flight? {
    state.withLock { state in
      if state.places.isWaiting(ObjectIdentifier(node)) { return node }
      guard node is BulkFlight else { return nil }
      // A part of a fetch of several keys.
      return state.guests.values.first { guest in
        guest.flight !== node && guest.flight.whole === node
          && state.places.isWaiting(ObjectIdentifier(guest.flight))
      }?.flight
    }
  }

  /// Returns a fetch with a place that waits for another one, directly or through others.
  private func holder(waitingFor flight: Flight) -> Flight? {
    guard !WaitGraph.isEmpty else { return nil }
    let holders = holders
    return WaitGraph.first(of: holders.map(\.whole), waitingFor: flight.whole).map { holders[$0] }
  }

  /// Lets a fetch that waits use the place of one that waits for it, if there is one.
  func resolve(_ node: Flight) {
    guard let flight = waitingGuest(node), let holder = holder(waitingFor: flight) else { return }
    _ = use(placeOf: holder, for: flight)
  }

  /// Lets fetches that wait for places use those of fetches that wait for them, after a wait was recorded.
  static func resolve(afterWaitFor target: WaitNode) {
    guard isAnyWaiting else { return }
    for case let flight as Flight in WaitGraph.nodes(reachableFrom: target) {
      flight.limit?.resolve(flight)
    }
  }
}
