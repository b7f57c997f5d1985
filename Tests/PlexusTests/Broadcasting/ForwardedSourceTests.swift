import Plexus
import TestSupport
import Testing

/// Handlers on a user's broadcaster that forwards the subscriptions of another one.
@Suite(.fewAtOnce) struct `A broadcaster that forwards another one` {
  @MainActor
  @Test(.guarantee(.handlersOfOneActorKeepSubscriptionOrder))
  func `a forwarding broadcaster calls its handlers in subscription order, message by message`()
    async
  {
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

  @Test func `a forwarding broadcaster gives its handlers what was sent while it subscribed`() async
  {
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

  @MainActor
  @Test(arguments: [
    (BufferingPolicy<Int>.unbounded, [0, 1, 2, 3, 4]), (.bufferingNewest(2), [3, 4]),
    (.bufferingNewest(100), [0, 1, 2, 3, 4]), (.bufferingOldest(3), [0, 1, 2]),
  ])
  func `handlers that share an actor get once what was sent while their forwarder subscribed`(
    policy: BufferingPolicy<Int>,
    expected: [Int]
  ) async {
    let (messenger, others, log) = (Messenger<Int>(), Log<Int>(), Log<Int>())
    let forwarder = Forwarder(source: messenger) {
      for number in 0..<4 { messenger.send(number) }
    }
    // The actor is busy meanwhile: its handlers share a queue in which the messages still are.
    let tokens = [
      messenger.observe { (number: Int) in others.append(number) },
      forwarder.observe(bufferingPolicy: policy) { (number: Int) in log.append(number) },
      messenger.observe { (number: Int) in others.append(-number) },
    ]
    messenger.send(4)
    #expect(await others.first(6) == [0, 1, 2, 3, 4, -4])
    #expect(log.entries == expected)
    withExtendedLifetime(tokens) {}
  }

  @Test func `a forwarding broadcaster replays to its handlers what its source replays`() async {
    let (publisher, log) = (DataPublisher<Int>(), Log<Int?>())
    publisher.update(7)
    let forwarder = Forwarder(source: publisher) { publisher.update(8) }
    let token = forwarder.observe { log.append($0.value) }
    #expect(await log.first(2) == [7, 8])
    publisher.update(9)
    #expect(await log.first(3) == [7, 8, 9])
    withExtendedLifetime(token) {}
  }

  @Test func `a handler of a forwarding broadcaster receives no messages of the ignored author`()
    async
  {
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

  @Test(
    .guarantee(.finishedSourcesReleaseLateHandlers),
    arguments: [Policy.unbounded, .newest(2), .newest(100), .oldest(2)],
    [0, 2]
  )
  func `a forwarding broadcaster frees handlers if it finishes while they are being registered`(
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

  @Test func `a forwarding broadcaster counts a handler once`() async {
    let messenger = Messenger<Int>()
    var counts = messenger.subscriberCounts().makeAsyncIterator()
    #expect(await counts.next() == 0)
    let token = Forwarder(source: messenger).observe { (_: Int) in }
    #expect(await counts.next() == 1)
    token.cancel()
    #expect(await counts.next() == 0)
  }
}

/// Handlers on broadcasters of a user that forward subscriptions for which a source has no broadcaster of its own.
@Suite(.fewAtOnce)
struct `A broadcaster that forwards subscriptions to changes or live ones` {
  struct Form: Sendable {
    var text = 0
    var count = 0
  }

  /// The changes of a part of a store's state.
  struct Parts: Broadcaster {
    let store: Store<Form, any WritableKeyPath<Form, Int> & Sendable>
    let path: any KeyPath<Form, Int> & Sendable
    var isPath = true

    var subscriberCount: Int { store.subscriberCount }

    func subscription(bufferingPolicy: BufferingPolicy<Change<Int>>) -> Subscription<Change<Int>> {
      isPath
        ? store.subscription(toChangesOf: path, bufferingPolicy: bufferingPolicy)
        : store.subscription(
          toChangesOf: { [path] in $0[keyPath: path] },
          bufferingPolicy: bufferingPolicy
        )
    }
  }

  private func store() -> Store<Form, any WritableKeyPath<Form, Int> & Sendable> {
    Store(Form()) { $0[keyPath: $1] += 1 }
  }

  @MainActor
  @Test(.guarantee(.forwardedSourcesFollowAllRules), arguments: [true, false])
  func `a forwarder of changes calls the handlers of one part in order, change by change`(
    isPath: Bool
  ) async {
    let (store, log) = (store(), Log<String>())
    let tokens = "abcde".map { name in
      Parts(store: store, path: \.text, isPath: isPath).observe { log.append("\(name)\($0.new)") }
    }
    for _ in 0..<20 { store.dispatch(\.text) }
    let expected = (0...20).flatMap { number in "abcde".map { "\($0)\(number)" } }
    #expect(await log.first(expected.count) == expected)
    for token in tokens { token.cancel() }
    #expect(store.subscriberCount == 0)
  }

  @MainActor
  @Test(.guarantee(.forwardedSourcesFollowAllRules))
  func `a forwarder of changes calls handlers of several parts action by action, part by part`()
    async
  {
    let (store, log) = (store(), Log<String>())
    let (text, count) = (Parts(store: store, path: \.text), Parts(store: store, path: \.count))
    let tokens = [
      text.observe { log.append("a\($0.new)") },
      count.observe { log.append("b\($0.new)") },
      text.observe { log.append("c\($0.new)") },
    ]
    for _ in 0..<3 {
      store.dispatch(\.count)
      store.dispatch(\.text)
    }
    let expected = ["a0", "b0", "c0"] + (1...3).flatMap { ["b\($0)", "a\($0)", "c\($0)"] }
    #expect(await log.first(12) == expected)
    withExtendedLifetime(tokens) {}
  }

  @MainActor
  @Test(
    .guarantee(.forwardedSourcesFollowAllRules),
    arguments: [Policy.newest(1), .newest(3), .oldest(2)]
  )
  func `a forwarder of changes applies each handler's policy, and keeps no more elements`(
    policy: Policy
  ) async {
    let census = Census()
    let store = Store<ChangesSubject.Content, Parcel>(ChangesSubject.Content()) { $0.parcel = $1 }
    let changes = ChangesForwarder(store: store)
    let (bounded, end) = (Log<Int>(), Log<Int>())
    let token = changes.observe(bufferingPolicy: policy()) { change in
      bounded.append(change.new.parcel?.number ?? 0)
    }
    // The main actor is occupied, so nothing is handled in between.
    for number in 1...1_000 { store.dispatch(census.parcel(number)) }
    #expect(census.living <= 12)
    let expected =
      switch policy {
      case .newest(let limit): Array(1_001 - limit...1_000)
      default: [0, 1]
      }
    let witness = changes.observe { change in end.append(change.new.parcel?.number ?? 0) }
    #expect(await end.first(1) == [1_000])
    #expect(bounded.entries == expected)
    withExtendedLifetime((token, witness)) {}
  }

  struct ChangesForwarder: Broadcaster {
    let store: Store<ChangesSubject.Content, Parcel>

    var subscriberCount: Int { store.subscriberCount }

    func subscription(
      bufferingPolicy: BufferingPolicy<Change<ChangesSubject.Content>>
    ) -> Subscription<Change<ChangesSubject.Content>> {
      store.subscription(toChangesOf: { $0 }, bufferingPolicy: bufferingPolicy)
    }
  }

  @MainActor
  @Test(.guarantee(.forwardedSourcesFollowAllRules))
  func `handlers of a forwarded live subscription share the order of those of the live value`()
    async
  {
    let (cache, log) = (Multiplexer<Int> { throw CancellationError() }, Log<String>())
    cache.store(0)
    let live = LiveForwarder(cache: cache)
    let tokens = [
      cache.observe { log.append("a\($0.value ?? -1)") },
      live.observe { log.append("b\($0.value ?? -1)") },
      cache.observe { log.append("c\($0.value ?? -1)") },
      live.observe { log.append("d\($0.value ?? -1)") },
    ]
    for number in 1..<20 { cache.store(number) }
    let expected = (0..<20).flatMap { number in "abcd".map { "\($0)\(number)" } }
    #expect(await log.first(80) == expected)
    #expect(cache.subscriberCount == 4)
    for token in tokens { token.cancel() }
    #expect(cache.subscriberCount == 0)
  }

  struct LiveForwarder: Broadcaster {
    let cache: Multiplexer<Int>
    var refetching = Refetching.whenStale

    var subscriberCount: Int { cache.subscriberCount }

    func subscription(
      bufferingPolicy: BufferingPolicy<LoadState<Int>>
    ) -> Subscription<LoadState<Int>> {
      cache.subscription(refetching: refetching, bufferingPolicy: bufferingPolicy)
    }
  }

  @Test(.guarantee(.forwardedSourcesFollowAllRules))
  func `a forwarder keeps the live registration as long as a handler, and no longer`() async {
    let (signals, fetches, log) = (Messenger<Void>(), Log<Void>(), Log<Int>())
    let cache = Multiplexer<Int> {
      fetches.append(())
      return fetches.count
    }
    let live = LiveForwarder(cache: cache, refetching: .on(signals.subscription()))
    let token = live.observe { (state: LoadState<Int>) in
      if case .loaded(let number) = state { log.append(number) }
    }
    #expect(await log.first(1) == [1])
    signals.send()
    #expect(await log.first(2) == [1, 2])
    #expect(signals.subscriberCount == 1)
    token.cancel()
    for await count in signals.subscriberCounts() where count == 0 { break }
    #expect(cache.subscriberCount == 0)
  }
}
