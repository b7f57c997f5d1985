import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A load of a publisher` {
  private let load = Flight.ofCaller()

  @Test func `a load of a publisher does not hold a caller that has left before waiting`() async {
    let place = WaitPlace.first
    let departure = load.leaveLoad(place)
    #expect(departure.isLast)
    departure.resume()
    load.cancel()
    let caller = begin { [load] in
      try await load.loadOutcome(in: place, begin: {}, leave: { false }).value(of: Int.self)
    }
    load.end(with: ValueOutcome(1))
    await #expect(throws: CancellationError.self) { try await caller.value }
  }

  @Test func `a load of a publisher does not hold a caller that waits after its end`() async throws
  {
    let place = WaitPlace.first
    load.end()
    load.end(with: ValueOutcome(1))
    let outcome = try await load.loadOutcome(in: place, begin: {}, leave: { false })
    #expect(outcome.value(of: Int.self) == 1)
    #expect(!load.leaveLoad(place).isLast)
  }
}
