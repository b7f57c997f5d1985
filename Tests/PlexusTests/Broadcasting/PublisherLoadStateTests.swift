import Testing

@testable import Plexus

@Suite(.timeLimit(.minutes(5))) struct `A load of a publisher` {
  private let load = PublisherLoad<Int>(id: LoadID(rawValue: 1))

  @Test func `rule 0.4: holds nobody up who has left before waiting`() async {
    let waiter = load.join()
    #expect(load.leave(waiter).isLast)
    let caller = begin { [load] in try await load.wait(waiter) {} }
    let parked = load.finish(.success(1))
    #expect(parked.isEmpty)
    for waiter in parked { waiter.resume() }
    await #expect(throws: CancellationError.self) { try await caller.value }
  }

  @Test func `holds nobody up who comes to wait after its end`() async throws {
    let waiter = load.join()
    #expect(load.finish(.success(1)).isEmpty)
    #expect(try await load.wait(waiter) {} == 1)
    #expect(!load.leave(waiter).isLast)
  }
}
