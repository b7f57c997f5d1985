import Foundation
import Plexus
import PlexusSharedTesting
import Synchronization

/// The operations with a goal, each followed by its peer, if there is one.
let goalOperations: [Operation] =
  requestGoals + optionGoals + eventGoals + publisherAndStoreGoals

// MARK: - Requests

private let requestGoals: [Operation] = [
  Operation("map: miss", goal: 15_000, count: 300) { count in
    let map = articles()
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, by a hand-written actor") { count in
    let cache = HandWrittenCache { Article($0) }
    for key in 0..<count { use(try await cache.request(key)) }
  },
  // The first evictions, which set up what the policy remembers, are in both runs that are compared.
  Operation("map: miss, bounded by 100", goal: 16_000, count: 900) { count in
    let map = MultiplexerMap<Int, Article>(capacity: .count(100)) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: refresh + request", goal: 18_000, count: 300) { count in
    let map = articles()
    for _ in 0..<count { use(try await map.refresh(1).request(1)) }
  },
  Operation("map: bulk miss, a key of 100", goal: 4_000, count: 3_000) { count in
    let map = bulkArticles()
    for first in stride(from: 0, to: count, by: 100) {
      use(await map.request(first..<min(first + 100, count)).count)
    }
  },
  Operation("map: batch of 100 single requests, a key", goal: 6_000) { count in
    let map = MultiplexerMap<Int, Article>.bulk(window: .seconds(60), maximumBatchSize: 100) {
      keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, Article($0)) })
    }
    for first in stride(from: 0, to: count, by: 100) {
      await inChildTasks(first..<first + 100) { key in use(try? await map.request(key)) }
    }
  },
  Operation("map: request(keys), a hit, a key of 100", goal: 600, count: 30_000) { count in
    let map = filledArticles(100)
    for _ in 0..<count / 100 { use(await map.request(0..<100).count) }
  },
  Operation("map: response, a hit", goal: 900, count: 600) { count in
    let map = filledArticles(8)
    for number in 0..<count { use(try await map.response(number & 7).value) }
  },
  Operation("map: store a new key", goal: 2_500) { count in
    let map = articles()
    for key in 0..<count { map.store(Article(key), for: key) }
  },
  Operation("map: store(values), a new key of 100", goal: 2_500) { count in
    let map = articles()
    for first in stride(from: 0, to: count, by: 100) {
      let keys = first..<first + 100
      map.store(Dictionary(uniqueKeysWithValues: keys.map { ($0, Article($0)) }))
    }
  },
  Operation("map: store the same key", goal: 1_200) { count in
    let map = articles()
    for number in 0..<count { map.store(Article(number), for: 1) }
  },
  Operation("map: store + clear(key)", goal: 5_000, count: 300) { count in
    let map = articles()
    for key in 0..<count {
      map.store(Article(key), for: key)
      try await map.clear(key)
    }
  },
  Operation("map: subscription(to:) and drop", goal: 6_000) { count in
    let map = articles()
    for _ in 0..<count { _ = map.subscription(to: 1) }
  },
  Operation("map: init", goal: 30_000, count: 300) { count in
    for _ in 0..<count { _ = articles() }
  },
  Operation("multiplexer: init", goal: 8_000, count: 600) { count in
    for _ in 0..<count { _ = Multiplexer<Article> { Article(1) } }
  },
  Operation("Zipper of 3 hits", goal: 4_000, count: 600) { count in
    let (first, second, third) = (filledMultiplexer(), filledMultiplexer(), filledMultiplexer())
    for _ in 0..<count {
      let (one, two, three) = try await Zipper(first, second, third).values()
      use(one.number + two.number + three.number)
    }
  },
  Operation("Zipper of 3 hits, by async let", count: 600) { count in
    let (first, second, third) = (filledMultiplexer(), filledMultiplexer(), filledMultiplexer())
    for _ in 0..<count {
      async let one = first.request()
      async let two = second.request()
      async let three = third.request()
      use(try await one.number + two.number + three.number)
    }
  },
  Operation("map: hit", goal: 265, count: 30_000) { count in
    let map = filledArticles(8)
    for number in 0..<count { use(try await map.request(number & 7)) }
  },
  Operation("map: hit of a copy of a shared tier", goal: 275, count: 30_000) { count in
    let map = MultiplexerMap<Int, Article>(cacher: SharedMemory<Article>().node()) { Article($0) }
    for key in 0..<8 { _ = try await map.request(key) }
    for number in 0..<count { use(try await map.request(number & 7)) }
  },
  Operation("multiplexer: hit", goal: 220, count: 30_000) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(try await multiplexer.request()) }
  },
]

func articles() -> MultiplexerMap<Int, Article> {
  MultiplexerMap<Int, Article> { Article($0) }
}

func bulkArticles() -> MultiplexerMap<Int, Article> {
  .bulk { keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, Article($0)) }) }
}

func filledArticles(_ count: Int) -> MultiplexerMap<Int, Article> {
  let map = articles()
  for key in 0..<count { map.store(Article(key), for: key) }
  return map
}

