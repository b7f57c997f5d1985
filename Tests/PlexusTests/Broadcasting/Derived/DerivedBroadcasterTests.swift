import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A derived broadcaster` {
  @Test(.guarantee(.derivedBroadcastersReplay))
  func `a derived broadcaster transforms what is sent, and what is replayed`() async {
    let volume = CurrentValue(1)
    let texts = volume.map { "\($0)" }
    let subscription = texts.subscription(bufferingPolicy: .unbounded)
    volume.value = 2
    let late = texts.subscription(bufferingPolicy: .unbounded)
    volume.finish()
    #expect(await subscription.all() == ["1", "2"])
    #expect(await late.all() == ["2"])
    #expect(await texts.subscribe().all() == ["2"], "the source replays its last value")
  }

  @Test(.guarantee(.derivedBroadcastersSubscribeOnce))
  func `a derived broadcaster subscribes to its source once, and only while it has subscribers`() {
    let messenger = Messenger<Int>()
    let derived = messenger.map { $0 }.filter { $0 > 0 }
    #expect(messenger.subscriberCount == 0)
    for _ in 0..<3 {
      var streams = [derived.subscribe(), derived.subscribe()]
      let token = derived.observe { _ in }
      #expect(derived.subscriberCount == 3)
      #expect(messenger.subscriberCount == 1)
      streams = []
      #expect(derived.subscriberCount == 1)
      #expect(messenger.subscriberCount == 1)
      token.cancel()
      #expect(derived.subscriberCount == 0)
      #expect(messenger.subscriberCount == 0)
      withExtendedLifetime(streams) {}
    }
  }

  @Test(.guarantee(.derivedBroadcastersSubscribeOnce))
  func `a derived broadcaster runs its closure once for all subscribers, on the sending thread`()
    async
  {
    let messenger = Messenger<Int>()
    let calls = Log<Int>()
    let derived = messenger.map { number in
      calls.append(number)
      return number * 2
    }
    let subscriptions = (0..<100).map { _ in derived.subscription(bufferingPolicy: .unbounded) }
    messenger.send(1)
    #expect(calls.entries == [1], "it has run when the call that sends returns")
    messenger.send(2)
    messenger.finish()
    for subscription in subscriptions { #expect(await subscription.all() == [2, 4]) }
    #expect(calls.entries == [1, 2])
  }

  @Test(.guarantee(.derivedBroadcastersSubscribeOnce))
  func `a derived broadcaster ends with its source and not before, without being kept`() async {
    var messenger: Messenger<Int>? = Messenger()
    guard let stream = messenger?.map({ $0 + 1 }).filter({ $0 > 1 }).subscribe() else { return }
    messenger?.send(1)
    messenger?.send(0)
    messenger?.send(2)
    messenger = nil
    #expect(await stream.all() == [2, 3])
  }

  @Test(.guarantee(.derivedBroadcastersSubscribeOnce))
  func `a derived broadcaster keeps its source, and its subscribers do not`() {
    weak var source: CurrentValue<Int>?
    var stream: AsyncStream<Int>?
    do {
      let value = CurrentValue(1)
      source = value
      stream = value.map { $0 }.subscribe()
    }
    #expect(source == nil)
    var derived: (any Broadcaster<Int>)?
    do {
      let value = CurrentValue(1)
      source = value
      derived = value.removeDuplicates()
    }
    #expect(source != nil)
    derived = nil
    #expect(source == nil)
    withExtendedLifetime((stream, derived)) {}
  }

  @Test(.guarantee(.derivedBroadcastersSubscribeOnce))
  func `a derived broadcaster frees its closure with the last subscriber`() {
    let messenger = Messenger<Int>()
    weak var captured: Parcel?
    var stream: AsyncStream<Int>?
    do {
      let parcel = Parcel(1)
      captured = parcel
      stream = messenger.map { $0 + parcel.number }.subscribe()
    }
    #expect(captured != nil)
    withExtendedLifetime(stream) {}
    stream = nil
    #expect(captured == nil)
  }

  @Test(
    .guarantee(.derivedBroadcastersReplay),
    arguments: [
      (Policy.unbounded, [2, 4, 6, 8]), (.newest(2), [6, 8]), (.oldest(2), [2, 4]),
    ]
  )
  func `a derived broadcaster has a buffering policy count what has passed the filter`(
    policy: Policy,
    expected: [Int]
  ) async {
    let messenger = Messenger<Int>()
    let even = messenger.filter { $0.isMultiple(of: 2) }
    let subscription = even.subscription(bufferingPolicy: policy())
    for number in 1...9 { messenger.send(number) }
    messenger.finish()
    #expect(await subscription.all() == expected)
    #expect(subscription.droppedCount == 4 - expected.count)
  }

  @Test(.guarantee(.derivedBroadcastersReplay))
  func `a derived broadcaster delivers no state that does not pass to a new subscriber`() async {
    let number = CurrentValue(2)
    let even = number.filter { $0.isMultiple(of: 2) }
    let first = even.subscription(bufferingPolicy: .unbounded)
    number.value = 3
    let second = even.subscription(bufferingPolicy: .unbounded)
    number.value = 4
    number.finish()
    #expect(await first.all() == [2, 4])
    #expect(await second.all() == [4])
  }

  @Test(.guarantee(.removeDuplicatesComparesPerSubscriber))
  func `a derived broadcaster without duplicates compares with what each subscriber got last`()
    async
  {
    let messenger = Messenger<String>()
    let names = messenger.removeDuplicates()
    let all = names.subscription(bufferingPolicy: .unbounded)
    let slow = names.subscription(bufferingPolicy: .bufferingNewest(1))
    messenger.send("a")
    #expect(await slow.first(1) == ["a"])
    for name in ["a", "b", "b", "a"] { messenger.send(name) }
    messenger.finish()
    #expect(await all.all() == ["a", "b", "a"])
    // It has missed b, and has received a last.
    #expect(await slow.all() == [])
  }

  @Test(.guarantee(.removeDuplicatesComparesPerSubscriber))
  func `a derived broadcaster without duplicates gives later subscribers what they have not got`()
    async
  {
    let value = CurrentValue(1)
    let distinct = value.removeDuplicates()
    let first = distinct.subscription(bufferingPolicy: .unbounded)
    value.value = 1
    let second = distinct.subscription(bufferingPolicy: .unbounded)
    value.value = 2
    value.finish()
    #expect(await first.all() == [1, 2])
    #expect(await second.all() == [1, 2])
  }

  @Test(.guarantee(.derivedBroadcastersKeepOrder))
  func `a derived broadcaster sends what its closure sends to the source afterwards`() async {
    let messenger = Messenger<Int>()
    let derived = messenger.map { [weak messenger] number in
      if number < 5 { messenger?.send(number + 1) }
      return number
    }
    let subscription = derived.subscription(bufferingPolicy: .unbounded)
    messenger.send(0)
    messenger.finish()
    #expect(await subscription.all() == [0, 1, 2, 3, 4, 5])
  }

  @Test(
    .guarantee(.derivedBroadcastersKeepOrder),
    arguments: [Policy.unbounded, .newest(1), .newest(100), .oldest(100)]
  )
  func `a derived broadcaster gives no subscriber a state from before a sign-out`(
    policy: Policy
  ) async {
    let publisher = DataPublisher<String>()
    let texts = publisher.map { $0.value ?? "none" }
    let lengths = texts.map { $0.count }
    publisher.update("secret")
    let text = texts.subscription(bufferingPolicy: policy())
    let length = lengths.subscription(bufferingPolicy: policy())
    for _ in 0..<20 { publisher.update("secret") }
    publisher.reset()
    let late = texts.subscription(bufferingPolicy: policy())
    #expect(await text.first(1) == ["none"])
    #expect(await length.first(1) == [4])
    #expect(await late.first(1) == ["none"])
    publisher.update("public")
    #expect(await text.first(1) == ["public"])
  }

  @Test(.guarantee(.derivedBroadcastersKeepOrder))
  func `a view delivers no state from before a clear of a value that was already removed`()
    async throws
  {
    let cache = Multiplexer<String> { throw Broken() }
    let values = cache.map { $0.value ?? "none" }
    let subscription = values.subscription(bufferingPolicy: .unbounded)
    for _ in 0..<3 { cache.store("secret") }
    try await cache.clear()
    try await cache.clear()
    #expect(await subscription.first(1) == ["none"])
    cache.store("public")
    #expect(await subscription.first(1) == ["public"])
  }

  @Test(.guarantee(.derivedBroadcastersKeepOrder))
  func `a derived broadcaster misses nothing while many send and subscribe at once`() async {
    for _ in 0..<50 {
      let value = CurrentValue(0)
      let derived = value.map { $0 }
      let sender = Task.detached { for number in 1...200 { value.value = number } }
      let readers = (0..<8).map { _ in
        Task.detached { derived.subscription(bufferingPolicy: .unbounded) }
      }
      var subscriptions: [Subscription<Int>] = []
      for reader in readers { subscriptions.append(await reader.value) }
      await sender.value
      value.finish()
      for subscription in subscriptions {
        let numbers = await subscription.all()
        #expect(numbers == Array((numbers.first ?? 201)...200))
      }
    }
  }
}
