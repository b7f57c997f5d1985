import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A load of a publisher` {
  private let load = PublisherLoad<Int>(id: LoadID(rawValue: 1))

  @Test func `rule 0.4: holds nobody up who has left before waiting`() async {
    let place = load.join()
    let departure = load.leave(place)
    #expect(departure.isLast)
    departure.perform()
    let caller = begin { [load] in try await load.value(in: place, begin: {}, leave: { false }) }
    load.finish(.success(1))
    await #expect(throws: CancellationError.self) { try await caller.value }
  }

  @Test func `holds nobody up who comes to wait after its end`() async throws {
    let place = load.join()
    load.finish(.success(1))
    #expect(try await load.value(in: place, begin: {}, leave: { false }) == 1)
    #expect(!load.leave(place).isLast)
  }
}