func filledMultiplexer() -> Multiplexer<Article> {
  let multiplexer = Multiplexer<Article> { Article(1) }
  multiplexer.store(Article(1))
  return multiplexer
}

// MARK: - Options of maps

/// Each of them is followed by the same operation without the option.
private let optionGoals: [Operation] = [
  missOfTenThousand("10,000 waiting for a limit of 1", goal: 75_000, limited(to: 1)),
  missOfTenThousand("10,000 at once", CachePolicy()),
  nestedMiss("with a limit of 1", goal: 95_000, limited(to: 1)),
  nestedMiss("without a limit", CachePolicy()),
  bulkMissOfOne("that brings 9 other values", goal: 125_000) { _, values in values },
  bulkMissOfOne("that drops 9 other values") { key, values in [key: values[key] ?? Article(key)] },
  Operation("map: optimistic update, with tags of values", goal: 285_000, count: 600) { count in
    let map = MultiplexerMap<Int, Article>(
      valueTagging: { _, article in [CacheTag(article.number % 2 == 0 ? "even" : "odd")] },
      onKeyFetch: { Article($0) }
    )
    try await updateOptimistically(map, count)
  },
  Operation("map: optimistic update", count: 600) { count in
    try await updateOptimistically(articles(), count)
  },
]

/// Returns a policy with a limit for concurrent fetches.
func limited(to count: Int) -> CachePolicy {
  var policy = CachePolicy()
  policy.maximumConcurrentFetches = count
  return policy
}

private func missOfTenThousand(
  _ name: String,
  goal: Int? = nil,
  _ policy: CachePolicy
) -> Operation {
  Operation("map: miss, \(name)", goal: goal, count: 30_000) { count in
    let map = MultiplexerMap<Int, Article>(policy: policy) { Article($0) }
    for first in stride(from: 0, to: count, by: 10_000) {
      await inChildTasks(first..<first + 10_000) { key in use(try? await map.request(key)) }
    }
  }
}

/// A fetch that requests another key of its map.
private func nestedMiss(_ name: String, goal: Int? = nil, _ policy: CachePolicy) -> Operation {
  Operation("map: nested miss, \(name)", goal: goal, count: 300) { count in
    let inner = Inner()
    let map = MultiplexerMap<Int, Article>(policy: policy) { key in
      key < 0 ? Article(key) : try await inner.request(-1 - key)
    }
    inner.map.withLock { $0 = map }
    for key in 0..<count { use(try await map.request(key)) }
  }
}

/// The map that a fetch requests from.
private final class Inner: Sendable {
  let map = Mutex<MultiplexerMap<Int, Article>?>(nil)

  func request(_ key: Int) async throws -> Article {
    let map = map.withLock { $0 }
    guard let map else { throw CancellationError() }
    return try await map.request(key)
  }
}

/// A request of one key of a map whose origin has ten values in each answer.
private func bulkMissOfOne(
  _ name: String,
  goal: Int? = nil,
  _ answer: @escaping @Sendable (Int, [Int: Article]) -> [Int: Article]
) -> Operation {
  Operation("map: bulk miss, one key \(name)", goal: goal, count: 300) { count in
    let map = MultiplexerMap<Int, Article>.bulk { keys in
      let key = keys.first ?? 0
      let values = (key..<key + 10).map { ($0, Article($0)) }
      return answer(key, Dictionary(uniqueKeysWithValues: values))
    }
    for number in 0..<count { use(try await map.request(10 * number)) }
  }
}

private func updateOptimistically(_ map: MultiplexerMap<Int, Article>, _ count: Int) async throws {
  for key in 0..<8 { map.store(Article(key), for: key) }
  for number in 0..<count {
    try await map.update(
      number & 7,
      optimistically: { $0 = Article($0.number + 1) },
      commit: {}
    )
  }
}

/// The peer of a map: an actor with a dictionary of values and one of tasks.
private actor HandWrittenCache {
  private var values: [Int: Article] = [:]
  private var tasks: [Int: Task<Article, any Error>] = [:]
  private let fetch: @Sendable (Int) async throws -> Article

  init(_ fetch: @escaping @Sendable (Int) async throws -> Article) {
    self.fetch = fetch
  }

  func request(_ key: Int) async throws -> Article {
    if let value = values[key] { return value }
    if let task = tasks[key] { return try await task.value }
    let task = Task { try await fetch(key) }
    tasks[key] = task
    defer { tasks[key] = nil }
    let value = try await task.value
    values[key] = value
    return value
  }
}

// MARK: - Events and messages

/// An event.
struct Tick: Event {
  let number: Int
}

/// An event that is retained for later subscribers.
struct KeptTick: Event {
  let number: Int

  var persistence: EventPersistence { .persistent(.neverClear, limit: 1) }
}

