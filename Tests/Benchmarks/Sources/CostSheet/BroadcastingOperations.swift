import Plexus

/// Operations of messengers, subscriptions and tokens without a goal.
let broadcastingOperations: [Operation] =
  messengerOperations + handlerOperations + tokenOperations + sharedSequenceOperations
  + observedValueOperations

// MARK: - Messenger

private let messengerOperations: [Operation] = [
  Operation("messenger: subscription and drop") { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count { _ = messenger.subscription() }
  },
  Operation("messenger: subscription(ignoring:) and drop") { count in
    let messenger = Messenger<Int>()
    let author = Author()
    for _ in 0..<count { _ = messenger.subscription(ignoring: author) }
  },
  Operation("messenger: subscribe and drop") { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count { _ = messenger.subscribe() }
  },
  Operation("messenger: subscribe(ignoring:) and drop") { count in
    let messenger = Messenger<Int>()
    let author = Author()
    for _ in 0..<count { _ = messenger.subscribe(ignoring: author) }
  },
  Operation("messenger: subscriberCount") { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count { use(messenger.subscriberCount) }
  },
  Operation("messenger: subscription and drop, after a snapshot of subscribers") { count in
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    _ = messenger.subscriberSnapshots()
    for _ in 0..<count { _ = messenger.subscription() }
    withExtendedLifetime(subscription) {}
  },
  Operation("messenger: subscriberSnapshots of 10 streams", count: 300) { count in
    let messenger = Messenger<Int>()
    let streams = (0..<10).map { _ in messenger.subscription() }
    for _ in 0..<count { use(messenger.subscriberSnapshots().count) }
    withExtendedLifetime(streams) {}
  },
  Operation("messenger: subscriberCounts and drop", count: 600) { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count { _ = messenger.subscriberCounts() }
  },
  Operation("messenger: waitForSubscriber, there is one") { count in
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    for _ in 0..<count { try await messenger.waitForSubscriber() }
    withExtendedLifetime(subscription) {}
  },
  Operation("messenger: finish, with init and a subscription") { count in
    for _ in 0..<count {
      let messenger = Messenger<Int>()
      let subscription = messenger.subscription()
      messenger.finish()
      withExtendedLifetime(subscription) {}
    }
  },
  Operation("messenger: send + next, buffered", count: 30_000) { count in
    let messenger = Messenger<Int>()
    var iterator = messenger.subscription().makeAsyncIterator()
    for number in 0..<count { messenger.send(number) }
    for _ in 0..<count { use(await iterator.next(isolation: nil) ?? 0) }
  },
  Operation("messenger: send + next, a wake-up", count: 600) { count in
    let messenger = Messenger<Int>()
    let reader = Reader(messenger.subscription(), count: count)
    await settle()
    for number in 0..<count {
      messenger.send(number)
      await Task.yield()
    }
    await reader.finish()
  },
  Operation("messenger: send, 1 stream", count: 600) { count in
    let messenger = Messenger<Int>()
    let reader = Reader(messenger.subscribe(), count: count)
    await settle()
    for number in 0..<count { messenger.send(number) }
    await reader.finish()
  },
  Operation("messenger: send, 1 reader of the newest") { count in
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<count { messenger.send(number) }
    use(subscription.droppedCount)
  },
  Operation("messenger: send from an author, 1 reader that ignores it") { count in
    let messenger = Messenger<Int>()
    let author = Author()
    let subscription = messenger.subscription(ignoring: author)
    for number in 0..<count { messenger.send(number, from: author) }
    withExtendedLifetime(subscription) {}
  },
  Operation("messenger: follow, an element") { count in
    let messenger = Messenger<Int>()
    let reader = Reader(messenger.subscription(), count: count)
    messenger.follow(numbers(count))
    await reader.finish()
  },
  Operation("messenger: follow an empty sequence", count: 300) { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count {
      messenger.follow(numbers(0))
      await Task.yield()
    }
  },
  Operation("subscription: makeAsyncIterator") { count in
    let subscription = Messenger<Int>().subscription()
    for _ in 0..<count {
      let iterator = subscription.makeAsyncIterator()
      withExtendedLifetime(iterator) {}
    }
  },
  Operation("subscription: droppedCount") { count in
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<count { use(subscription.droppedCount) }
  },
  Operation("Author: init") { count in
    for _ in 0..<count { use(Author().hashValue) }
  },
]

/// A finished sequence that still contains all its elements.
func numbers(_ count: Int) -> AsyncStream<Int> {
  let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
  for number in 0..<count { continuation.yield(number) }
  continuation.finish()
  return stream
}

// MARK: - Handlers

private final class Owner: Sendable {}

