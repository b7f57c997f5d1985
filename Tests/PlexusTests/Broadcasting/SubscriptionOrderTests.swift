import Plexus
import TestSupport
import Testing

/// Rule 0.2, on an executor that runs jobs immediately and thus shows the order in which waiting tasks are resumed.
@Suite(.fewAtOnce) struct `Subscription order` {
  static let policies: [[Policy]] = [
    [.oldest(2), .unbounded, .newest(0), .newest(2), .oldest(1), .unbounded, .newest(1)],
    Array(repeating: .unbounded, count: 5),
    Array(repeating: .newest(1), count: 5),
    Array(repeating: .oldest(1), count: 5),
  ]

  @Test(.guarantee(.waitersResumeInSubscriptionOrder), arguments: policies)
  func `subscription order is the order in which loops that wait get elements and the end`(
    policies: [Policy]
  ) async throws {
    let messenger = Messenger<Int>()
    let log = Log<String>()
    let subscriptions = policies.map { messenger.subscription(bufferingPolicy: $0()) }
    // They start to wait in another order.
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

  @Test(.guarantee(.waitersResumeInSubscriptionOrder), arguments: policies)
  func `subscription order stays the same for waiting loops when subscribers before them leave`(
    policies: [Policy]
  ) async throws {
    let messenger = Messenger<Int>()
    let log = Log<String>()
    var subscriptions: [Subscription<Int>?] = policies.map {
      messenger.subscription(bufferingPolicy: $0())
    }
    for index in [0, 2] { subscriptions[index] = nil }
    let remaining = policies.indices.filter { $0 != 0 && $0 != 2 }
    let loops = remaining.map { index in
      begin { [subscription = subscriptions[index]] in
        guard let subscription else { return }
        for await number in subscription { log.append("\(number) at \(index)") }
      }
    }
    for number in 1...3 {
      messenger.send(number)
      #expect(log.entries.suffix(remaining.count) == remaining.map { "\(number) at \($0)" })
    }
    messenger.finish()
    for loop in loops { try await loop.value }
  }
}
