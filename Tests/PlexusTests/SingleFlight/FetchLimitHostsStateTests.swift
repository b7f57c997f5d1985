import TestSupport
import Testing

@testable import Plexus

/// A node that runs an action once when the graph asks whether it is over.
private final class TrapNode: WaitNode, @unchecked Sendable {
  let action = Guarded<(@Sendable () -> Void)?>(nil)

  override var isOver: Bool {
    action.withLock { $0.take() }?()
    return false
  }
}

/// Fetches that get and leave places while another thread looks for one whose place they could use.
@Suite struct `The hosts of a fetch that waits` {
  /// Lets a fetch with a place wait for another one, while another thread does something.
  ///
  /// - Parameters:
  ///   - host: The fetch with a place.
  ///   - nested: The other one.
  ///   - action: What another thread does between the look for the fetch that waits and its move.
  private func wait(
    _ host: Flight,
    for nested: Flight,
    during action: @escaping @Sendable () -> Void
  ) {
    let (middle, last) = (TrapNode(), TrapNode())
    let waits: [(WaitNode, WaitNode)] = [(host, middle), (middle, last), (last, nested)]
    for (node, target) in waits.dropLast() { #expect(WaitGraph.wait(node, for: target) == nil) }
    middle.action.withLock { $0 = action }
    #expect(WaitGraph.wait(last, for: nested) == nil)
    for (node, target) in waits { WaitGraph.stopWaiting(node, for: target) }
    #expect(middle.action.withLock { $0 } == nil)
  }

  private func flights(_ maximum: Int, _ count: Int) -> (FetchLimit, [Flight]) {
    let limit = FetchLimit(maximum, maximumWaiting: nil, isBeforeLeases: false)
    let source = Flight.Source(id: "a", type: Int.self, namesKeys: false, limit: limit)
    let flights = (0..<count).map { _ in Flight(source: source) }
    for flight in flights { limit.enter(flight) }
    return (limit, flights)
  }

  @Test func `a fetch that waits uses the place of one that waits for it`() {
    let (limit, flights) = flights(1, 2)
    #expect(limit.counts == (1, 1))
    wait(flights[0], for: flights[1]) {}
    #expect(limit.isInside(flights[1]))
    for flight in flights { limit.leave(flight) }
    #expect(limit.counts == (0, 0))
  }

  @Test(arguments: [false, true])
  func `a cancelled fetch that waits in the task of others ends its wait`(
    isWithdrawn: Bool
  ) async {
    let (limit, flights) = flights(1, 2)
    let admission = Task { await limit.admission(of: flights[1]) }
    // As when its last caller leaves: then no fetch of the process waits.
    if isWithdrawn { #expect(limit.withdraw(flights[1])) }
    flights[1].cancel()
    #expect(await admission.value == .cancelled)
    for flight in flights { limit.leave(flight) }
    #expect(limit.counts == (0, 0))
  }

  @Test func `the next attempt of a part shares the place of the whole again`() {
    let (limit, flights) = flights(1, 0)
    let source = Flight.Source(id: "a", type: Int.self, namesKeys: false, limit: limit)
    let keys = (0..<2).map { _ in Flight(source: source) }
    let whole = BulkFlight(keys)
    let part = BulkFlight([keys[1]], partOf: whole)
    limit.enter(whole)
    let call = limit.hold(part)
    // The call continues after its time limit: the next attempt waits for its end, or for another place.
    limit.enter(part)
    #expect(limit.counts == (1, 1))
    if let call { limit.release(call) }
    #expect(limit.isInside(part))
    for flight in [part, whole] + flights { limit.leave(flight) }
    #expect(limit.counts == (0, 0))
  }

  @Test func `a fetch that ends while its host is looked for takes no place again`() {
    let (limit, flights) = flights(2, 3)
    #expect(limit.counts == (2, 1))
    wait(flights[0], for: flights[2]) {
      limit.leave(flights[1])
      limit.leave(flights[2])
    }
    limit.leave(flights[0])
    #expect(limit.counts == (0, 0))
  }

  @Test func `a fetch that is cancelled while its host is looked for takes no place again`() {
    let (limit, flights) = flights(1, 2)
    wait(flights[0], for: flights[1]) {
      flights[1].cancel()
      limit.leave(flights[1])
    }
    limit.leave(flights[0])
    #expect(limit.counts == (0, 0))
  }
}