private let eventGoals: [Operation] = [
  postToHandlers(1, goal: 2_000),
  postByNotificationCenter(1),
  postToHandlers(10, goal: 5_000),
  postByNotificationCenter(10),
  Operation("bus: post to 1 stream", goal: 1_500, count: 600) { count in
    let bus = EventBus()
    let reader = Reader(bus.subscription(to: Tick.self), count: count)
    await settle()
    for number in 0..<count { bus.post(Tick(number: number)) }
    await reader.finish()
  },
  Operation("bus: post to 1 stream of the newest", goal: 2_500) { count in
    let bus = EventBus()
    let ticks = bus.subscription(to: Tick.self, bufferingPolicy: .bufferingNewest(1))
    for number in 0..<count { bus.post(Tick(number: number)) }
    withExtendedLifetime(ticks) {}
  },
  Operation("bus: post to 1 handler, a log of posts", goal: 4_500, count: 600) { count in
    let bus = EventBus()
    let calls = Countdown(count)
    let token = bus.observe(Tick.self) { _ in calls.signal() }
    // Full, as the log of a program without an open page.
    let posts = bus.posts(bufferingPolicy: .bufferingNewest(100))
    for number in 0..<count { bus.post(Tick(number: number)) }
    await calls.wait()
    withExtendedLifetime((token, posts)) {}
  },
  Operation("bus: postAndWait, 1 handler", goal: 9_000, count: 600) { count in
    let bus = EventBus()
    let token = bus.observe(Tick.self) { _ in }
    for number in 0..<count { _ = await bus.postAndWait(Tick(number: number)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: post, kept", goal: 4_000, count: 600) { count in
    let bus = EventBus()
    for number in 0..<count { bus.post(KeptTick(number: number)) }
  },
  Operation("bus: observe and drop", goal: 10_000, count: 600) { count in
    let bus = EventBus()
    for _ in 0..<count { _ = bus.observe(Tick.self) { _ in } }
  },
  Operation("messenger: observe and drop", goal: 9_000, count: 600) { count in
    let messenger = Messenger<Int>()
    for _ in 0..<count { _ = messenger.observe { _ in } }
  },
  sendToHandlers(1, goal: 1_500),
  Operation("messenger: init", goal: 3_000) { count in
    for _ in 0..<count { _ = Messenger<Int>() }
  },
  Operation("messenger: send, no reader", goal: 200, count: 30_000) { count in
    let messenger = Messenger<Int>()
    for number in 0..<count { messenger.send(number) }
  },
]

private func postToHandlers(_ handlers: Int, goal: Int) -> Operation {
  Operation("bus: post to \(handlers) handler\(handlers == 1 ? "" : "s")", goal: goal, count: 300) {
    count in
    let bus = EventBus()
    let calls = Countdown(count * handlers)
    let tokens = (0..<handlers).map { _ in bus.observe(Tick.self) { _ in calls.signal() } }
    for number in 0..<count { bus.post(Tick(number: number)) }
    await calls.wait()
    withExtendedLifetime(tokens) {}
  }
}

private func postByNotificationCenter(_ handlers: Int) -> Operation {
  let name = "bus: post to \(handlers) handler\(handlers == 1 ? "" : "s"), by NotificationCenter"
  return Operation(name) { count in
    let center = NotificationCenter()
    let calls = Countdown(count * handlers)
    let name = Notification.Name("tick")
    let tokens = (0..<handlers).map { _ in
      center.addObserver(forName: name, object: nil, queue: nil) { _ in calls.signal() }
    }
    for number in 0..<count { center.post(name: name, object: nil, userInfo: ["number": number]) }
    await calls.wait()
    for token in tokens { center.removeObserver(token) }
  }
}

func sendToHandlers(_ handlers: Int, goal: Int? = nil) -> Operation {
  Operation("messenger: send to \(handlers) handler\(handlers == 1 ? "" : "s")", goal: goal) {
    count in
    let messenger = Messenger<Int>()
    let calls = Countdown(count * handlers)
    let tokens = (0..<handlers).map { _ in messenger.observe { _ in calls.signal() } }
    for number in 0..<count { messenger.send(number) }
    await calls.wait()
    withExtendedLifetime(tokens) {}
  }
}

// MARK: - Publishers and stores

private let publisherAndStoreGoals: [Operation] = [
  Operation("publisher: update, no reader", goal: 900) { count in
    let publisher = DataPublisher<Article>()
    for number in 0..<count { publisher.update(Article(number)) }
  },
  Operation("publisher: update, 1 reader", goal: 2_500, count: 600) { count in
    let publisher = DataPublisher<Article>()
    var states = publisher.subscription().makeAsyncIterator()
    for number in 0..<count {
      publisher.update(Article(number))
      use(await states.next(isolation: nil)?.value)
    }
  },
  Operation("publisher: load", goal: 12_000, count: 600) { count in
    let publisher = DataPublisher<Article>()
    for number in 0..<count { use(try await publisher.load { Article(number) }) }
  },
  Operation("store: dispatch, 1 reader of states", goal: 2_500, count: 600) { count in
    let store = Store<Int, Int>(0) { $0 += $1 }
    var states = store.subscription().makeAsyncIterator()
    for _ in 0..<count {
      store.dispatch(1)
      use(await states.next(isolation: nil) ?? 0)
    }
  },
  Operation("store: subscription(toChangesOf:) and drop", goal: 9_000, count: 600) { count in
    let store = Store<Int, Int>(0) { $0 += $1 }
    for _ in 0..<count { _ = store.subscription(toChangesOf: { $0 }) }
  },
]
