import Plexus
import TestSupport
import Testing

/// The objects that a subscription keeps alive, and for how long.
@Suite(.fewAtOnce) struct `The memory of a subscription` {
  @Test(.guarantee(.subscriptionsRetainNothingRead))
  func `a subscription keeps nothing before its position, however long it is kept`() async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let subscription = messenger.subscription()
    for round in 0..<10 {
      for number in 0..<100 { messenger.send(census.parcel(round * 100 + number)) }
      #expect(await subscription.first(100).count == 100)
      #expect(census.living <= 16)
    }
    withExtendedLifetime(subscription) {}
  }

  @Test func `a subscription keeps nothing for an iterator that another has overtaken`() async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let subscription = messenger.subscription()
    var iterator = subscription.makeAsyncIterator()
    messenger.send(census.parcel(0))
    #expect(await iterator.next()?.number == 0)
    for round in 0..<10 {
      for number in 0..<100 { messenger.send(census.parcel(round * 100 + number)) }
      #expect(await subscription.first(100).count == 100)
    }
    #expect(census.living <= 32)
    messenger.finish()
    #expect(await iterator.next() == nil)
  }

  @Test func `a subscription keeps only what its window holds`() async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(5))
    let single = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<1000 { messenger.send(census.parcel(number)) }
    #expect(census.living == 5)
    #expect(census.most <= 6)
    withExtendedLifetime((subscription, single)) {}
  }

  @Test func `a subscription gives back what its wider window kept when its reader leaves`() async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let single = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    var wide: Subscription<Parcel>? = messenger.subscription(bufferingPolicy: .bufferingNewest(50))
    for number in 0..<100 { messenger.send(census.parcel(number)) }
    #expect(census.living == 50)
    #expect(wide?.droppedCount == 50)
    wide = nil
    #expect(census.living == 1)
    #expect(await single.first(1).map(\.number) == [99])
  }

  @Test(arguments: [Policy.oldest(3), .oldest(0), .newest(0)])
  func `a subscription keeps nothing beyond the limit of its buffer`(policy: Policy) async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    for number in 0..<1000 { messenger.send(census.parcel(number)) }
    #expect(census.living == (policy == .oldest(3) ? 3 : 0))
    withExtendedLifetime(subscription) {}
  }

  @Test func `a subscription retains nothing of an ignored author`() async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let author = Author()
    let subscription = messenger.subscription(ignoring: author)
    for number in 0..<100 { messenger.send(census.parcel(number), from: author) }
    #expect(census.living == 0)
    withExtendedLifetime(subscription) {}
  }

  @Test func `messages without subscribers cost no memory`() {
    let messenger = Messenger<Parcel>()
    let census = Census()
    for number in 0..<100 { messenger.send(census.parcel(number)) }
    #expect(census.most == 1)
    #expect(census.living == 0)
  }

  @Test(
    .guarantee(.subscriptionsRetainNothingRead),
    arguments: [Policy.unbounded, .newest(100), .oldest(100)]
  )
  func `the backlog of a cancelled loop is given back, although the subscription is kept`(
    policy: Policy
  ) async {
    let messenger = Messenger<Parcel>()
    let census = Census()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    for number in 0..<100 { messenger.send(census.parcel(number)) }
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await subscription.first(100).count
    }
    #expect(await task.value == 0)
    #expect(messenger.subscriberCount == 0)
    #expect(census.living == 0)
    withExtendedLifetime(subscription) {}
  }

  @Test
  func `a subscription holds a million elements and releases them without exhausting the stack`()
    async
  {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    for number in 0..<1_000_000 { messenger.send(number) }
    #expect(await subscription.first(1) == [0])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await subscription.first(1)
    }
    #expect(await task.value.isEmpty)
    withExtendedLifetime(subscription) {}
  }

  @Test func `a subscription gives a million objects back when the last of many readers leaves`()
    async
  {
    let messenger = Messenger<Parcel>()
    var subscriptions = (0..<3).map { _ in messenger.subscription() }
    weak let last = sendMillion(to: messenger)
    #expect(last != nil)
    while !subscriptions.isEmpty { subscriptions.removeLast() }
    #expect(last == nil)
  }

  private func sendMillion(to messenger: Messenger<Parcel>) -> Parcel {
    for number in 0..<1_000_000 { messenger.send(Parcel(number)) }
    let last = Parcel(1_000_000)
    messenger.send(last)
    return last
  }

  @Test func `a subscription is over for a task that was cancelled before it waits`() async {
    let messenger = Messenger<Int>()
    let census = Census()
    for policy in [Policy.unbounded, .newest(1), .newest(0), .oldest(1)] {
      let task = Task { [subscription = messenger.subscription(bufferingPolicy: policy())] in
        withUnsafeCurrentTask { $0?.cancel() }
        return await subscription.all()
      }
      #expect(await task.value.isEmpty)
      #expect(messenger.subscriberCount == 0)
    }
    #expect(census.living == 0)
  }

  @Test(.guarantee(.releasedSourcesEndTheirStreams))
  func `a subscription does not keep its broadcaster alive while a task waits`() async {
    var messenger: Messenger<Int>? = Messenger()
    weak let weakMessenger = messenger
    let log = Log<Int>()
    let reader = SteppedReader()
    let subscription = messenger?.subscription()
    let task = Task { if let subscription { await reader.read(subscription, into: log) } }
    await reader.executor.step()
    messenger?.send(1)
    await reader.executor.step()
    messenger = nil
    #expect(weakMessenger == nil)
    await reader.executor.step()
    await task.value
    #expect(log.entries == [1])
  }

  @Test(arguments: [1_000, .max])
  func `a subscription keeps nothing that the reader of a large buffer has read`(limit: Int) async {
    let (messenger, census) = (Messenger<Parcel>(), Census())
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(limit))
    for number in 0..<1_000 { messenger.send(census.parcel(number)) }
    #expect(await subscription.first(1_000).count == 1_000)
    #expect(census.living <= 64)
    withExtendedLifetime(subscription) {}
  }

  @Test(
    .guarantee(.readElementsAreReleasedWhileReadersWait),
    arguments: [Policy.unbounded, .newest(3)],
    1...15
  )
  func `a subscription keeps nothing that every reader has read once they wait`(
    policy: Policy,
    count: Int
  ) async {
    let (messenger, census) = (Messenger<Parcel>(), Census())
    let readers = [SteppedReader(), SteppedReader()]
    let tasks = readers.map { reader in
      let subscription = messenger.subscription(bufferingPolicy: policy())
      return Task { await reader.discard(subscription) }
    }
    for reader in readers { await reader.executor.step() }
    for _ in 0..<3 {
      for number in 0..<count { messenger.send(census.parcel(number)) }
      await readers[0].executor.step()
      #expect(census.living > 0, "The second reader has not read anything")
      await readers[1].executor.step()
      #expect(census.living == 0)
    }
    messenger.finish()
    for reader in readers { await reader.executor.step() }
    for task in tasks { await task.value }
  }

  @Test(
    .guarantee(.readElementsAreReleasedWhileReadersWait),
    arguments: [Policy.unbounded, .newest(3)]
  )
  func `a subscription keeps nothing for waiting readers when the one that was behind leaves`(
    policy: Policy
  ) async {
    let (messenger, census) = (Messenger<Parcel>(), Census())
    let reader = SteppedReader()
    let task = Task { [subscription = messenger.subscription(bufferingPolicy: policy())] in
      await reader.discard(subscription)
    }
    await reader.executor.step()
    var other: Subscription<Parcel>? = messenger.subscription(bufferingPolicy: policy())
    for number in 0..<3 { messenger.send(census.parcel(number)) }
    await reader.executor.step()
    #expect(census.living == 3)
    #expect(other?.droppedCount == 0)
    other = nil
    #expect(census.living == 0)
    messenger.finish()
    await reader.executor.step()
    await task.value
  }

  @Test func `a subscription still reads what an abandoned iterator holds`() async {
    let (messenger, census) = (Messenger<Parcel>(), Census())
    let subscription = messenger.subscription()
    var iterator = subscription.makeAsyncIterator()
    for number in 0..<3 { messenger.send(census.parcel(number)) }
    #expect(await iterator.next()?.number == 0)
    let reader = SteppedReader()
    let task = Task { await reader.discard(subscription) }
    await reader.executor.step()
    #expect(census.living == 3, "The iterator holds them")
    messenger.send(census.parcel(3))
    messenger.finish()
    await reader.executor.step()
    await task.value
    #expect(await iterator.next() == nil)
    #expect(census.living == 0)
  }
}
