import Plexus
import TestSupport
import Testing

/// Handlers on a user's broadcaster that forwards the subscriptions of another one.
@Suite(.fewAtOnce) struct `A broadcaster that forwards another one` {
  @MainActor
  @Test func `rule 0.2: has its handlers called in subscription order, message by message`() async {
    let (messenger, log) = (Messenger<Int>(), Log<String>())
    let forwarder = Forwarder(source: messenger)
    let tokens = [
      messenger.observe { (number: Int) in log.append("a\(number)") },
      forwarder.observe { (number: Int) in log.append("b\(number)") },
      forwarder.observe { (number: Int) in log.append("c\(number)") },
      messenger.observe { (number: Int) in log.append("d\(number)") },
    ]
    let owner = Parcel(0)
    forwarder.observe(as: owner) { _, number in log.append("e\(number)") }
    #expect(messenger.subscriberCount == 5)
    for number in 0..<100 { messenger.send(number) }
    let expected = (0..<100).flatMap { number in "abcde".map { "\($0)\(number)" } }
    #expect(await log.first(500) == expected)
    for token in tokens { token.cancel() }
    #expect(messenger.subscriberCount == 1)
    withExtendedLifetime(owner) {}
  }

  @Test func `gives its handlers what was sent while it subscribed`() async {
    let policies: [(BufferingPolicy<Int>, [Int])] = [
      (.unbounded, Array(0..<50)), (.bufferingNewest(2), [48, 49]),
      (.bufferingNewest(100), Array(0..<50)), (.bufferingOldest(3), [0, 1, 2]),
    ]
    for (policy, expected) in policies {
      for isAsync in [true, false] {
        let (messenger, log) = (Messenger<Int>(), Log<Int>())
        let forwarder = Forwarder(source: messenger) {
          for number in 0..<50 { messenger.send(number) }
        }
        let token =
          isAsync
          ? forwarder.observe(bufferingPolicy: policy) { (number: Int) async in log.append(number) }
          : forwarder.observe(bufferingPolicy: policy) { (number: Int) in log.append(number) }
        #expect(messenger.subscriberCount == 1)
        await log.first(expected.count)
        messenger.send(50)
        #expect(await log.first(expected.count + 1) == expected + [50])
        token.cancel()
        #expect(messenger.subscriberCount == 0)
      }
    }
  }

  @Test func `replays to its handlers what the other one replays`() async {
    let (publisher, log) = (DataPublisher<Int>(), Log<Int?>())
    publisher.update(7)
    let forwarder = Forwarder(source: publisher) { publisher.update(8) }
    let token = forwarder.observe { log.append($0.value) }
    #expect(await log.first(2) == [7, 8])
    publisher.update(9)
    #expect(await log.first(3) == [7, 8, 9])
    withExtendedLifetime(token) {}
  }

  @Test func `has handlers that do not receive messages of the ignored author`() async {
    let (messenger, author, log) = (Messenger<Int>(), Author(), Log<Int>())
    let token = Deaf(messenger: messenger, author: author).observe { (number: Int) in
      log.append(number)
    }
    messenger.send(1, from: author)
    messenger.send(2, from: Author())
    messenger.send(3, from: author)
    messenger.send(4)
    #expect(await log.first(2) == [2, 4])
    withExtendedLifetime(token) {}
  }

  @Test(arguments: [Policy.unbounded, .newest(2), .newest(100), .oldest(2)], [0, 2])
  func `frees its handlers although it has finished while they were registered`(
    policy: Policy,
    count: Int
  ) async {
    let (messenger, census, log) = (Messenger<Int>(), Census(), Log<Int>())
    let forwarder = Forwarder(source: messenger) {
      for number in 0..<count { messenger.send(number) }
      messenger.finish()
    }
    let bag = ObservationBag()
    do {
      let (first, second) = (census.parcel(), census.parcel())
      forwarder.observe(bufferingPolicy: policy()) { (number: Int) in
        withExtendedLifetime(first) { log.append(number) }
      }.store(in: bag)
      forwarder.observe(bufferingPolicy: policy()) { (number: Int) async in
        withExtendedLifetime(second) { log.append(number) }
      }.store(in: bag)
    }
    await census.falls(to: 0)
    // The first one gets the message that was sent during its registration; later the messenger has finished.
    #expect(log.entries == Array(0..<count))
    #expect(messenger.subscriberCount == 0)
    #expect(bag.count == 0)
  }

  @Test func `counts a handler once`() async {
    let messenger = Messenger<Int>()
    var counts = messenger.subscriberCounts().makeAsyncIterator()
    #expect(await counts.next() == 0)
    let token = Forwarder(source: messenger).observe { (_: Int) in }
    #expect(await counts.next() == 1)
    token.cancel()
    #expect(await counts.next() == 0)
  }
}
