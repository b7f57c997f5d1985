// Fetches that wait for each other.

internal import Synchronization

extension FetchLimit {
  /// Returns whether a fetch, or a part of it, has a place, or a call of it.
  func hasPlace(_ work: Flight) -> Bool {
    state.withLock { $0.places.hasPlace(ObjectIdentifier(work)) }
  }

  /// Returns whether a fetch waits for a place while another one has one.
  func waits(_ flight: Flight, forPlaceOf holder: Flight) -> Bool {
    Self.isAnyWaiting && hasPlace(holder) && waitingGuest(flight) != nil
  }

  /// The fetches whose places a fetch waits for; none if it does not wait.
  ///
  /// They matter to fetches that wait for the places of other limits, if fetches with these limits wait for others.
  func holders(blocking flight: Flight) -> [Flight] {
    let count = Self.waitingCount.load(ordering: .sequentiallyConsistent)
    let nestedCount = Self.nestedCount.load(ordering: .sequentiallyConsistent)
    guard count > 0, nestedCount > ownNestedCount.load(ordering: .sequentiallyConsistent),
      waitingGuest(flight) != nil
    else { return [] }
    return state.withLock { state in
      guard count > state.places.waitingCount else { return [] }
      return state.places.works.compactMap { state.flight(of: $0) }
    }
  }

  /// Returns the fetch that waits, as which callers wait for a node.
  private func waitingGuest(_ node: Flight) -> Flight? {
    state.withLock { state in
      let id = ObjectIdentifier(node)
      if state.places.isWaiting(id) { return node }
      // A part of a fetch of several keys.
      let part = state.parts[id]?.first { state.places.isWaiting($0) }
      return part.flatMap { state.guests[$0]?.flight }
    }
  }

  /// Counts a recorded wait of a fetch with a limit.
  static func noteWait(of node: WaitNode) {
    guard let limit = (node as? Flight)?.limit else { return }
    nestedCount.add(1, ordering: .sequentiallyConsistent)
    limit.ownNestedCount.add(1, ordering: .sequentiallyConsistent)
  }

  /// Ends what ``noteWait(of:)`` has begun.
  static func noteEndOfWait(of node: WaitNode) {
    guard let limit = (node as? Flight)?.limit else { return }
    limit.ownNestedCount.subtract(1, ordering: .sequentiallyConsistent)
    nestedCount.subtract(1, ordering: .sequentiallyConsistent)
  }

  /// Returns the fetches with a place that wait for another one, directly or through others: one whose place it can use,
  /// and whether there are others, above which something is running.
  ///
  /// - Parameters:
  ///   - flight: The other fetch.
  ///   - waiter: The node whose wait for it is new, if the others are known not to be such fetches.
  /// - Returns: The fetches.
  func hosts(of flight: Flight, behind waiter: WaitNode? = nil) -> (free: Flight?, hasBusy: Bool) {
    guard !WaitGraph.isEmpty else { return (nil, false) }
    var hasBusy = false
    let isFree = { (node: WaitNode) in
      guard let node = node as? Flight, node.limit === self else { return false }
      let (isExposed, hasPlace) = self.state.withLock { state in
        let id = ObjectIdentifier(node)
        return (state.places.isExposed(id), state.places.hasPlace(id))
      }
      if hasPlace, !isExposed { hasBusy = true }
      return isExposed
    }
    if let waiter, isFree(waiter) { return (waiter as? Flight, hasBusy) }
    let host = WaitGraph.waiter(for: waiter ?? flight.whole, in: self, where: isFree)
    return (host as? Flight, hasBusy)
  }

  /// Lets a fetch that waits use the place of one that waits for it, if there is one.
  func resolve(_ node: Flight, behind waiter: WaitNode? = nil) {
    guard let flight = waitingGuest(node),
      let host = hosts(of: flight, behind: waiter).free
    else { return }
    _ = use(placeOf: host, for: flight)
  }

  /// Lets fetches that wait for places use those of fetches that wait for them, after a wait was recorded.
  static func resolve(afterWaitOf node: WaitNode, for target: WaitNode) {
    guard isAnyWaiting else { return }
    for case let flight as Flight in WaitGraph.nodes(reachableFrom: target) {
      flight.limit?.resolve(flight, behind: node)
    }
  }

  /// Lets one of the fetches that a fetch waits for use its place, above which nothing is left.
  func offer(placeOf host: Flight) {
    var isAsked = false
    while true {
      while let next = nextInLine(of: host) {
        let waiter = WaitGraph.waiter(for: next.whole, in: self) { $0 === host }
        if waiter != nil, use(placeOf: host, for: next) { return }
      }
      // Asked once for many, as long as they are enough.
      if isAsked || !makeLine(of: host) { return }
      isAsked = true
    }
  }

  /// Removes the next fetch from the line of a fetch whose place is free for it.
  private func nextInLine(of host: Flight) -> Flight? {
    state.withLock { state in
      let id = ObjectIdentifier(host)
      guard state.places.isExposed(id) else { return nil }
      while let next = state.lines[id]?.popLast() {
        if state.places.isWaiting(next) { return state.guests[next]?.flight }
      }
      return nil
    }
  }

  /// Looks for the fetches that wait for a place and that a fetch with a place waits for.
  ///
  /// - Returns: Whether there are any.
  private func makeLine(of host: Flight) -> Bool {
    let waiting = WaitGraph.nodes(reachableFrom: host).compactMap { node in
      (node as? Flight).flatMap { $0.limit === self ? waitingGuest($0) : nil }
    }
    if waiting.isEmpty { return false }
    return state.withLock { state in
      guard state.places.isExposed(ObjectIdentifier(host)) else { return false }
      var line = waiting.map { ObjectIdentifier($0) }.filter { state.places.isWaiting($0) }
      line.sort { state.places.isNext($1, before: $0) }
      state.lines[ObjectIdentifier(host)] = line
      return true
    }
  }
}