private let handlerOperations: [Operation] = [
  Operation("messenger: observe and drop, an async handler", count: 300) { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count {
      _ = messenger.observe { (_: Int) async in }
      await Task.yield()
    }
  },
  Operation("messenger: observe(as:), with the owner", count: 300) { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count {
      let owner = Owner()
      messenger.observe(as: owner) { _, _ in }
      use(messenger.subscriberCount)
    }
  },
  sendToHandlers(10),
  Operation("messenger: send to 1 handler, one at a time", count: 600) { count in
    let messenger = Messenger<Int>()
    let calls = Countdown(count)
    let token = messenger.observe { _ in calls.signal() }
    await settle()
    for number in 0..<count {
      messenger.send(number)
      await Task.yield()
    }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("messenger: send to 1 async handler", count: 600) { count in
    let messenger = Messenger<Int>()
    let calls = Countdown(count)
    let token = messenger.observe { (_: Int) async in calls.signal() }
    for number in 0..<count { messenger.send(number) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("messenger: send to 1 handler of the main actor", count: 600) { count in
    let messenger = Messenger<Int>()
    let calls = Countdown(count)
    let token = messenger.observe { @MainActor _ in calls.signal() }
    for number in 0..<count { messenger.send(number) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("messenger: send to 1 handler with an owner", count: 600) { count in
    let messenger = Messenger<Int>()
    let owner = Owner()
    let calls = Countdown(count)
    messenger.observe(as: owner) { _, _ in calls.signal() }
    for number in 0..<count { messenger.send(number) }
    await calls.wait()
    withExtendedLifetime(owner) {}
  },
]

// MARK: - Tokens

private let tokenOperations: [Operation] = [
  Operation("token: init + cancel") { count in
    for number in 0..<count { ObservationToken { use(number) }.cancel() }
  },
  Operation("token: isCancelled") { count in
    let token = ObservationToken {}
    for _ in 0..<count { use(token.isCancelled ? 1 : 0) }
  },
  Operation("token: == + hashValue") { count in
    let token = ObservationToken {}
    for _ in 0..<count { use(token == token ? token.hashValue : 0) }
  },
  Operation("bag: init") { count in
    for _ in 0..<count { _ = ObservationBag() }
  },
  Operation("bag: insert a new token") { count in
    let bag = ObservationBag()
    for _ in 0..<count { bag.insert(ObservationToken {}) }
  },
  Operation("bag: store(in:) a new token + cancelAll") { count in
    let bag = ObservationBag()
    for _ in 0..<count {
      ObservationToken {}.store(in: bag)
      bag.cancelAll()
    }
  },
  Operation("bag: count") { count in
    let bag = ObservationBag()
    bag.insert(ObservationToken {})
    for _ in 0..<count { use(bag.count) }
  },
]

// MARK: - Shared sequences

private let sharedSequenceOperations: [Operation] = [
  Operation("shared sequence: broadcast and drop") { count in
    let stream = numbers(0)
    for _ in 0..<count { _ = stream.broadcast() }
  },
  Operation("shared sequence: first subscription and drop", count: 300) { count in
    let stream = AsyncStream<Int> { _ in }
    let shared = stream.broadcast()
    for _ in 0..<count {
      _ = shared.subscription()
      await Task.yield()
    }
  },
  Operation("shared sequence: further subscription and drop") { count in
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let shared = stream.broadcast()
    let first = shared.subscription()
    for _ in 0..<count { _ = shared.subscription() }
    withExtendedLifetime((first, continuation)) {}
  },
  Operation("shared sequence: further subscribe and drop") { count in
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let shared = stream.broadcast()
    let first = shared.subscription()
    for _ in 0..<count { _ = shared.subscribe() }
    withExtendedLifetime((first, continuation)) {}
  },
  Operation("shared sequence: an element, 1 reader") { count in
    let shared = numbers(count).broadcast()
    let reader = Reader(shared.subscription(), count: count)
    await reader.finish()
  },
  Operation("shared sequence: an element, 10 readers", count: 300) { count in
    let shared = numbers(count).broadcast()
    let readers = (0..<10).map { _ in Reader(shared.subscription(), count: count) }
    for reader in readers { await reader.finish() }
  },
  Operation("shared sequence: subscriberCount") { count in
    let shared = numbers(0).broadcast()
    for _ in 0..<count { use(shared.subscriberCount) }
  },
  Operation("shared sequence: subscriberCounts and drop", count: 600) { count in
    let shared = AsyncStream<Int> { _ in }.broadcast()
    for _ in 0..<count { _ = shared.subscriberCounts() }
  },
  Operation("shared sequence: waitForSubscriber, there is one") { count in
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let shared = stream.broadcast()
    let first = shared.subscription()
    for _ in 0..<count { try await shared.waitForSubscriber() }
    withExtendedLifetime((first, continuation)) {}
  },
]

// MARK: - ObservedValue

private let observedValueOperations: [Operation] = [
  Operation("ObservedValue: init and drop", count: 300) { count in
    let messenger = Messenger<Int>()
    await Task { @MainActor in
      for _ in 0..<count { _ = ObservedValue(messenger, initial: 0) }
    }.value
  },
  Operation("ObservedValue: value", count: 30_000) { count in
    await Task { @MainActor in
      let observed = ObservedValue(Messenger<Int>(), initial: 0)
      for _ in 0..<count { use(observed.value) }
    }.value
  },
  Operation("ObservedValue: an element", count: 600) { count in
    let messenger = Messenger<Int>()
    await Task { @MainActor in
      let observed = ObservedValue(messenger, initial: 0)
      await settle()
      for number in 1...count { messenger.send(number) }
      while observed.value != count { await Task.yield() }
    }.value
  },
]
