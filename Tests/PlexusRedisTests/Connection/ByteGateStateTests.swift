import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `Large values` {
  @Test(.guarantee(.slowValuesKeepNoOthersWaiting))
  func `large values are refused at once if too many wait, and one waits however large it is`()
    async throws
  {
    let gate = ByteGate(capacity: 1, waitingLimit: 10)
    let hold = Gate()
    async let first: Void = gate.run(100) { try await hold.wait() }
    await hold.arrivals(1)
    await withTaskGroup(of: RedisConnectionError?.self) { group in
      for _ in 0..<2 {
        group.addTask {
          do {
            try await gate.run(20) {}
            return nil
          } catch {
            return error as? RedisConnectionError
          }
        }
      }
      #expect(await group.next() == .outboxFull(bytes: 20, waiting: 20, limit: 10))
      hold.open()
      #expect(await group.next() == .some(nil))
    }
    try await first
    // The gate is empty again.
    try await gate.run(20) {}
  }
}
