import Plexus
import TestSupport
import Testing

/// The guarantees for one reader.
@Suite(.fewAtOnce) struct `A subscription` {
  @Test(.guarantee(.policiesLimitBuffers))
  func `a subscription loses nothing under the unbounded policy`() async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    for number in 0..<1000 { messenger.send(number) }
    messenger.finish()
    #expect(await subscription.all() == Array(0..<1000))
    #expect(subscription.droppedCount == 0)
  }

  @Test(.guarantee(.policiesLimitBuffers), arguments: [1, 2, 3, 15, 16, 17, 100])
  func `a subscription skips ahead to the newest elements and counts what it has skipped`(
    limit: Int
  ) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(limit))
    for number in 0..<limit { messenger.send(number) }
    #expect(subscription.droppedCount == 0)
    messenger.send(limit)
    #expect(subscription.droppedCount == 1)
    #expect(await subscription.first(1) == [1])
    for number in limit + 1..<limit + 50 { messenger.send(number) }
    // Reading one has made room for another.
    #expect(subscription.droppedCount == 49)
    messenger.finish()
    #expect(await subscription.all() == Array(50..<limit + 50))
    #expect(subscription.droppedCount == 49)
  }

  @Test(.guarantee(.policiesLimitBuffers), arguments: [1, 2, 3, 15, 16, 17, 100])
  func `a subscription refuses what arrives while as many elements wait as it was given room for`(
    limit: Int
  ) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingOldest(limit))
    for number in 0..<limit + 3 { messenger.send(number) }
    #expect(subscription.droppedCount == 3)
    #expect(await subscription.first(1) == [0])
    messenger.send(1000)
    messenger.send(1001)
    #expect(subscription.droppedCount == 4)
    messenger.finish()
    #expect(await subscription.all() == Array(1..<limit) + [1000])
  }

  @Test(arguments: [0, -1, .min])
  func `a subscription with a limit of zero or less keeps nothing unless its reader waits`(
    limit: Int
  ) async {
    for policy in [BufferingPolicy<Int>.bufferingNewest(limit), .bufferingOldest(limit)] {
      let messenger = Messenger<Int>()
      let subscription = messenger.subscription(bufferingPolicy: policy)
      for number in 0..<5 { messenger.send(number) }
      #expect(subscription.droppedCount == 5)
      messenger.finish()
      #expect(await subscription.all().isEmpty)
    }
  }

  @Test(arguments: [Policy.newest(0), .newest(-7), .oldest(0), .oldest(.min)])
  func `a subscription with a limit of zero passes an element to a waiting reader`(
    policy: Policy
  ) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    let reader = SteppedReader()
    let log = Log<Int>()
    let task = Task { await reader.read(subscription, into: log) }
    await reader.executor.step()
    messenger.send(1)
    // No reader waits between being resumed and waiting again.
    messenger.send(2)
    await reader.executor.step()
    #expect(log.entries == [1])
    #expect(subscription.droppedCount == 1)
    messenger.send(3)
    await reader.executor.step()
    messenger.finish()
    await reader.executor.step()
    await task.value
    #expect(log.entries == [1, 3])
  }

  @Test func `a subscription with the largest limits works as without a limit`() async {
    for policy in [BufferingPolicy<Int>.bufferingNewest(.max), .bufferingOldest(.max)] {
      let messenger = Messenger<Int>()
      let subscription = messenger.subscription(bufferingPolicy: policy)
      for number in 0..<100 { messenger.send(number) }
      #expect(subscription.droppedCount == 0)
      #expect(await subscription.first(100) == Array(0..<100))
    }
  }

  @Test(.guarantee(.policiesDoNotAffectOtherReaders))
  func `a subscription of another policy never disturbs the others`() async {
    let messenger = Messenger<Int>()
    let policies: [Policy] = [
      .newest(1), .unbounded, .newest(7), .oldest(3), .newest(3), .oldest(20), .newest(0),
    ]
    var subscriptions = policies.map { messenger.subscription(bufferingPolicy: $0()) }
    for number in 0..<20 { messenger.send(number) }
    // The reader with the widest window leaves.
    subscriptions.remove(at: 2)
    for number in 20..<30 { messenger.send(number) }
    let late = messenger.subscription(bufferingPolicy: .bufferingNewest(5))
    for number in 30..<33 { messenger.send(number) }
    messenger.finish()
    var received: [[Int]] = []
    for subscription in subscriptions { received.append(await subscription.all()) }
    let expected = [[32], Array(0..<33), [0, 1, 2], [30, 31, 32], Array(0..<20), []]
    #expect(received == expected)
    #expect(subscriptions.map(\.droppedCount) == [32, 0, 30, 30, 13, 33])
    #expect(await late.all() == [30, 31, 32])
    #expect(late.droppedCount == 0)
  }

  @Test(.guarantee(.copiesShareOnePosition), arguments: Policy.roomy)
  func `a subscription shares one position among its copies`(policy: Policy) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    let copy = subscription
    for number in 0..<60 { messenger.send(number) }
    #expect(await subscription.first(10) == Array(0..<10))
    #expect(await copy.first(10) == Array(10..<20))
    var iterator = copy.makeAsyncIterator()
    var other = subscription.makeAsyncIterator()
    for number in 20..<50 {
      #expect(await (number % 3 == 0 ? iterator.next() : other.next()) == number)
    }
    #expect(await subscription.first(10) == Array(50..<60))
    #expect(messenger.subscriberCount == 1)
  }

  @Test(.guarantee(.copiesShareOnePosition), arguments: Policy.roomy)
  func `a subscription continues where a loop was left with break`(policy: Policy) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    for number in 0..<40 { messenger.send(number) }
    var numbers: [Int] = []
    while numbers.count < 40 {
      for await number in subscription {
        numbers.append(number)
        if number % 7 == 0 || number == 39 { break }
      }
    }
    #expect(numbers == Array(0..<40))
    #expect(messenger.subscriberCount == 1)
  }

  @Test(arguments: [Policy.unbounded, .newest(1), .oldest(1)])
  func `a subscription ends permanently`(policy: Policy) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    var iterator = subscription.makeAsyncIterator()
    messenger.send(1)
    messenger.finish()
    messenger.send(2)
    #expect(await iterator.next() == 1)
    for _ in 0..<3 {
      #expect(await iterator.next() == nil)
      #expect(await subscription.all().isEmpty)
    }
  }

  @Test func `a subscription delivers what was sent last before the end`() async {
    // Around the border between two chunks.
    for count in 0..<50 {
      let messenger = Messenger<Int>()
      let subscriptions = Policy.roomy.map { messenger.subscription(bufferingPolicy: $0()) }
      for number in 0..<count { messenger.send(number) }
      messenger.finish()
      for subscription in subscriptions { #expect(await subscription.all() == Array(0..<count)) }
    }
  }

  @Test func `a subscription starts with the next element if others have read on without the log`()
    async
  {
    let messenger = Messenger<Int>()
    for round in 0..<5 {
      var unread: Subscription<Int>? = messenger.subscription()
      #expect(unread?.droppedCount == 0)
      unread = nil
      let newest = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
      for number in 0..<round * 10 { messenger.send(number) }
      let subscription = messenger.subscription()
      messenger.send(100)
      messenger.send(101)
      #expect(await subscription.first(2) == [100, 101])
      #expect(await newest.first(1) == [101])
    }
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `a subscription made after the end is over at once`() async {
    let messenger = Messenger<Int>()
    messenger.finish()
    for policy in [Policy.unbounded, .newest(1), .newest(0), .oldest(1)] {
      #expect(await messenger.subscription(bufferingPolicy: policy()).all().isEmpty)
    }
    #expect(messenger.subscriberCount == 0)
  }

  @Test(
    .guarantee(.sharedIterationStopsWithAMessage),
    .startsProcess,
    arguments: [Policy.unbounded, .newest(1), .oldest(1)]
  )
  func `a subscription iterated by two tasks at once stops the program with a sentence`(
    policy: Policy
  ) async {
    switch policy {
    case .unbounded:
      await #expect(processExitsWith: .failure) { await iterateTwice(.unbounded) }
    case .newest:
      await #expect(processExitsWith: .failure) { await iterateTwice(.newest(1)) }
    case .oldest:
      await #expect(processExitsWith: .failure) { await iterateTwice(.oldest(1)) }
    }
  }

  @Test(.guarantee(.sharedIterationStopsWithAMessage), .startsProcess)
  func `a subscription iterated by two tasks as a stream stops the program`() async {
    await #expect(processExitsWith: .failure) {
      let messenger = Messenger<Int>()
      let stream = messenger.subscribe()
      let first = Task { for await _ in stream {} }
      let second = Task { for await _ in stream {} }
      await first.value
      await second.value
    }
  }
}

/// Lets two tasks wait for the same subscription.
private func iterateTwice(_ policy: Policy) async {
  let messenger = Messenger<Int>()
  let subscription = messenger.subscription(bufferingPolicy: policy())
  let first = Task { await subscription.all() }
  let second = Task { await subscription.all() }
  _ = await first.value
  _ = await second.value
}
