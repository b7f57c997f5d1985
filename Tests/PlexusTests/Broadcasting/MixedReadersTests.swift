import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Readers and handlers of one source with different policies.
@Suite(.fewAtOnce) struct `Readers of different policies` {
  @Test(
    .guarantee(.readElementsAreReleasedWhileReadersWait),
    arguments: [
      [Policy.unbounded, .newest(3)], [.newest(3), .unbounded], [.unbounded, .oldest(3)],
      [.newest(3), .oldest(3)],
    ]
  )
  func `nothing is kept for waiting readers when a reader behind them with another policy leaves`(
    policies: [Policy]
  ) async throws {
    let (messenger, census) = (Messenger<Parcel>(), Census())
    let waiting = begin { [subscription = messenger.subscription(bufferingPolicy: policies[0]())] in
      for await _ in subscription {}
    }
    var other: Subscription<Parcel>? = messenger.subscription(bufferingPolicy: policies[1]())
    for number in 0..<3 { messenger.send(census.parcel(number)) }
    #expect(other?.droppedCount == 0)
    other = nil
    #expect(census.living == 0)
    messenger.finish()
    try await waiting.value
  }

  @Test(
    .guarantee(.readElementsAreReleasedWhileReadersWait),
    arguments: [[Policy.unbounded, .newest(3)], [.newest(3), .unbounded]]
  )
  func `nothing is kept for waiting readers when a reader behind them becomes a handler`(
    policies: [Policy]
  ) async throws {
    let (messenger, census, log) = (Messenger<Parcel>(), Census(), Log<Int>())
    let waiting = begin { [subscription = messenger.subscription(bufferingPolicy: policies[0]())] in
      for await _ in subscription {}
    }
    let forwarder = Forwarder(source: messenger) {
      for number in 0..<3 { messenger.send(census.parcel(number)) }
    }
    let token = forwarder.observe(bufferingPolicy: policies[1]()) { log.append($0.number) }
    #expect(await log.first(3) == [0, 1, 2])
    token.cancel()
    await census.falls(to: 0)
    messenger.finish()
    try await waiting.value
  }

  @Test(
    .guarantee(.ignoredAuthorsDoNotCount),
    arguments: [
      (BufferingPolicy<Int>.bufferingNewest(1), [0, 4]), (.bufferingNewest(2), [0, 2, 4]),
      (.bufferingOldest(1), [0, 2]), (.bufferingOldest(2), [0, 2, 4]),
    ]
  )
  func `readers of different policies do not count messages of an author that a handler ignores`(
    policy: BufferingPolicy<Int>,
    expected: [Int]
  ) async {
    let (messenger, author, gate, log) = (Messenger<Int>(), Author(), Gate(), Log<Int>())
    let token = Deaf(messenger: messenger, author: author).observe(bufferingPolicy: policy) {
      (number: Int) async in
      log.append(number)
      try? await gate.wait()
    }
    messenger.send(0)
    await gate.arrivals(1)
    for number in 1...5 { messenger.send(number, from: number.isMultiple(of: 2) ? nil : author) }
    gate.open()
    await log.first(expected.count)
    messenger.send(6)
    #expect(await log.first(expected.count + 1) == expected + [6])
    withExtendedLifetime(token) {}
  }

  @MainActor
  @Test(.guarantee(.mixedPoliciesStayWithinLimits))
  func `handlers that skip much are called in good time, however large their buffers are`() async {
    let (messenger, oldest, newest) = (Messenger<Int>(), Log<Int>(), Log<Int>())
    let tokens = [
      messenger.observe(bufferingPolicy: .bufferingOldest(20_000)) { oldest.append($0) },
      messenger.observe(bufferingPolicy: .bufferingNewest(1)) { newest.append($0) },
    ]
    for number in 0..<100_000 { messenger.send(number) }
    #expect(await oldest.first(20_000) == Array(0..<20_000))
    #expect(await newest.first(1) == [99_999])
    withExtendedLifetime(tokens) {}
  }

  @Test(.guarantee(.mixedPoliciesStayWithinLimits))
  func `a handler gets no more of what was sent before it than its limit`() async {
    let (messenger, gate, log) = (Messenger<Parcel>(), Gate(), Log<Int>())
    let forwarder = Forwarder(source: messenger) {
      for number in 0..<3 { messenger.send(Parcel(number)) }
    }
    let token = forwarder.observe(bufferingPolicy: .bufferingNewest(3)) { (parcel: Parcel) async in
      log.append(parcel.number)
      try? await gate.wait()
    }
    await gate.arrivals(1)
    for number in 3..<5 { messenger.send(Parcel(number)) }
    gate.open()
    #expect(await log.first(4) == [0, 2, 3, 4])
    withExtendedLifetime(token) {}
  }
}
