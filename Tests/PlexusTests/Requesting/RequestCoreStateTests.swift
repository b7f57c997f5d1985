import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A flight that was left` {
  @Test func `R6: goes on for a caller who has come since the last one left`() async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let gate = Gate()
    let core = RequestCore<Int, Int>(
      name: "numbers",
      namesKeys: true,
      policy: policy,
      clock: ManualClock()
    ) { key, _ in
      try await gate.wait()
      return .value(key)
    }
    let hash = core.hasher.hash(7)
    func join() throws -> (Flight<Int, Int>, WaitPlace) {
      switch try core.admit(7, hash: hash, ticket: .none) {
      case .waits(let flight, let place, _): return (flight, place)
      case .answered: throw Broken(reason: "There was nothing to wait for")
      }
    }
    func abandon(_ flight: Flight<Int, Int>) -> Bool {
      var aftermath = core.makeAftermath()
      core.stripes.withLock(hash: hash) { $0.abandon(flight, &aftermath) }
      core.carryOut(aftermath)
      return flight.work.isCancelled
    }
    let (flight, first) = try join()
    #expect(flight.waiters.leave(first).isLast)
    // The last caller is about to abandon the flight when another one comes.
    let (same, second) = try join()
    #expect(same === flight)
    #expect(!abandon(flight))
    #expect(flight.waiters.leave(second).isLast)
    #expect(abandon(flight))
  }
}
