import Plexus
import TestSupport
import Testing

/// Rule 0.2, where the order in which waiting tasks are resumed can be seen: on an executor that runs
/// them on the spot.
@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `Subscription order` {
  @Test func `rule 0.2: is the order in which loops that wait get elements and the end`()
    async throws
  {
    let messenger = Messenger<Int>()
    let log = Log<String>()
    let policies: [Policy] = [
      .oldest(2), .unbounded, .newest(0), .newest(2), .oldest(1), .unbounded, .newest(1),
    ]
    let subscriptions = policies.map { messenger.subscription(bufferingPolicy: $0()) }
    // They begin to wait in another order.
    let loops = subscriptions.enumerated().reversed().map { index, subscription in
      begin {
        for await number in subscription { log.append("\(number) at \(index)") }
        log.append("end of \(index)")
      }
    }
    for number in 1...3 {
      messenger.send(number)
      #expect(log.entries.suffix(policies.count) == policies.indices.map { "\(number) at \($0)" })
    }
    messenger.finish()
    #expect(log.entries.suffix(policies.count) == policies.indices.map { "end of \($0)" })
    for loop in loops { try await loop.value }
  }
}
