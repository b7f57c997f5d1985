import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The default buffering of each source.
@Suite(.fewAtOnce) struct `Without a buffering policy` {
  private let numbers = Array(1...100)

  /// Reads the rest of streams and subscriptions.
  private func all<Element: Sendable>(
    _ streams: [AsyncStream<Element>],
    _ subscriptions: [Subscription<Element>]
  ) async -> [[Element]] {
    var lists: [[Element]] = []
    for stream in streams { lists.append(await stream.all()) }
    for subscription in subscriptions {
      #expect(subscription.droppedCount == 0)
      lists.append(await subscription.all())
    }
    return lists
  }

  /// Expects that a slow reader of states has skipped all but the last one.
  private func expectNewest<State: Sendable>(
    _ stream: AsyncStream<State>?,
    _ subscription: Subscription<State>?,
    of count: Int,
    _ isNewest: (State) -> Bool
  ) async {
    #expect(subscription?.droppedCount == count, "the replay was overwritten, too")
    let first = await stream?.all() ?? []
    let second = await subscription?.all() ?? []
    #expect(first.count == 1 && first.allSatisfy(isNewest))
    #expect(second.count == 1 && second.allSatisfy(isNewest))
    #expect(subscription?.droppedCount == count)
  }

  // MARK: - Nothing is lost

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a buffering policy, subscribers of a messenger lose nothing`()
    async
  {
    let messenger = Messenger<Int>()
    let streams = [messenger.subscribe(), messenger.subscribe(ignoring: Author())]
    let subscriptions = [messenger.subscription(), messenger.subscription(ignoring: Author())]
    for number in numbers { messenger.send(number) }
    messenger.finish()
    #expect(await all(streams, subscriptions) == Array(repeating: numbers, count: 4))
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a buffering policy, subscribers of an event bus lose nothing`() async {
    var bus: EventBus? = EventBus()
    let stream = bus?.subscribe(to: Ping.self)
    let subscription = bus?.subscription(to: Ping.self)
    for number in numbers { bus?.post(Ping(number)) }
    bus = nil
    let lists = await all([stream].compactMap(\.self), [subscription].compactMap(\.self))
    #expect(lists.map { $0.map(\.number) } == [numbers, numbers])
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a buffering policy, subscribers of debouncers and throttlers lose nothing`() async {
    var debouncer: Debouncer? = Debouncer(delay: .zero, clock: ManualClock())
    var variable: DebouncerVar<Int>? = DebouncerVar(0, delay: .zero, clock: ManualClock())
    var throttler: Throttler? = Throttler(interval: .zero, clock: ManualClock())
    let streams = [debouncer?.subscribe(), throttler?.subscribe()].compactMap(\.self)
    let subscriptions = [debouncer?.subscription(), throttler?.subscription()].compactMap(\.self)
    let values = [variable?.subscribe()].compactMap(\.self)
    let valuesToo = [variable?.subscription()].compactMap(\.self)
    for number in numbers {
      debouncer?.touch()
      variable?.value = number
      throttler?.touch()
    }
    (debouncer, variable, throttler) = (nil, nil, nil)
    #expect(await all(streams, subscriptions).map(\.count) == [100, 100, 100, 100])
    #expect(await all(values, valuesToo) == [numbers, numbers])
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a policy, subscribers of views of messages lose nothing, those of states skip`()
    async
  {
    let (messenger, value) = (Messenger<Int>(), CurrentValue(0))
    let views: [any Broadcaster<Int>] = [
      messenger.map { $0 }, messenger.filter { _ in true }, messenger.removeDuplicates(),
    ]
    let states: [any Broadcaster<Int>] = [
      value.map { $0 }, value.filter { _ in true }, value.removeDuplicates(), value.select { $0 },
    ]
    let streams = views.map { $0.subscribe() }
    let newest = states.map { $0.subscribe() }
    for number in numbers {
      messenger.send(number)
      value.value = number
    }
    messenger.finish()
    value.finish()
    #expect(await all(streams, []) == Array(repeating: numbers, count: 3))
    #expect(await all(newest, []) == Array(repeating: [100], count: 4))
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a buffering policy, subscribers to changes lose nothing`()
    async
  {
    var store: Store<Int, Int>? = Store(0) { $0 = $1 }
    var page = store?.page({ _ in 0 }, reducer: { (state: inout Int, new: Int) in state = new })
    let streams = [
      store?.changes(of: \.self), store?.changes(of: { $0 }),
      page?.changes(of: \.self), page?.changes(of: { $0 }),
      page?.changes(ofApp: \.self), page?.changes(ofApp: { $0 }),
    ].compactMap(\.self)
    let subscriptions = [
      store?.subscription(toChangesOf: \.self), store?.subscription(toChangesOf: { $0 }),
      page?.subscription(toChangesOf: \.self), page?.subscription(toChangesOf: { $0 }),
      page?.subscription(toChangesOfApp: \.self), page?.subscription(toChangesOfApp: { $0 }),
    ].compactMap(\.self)
    for number in numbers {
      store?.dispatch(number)
      page?.dispatch(number)
    }
    (store, page) = (nil, nil)
    let lists = await all(streams, subscriptions).map { $0.map(\.new) }
    #expect(lists == Array(repeating: [0] + numbers, count: 12))
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a buffering policy, subscribers of a shared sequence lose nothing`() async throws {
    let (source, failing) = (Messenger<Int>(), AsyncThrowingStream<Int, any Error>.makeStream())
    let shared = source.subscription().broadcast()
    let sharedToo = failing.stream.broadcast()
    let (streams, subscriptions) = ([shared.subscribe()], [shared.subscription()])
    let (results, resultsToo) = ([sharedToo.subscribe()], [sharedToo.subscription()])
    for number in numbers {
      source.send(number)
      failing.continuation.yield(number)
    }
    source.finish()
    failing.continuation.finish()
    #expect(await all(streams, subscriptions) == [numbers, numbers])
    let lists = try await all(results, resultsToo).map { try $0.map { try $0.get() } }
    #expect(lists == [numbers, numbers])
  }

  @Test(.guarantee(.messagesAreUnboundedByDefault))
  func `without a policy, readers of subscriber counts and of cache events lose nothing`() async {
    var publisher: DataPublisher<Int>? = DataPublisher()
    let counts = publisher?.subscriberCounts()
    for _ in 0..<3 { _ = publisher?.subscription() }
    publisher = nil
    #expect(await counts?.all() == [0, 1, 0, 1, 0, 1, 0])
    var cache: Multiplexer<Int>? = Multiplexer { 1 }
    var map: MultiplexerMap<Int, Int>? = MultiplexerMap { $0 }
    let (events, mapEvents) = (cache?.events(), map?.events())
    for _ in 0..<5 {
      _ = try? await cache?.refresh().request()
      _ = try? await map?.refresh(1).request(1)
    }
    (cache, map) = (nil, nil)
    #expect(await events?.all().count == 5)
    #expect(await mapEvents?.all().count == 5)
  }

  // MARK: - The newest state is enough

  @Test(.guarantee(.statesSkipToTheNewestByDefault))
  func `without a policy, subscribers of a data publisher receive only the newest state`() async {
    struct Manager: DataManager {
      let publisher = DataPublisher<Int>()
      func fetch() async throws -> Int { 0 }
    }
    var manager: Manager? = Manager()
    let stream = manager?.publisher.subscribe()
    let subscription = manager?.publisher.subscription()
    let managed = manager?.subscribe()
    for number in numbers { manager?.publisher.update(number) }
    manager = nil
    await expectNewest(stream, subscription, of: 100) { $0.value == 100 }
    #expect(await managed?.all().map(\.value) == [100])
  }

  @Test(.guarantee(.statesSkipToTheNewestByDefault))
  func `without a policy, subscribers of a paged publisher receive only the newest state`()
    async throws
  {
    var publisher: PagedPublisher<String, Int>? = Catalog().publisher()
    let stream = publisher?.subscribe()
    let subscription = publisher?.subscription()
    for _ in 0..<3 { try await publisher?.loadNextPage() }
    publisher = nil
    await expectNewest(stream, subscription, of: 6) { $0.value?.isComplete == true }
  }

  @Test(.guarantee(.statesSkipToTheNewestByDefault))
  func `without a policy, subscribers of a multiplexer and of a key get only the newest state`()
    async
  {
    var cache: Multiplexer<Int>? = Multiplexer { 0 }
    var map: MultiplexerMap<Int, Int>? = MultiplexerMap { _ in 0 }
    let (stream, subscription) = (cache?.subscribe(), cache?.subscription())
    let (keyStream, keySubscription) = (map?.subscribe(to: 7), map?.subscription(to: 7))
    for number in numbers {
      cache?.store(number)
      map?.store(number, for: 7)
    }
    (cache, map) = (nil, nil)
    await expectNewest(stream, subscription, of: 100) { $0.value == 100 }
    await expectNewest(keyStream, keySubscription, of: 100) { $0.value == 100 }
  }

  @Test(.guarantee(.statesSkipToTheNewestByDefault))
  func `without a buffering policy, subscribers of stores receive only the newest state`() async {
    var store: Store<Int, Int>? = Store(0) { $0 = $1 }
    var page = store?.page({ _ in 0 }, reducer: { (state: inout Int, new: Int) in state = new })
    let (stream, subscription) = (store?.subscribe(), store?.subscription())
    let (pageStream, pageSubscription) = (page?.subscribe(), page?.subscription())
    for number in numbers {
      store?.dispatch(number)
      page?.dispatch(number)
    }
    (store, page) = (nil, nil)
    await expectNewest(stream, subscription, of: 100) { $0 == 100 }
    await expectNewest(pageStream, pageSubscription, of: 200) { $0 == (100, 100) }
  }

  // MARK: - Handlers

  @MainActor @Test(.guarantee(.handlersSeeEverythingByDefault))
  func `without a policy, handlers are called for everything, of states, too`() async {
    let (messenger, publisher) = (Messenger<Int>(), DataPublisher<Int>())
    let logs = (0..<8).map { _ in Log<Int>() }
    let owner = Parcel(0)
    let tokens = [
      messenger.observe { logs[0].append($0) },
      messenger.observe { number async in logs[1].append(number) },
      publisher.observe { logs[2].append($0.value ?? 0) },
      publisher.observe { state async in logs[3].append(state.value ?? 0) },
    ]
    messenger.observe(as: owner) { _, number in logs[4].append(number) }
    messenger.observe(as: owner) { _, number async in logs[5].append(number) }
    publisher.observe(as: owner) { _, state in logs[6].append(state.value ?? 0) }
    publisher.observe(as: owner) { _, state async in logs[7].append(state.value ?? 0) }
    // None of them is called before this actor is free again.
    for number in numbers {
      messenger.send(number)
      publisher.update(number)
    }
    for (index, log) in logs.enumerated() {
      let isOfStates = index % 4 >= 2
      #expect(await log.first(isOfStates ? 101 : 100) == (isOfStates ? [0] : []) + numbers)
    }
    withExtendedLifetime((tokens, owner)) {}
  }
}
