import TestSupport
import Testing

@testable import Plexus

/// A node that runs an action when the graph asks for the second time whether it is over.
private final class TrapNode: WaitNode, @unchecked Sendable {
  let rest = Guarded(-1)
  let action = Guarded<(@Sendable () -> Void)?>(nil)

  override var isOver: Bool {
    let isNow = rest.withLock { rest in
      rest -= 1
      return rest == 0
    }
    if isNow { action.withLock { $0 }?() }
    return false
  }
}

/// Fetches that get and leave places while another thread looks for one whose place they could use.
@Suite struct `The hosts of a fetch that waits` {
  @Test func `a fetch that ends while its host is looked for takes no place again`() {
    let limit = FetchLimit(2, maximumWaiting: nil, isBeforeLeases: false)
    let source = Flight.Source(id: "a", type: Int.self, namesKeys: false, limit: limit)
    let (host, other, nested) = (
      Flight(source: source), Flight(source: source), Flight(source: source)
    )
    let trap = TrapNode()
    for flight in [host, other, nested] { limit.enter(flight) }
    #expect(limit.counts == (2, 1))
    #expect(WaitGraph.wait(trap, for: nested) == nil)
    // What another thread does between the look for the fetch that waits and its move.
    trap.action.withLock { action in
      action = {
        limit.leave(other)
        limit.leave(nested)
      }
    }
    trap.rest.withLock { $0 = 2 }
    #expect(WaitGraph.wait(host, for: trap) == nil)
    WaitGraph.stopWaiting(host, for: trap)
    WaitGraph.stopWaiting(trap, for: nested)
    limit.leave(host)
    #expect(trap.rest.withLock { $0 } <= 0)
    #expect(limit.counts == (0, 0))
  }

  @Test func `a fetch that is cancelled while its host is looked for takes no place again`() {
    let limit = FetchLimit(1, maximumWaiting: nil, isBeforeLeases: false)
    let source = Flight.Source(id: "a", type: Int.self, namesKeys: false, limit: limit)
    let (host, nested) = (Flight(source: source), Flight(source: source))
    let trap = TrapNode()
    for flight in [host, nested] { limit.enter(flight) }
    #expect(WaitGraph.wait(trap, for: nested) == nil)
    trap.action.withLock { action in
      action = {
        nested.cancel()
        limit.leave(nested)
      }
    }
    trap.rest.withLock { $0 = 2 }
    #expect(WaitGraph.wait(host, for: trap) == nil)
    WaitGraph.stopWaiting(host, for: trap)
    WaitGraph.stopWaiting(trap, for: nested)
    limit.leave(host)
    #expect(limit.counts == (0, 0))
  }
}
