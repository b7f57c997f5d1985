import Foundation
import Plexus

/// Operations of multiplexers, maps and repositories without a goal.
let requestingOperations: [Operation] =
  multiplexerOperations + mapOperations + optionOperations + missOperations + otherRequests

private struct FetchFailed: Error {}

// MARK: - Multiplexer

private let multiplexerOperations: [Operation] = [
  Operation("multiplexer: refresh + request", count: 300) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(try await multiplexer.refresh().request()) }
  },
  Operation("multiplexer: refresh") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(multiplexer.refresh().cachedValue) }
  },
  Operation("multiplexer: response, a hit") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(try await multiplexer.response().value) }
  },
  Operation("multiplexer: cachedValue", count: 30_000) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(multiplexer.cachedValue) }
  },
  Operation("multiplexer: store") { count in
    let multiplexer = filledMultiplexer()
    for number in 0..<count { multiplexer.store(Article(number)) }
  },
  Operation("multiplexer: store, 1 reader") { count in
    let multiplexer = filledMultiplexer()
    let reader = Reader(multiplexer.subscription(bufferingPolicy: .unbounded), count: count + 1)
    await settle()
    for number in 0..<count { multiplexer.store(Article(number)) }
    await reader.finish()
  },
  Operation("multiplexer: clear", count: 600) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { try await multiplexer.clear() }
  },
  Operation("multiplexer: clearMemory") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { multiplexer.clearMemory() }
  },
  Operation("multiplexer: flush, nothing to write") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { try await multiplexer.flush() }
  },
  Operation("multiplexer: subscribe and drop", count: 600) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { _ = multiplexer.subscribe() }
  },
  Operation("multiplexer: subscription and drop", count: 600) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { _ = multiplexer.subscription() }
  },
  Operation("multiplexer: subscriberCount") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(multiplexer.subscriberCount) }
  },
  Operation("multiplexer: events and drop", count: 600) { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { _ = multiplexer.events() }
  },
  Operation("multiplexer: statistics") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(multiplexer.statistics.hits) }
  },
]

// MARK: - Map

private let mapOperations: [Operation] = [
  Operation("map: init, bounded by 100", count: 300) { count in
    for _ in 0..<count { _ = MultiplexerMap<Int, Article>(capacity: .count(100)) { Article($0) } }
  },
  Operation("map: bulk init", count: 300) { count in
    for _ in 0..<count { _ = bulkArticles() }
  },
  Operation("map: cachedValue", count: 30_000) { count in
    let map = filledArticles(8)
    for number in 0..<count { use(map.cachedValue(number & 7)) }
  },
  Operation("map: entries, 1,000 of 10,000", count: 30) { count in
    let map = filledArticles(10_000)
    for _ in 0..<count { use(map.entries(limit: 1_000).count) }
  },
  Operation("map: entries, 10 of 10,000 by a condition", count: 30) { count in
    let map = filledArticles(10_000)
    for _ in 0..<count { use(map.entries(limit: 10) { $0 < 10 }.count) }
  },
  Operation("map: flights, none of 10,000 keys", count: 300) { count in
    let map = filledArticles(10_000)
    _ = map.flights(limit: 1)
    for _ in 0..<count { use(map.flights(limit: 10).count) }
  },
  Operation("map: miss, after a snapshot of flights", count: 300) { count in
    let map = articles()
    _ = map.flights(limit: 1)
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("multiplexer: entry") { count in
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { use(multiplexer.entry?.value) }
  },
  Operation("map: subscript + request, a hit") { count in
    let map = filledArticles(8)
    for number in 0..<count { use(try await map[number & 7].request()) }
  },
  Operation("map: hit, bounded by 100", count: 30_000) { count in
    let map = MultiplexerMap<Int, Article>(capacity: .count(100)) { Article($0) }
    for key in 0..<8 { map.store(Article(key), for: key) }
    for number in 0..<count { use(try await map.request(number & 7)) }
  },
  Operation("map: store a new key, bounded by 100") { count in
    let map = MultiplexerMap<Int, Article>(capacity: .count(100)) { Article($0) }
    for key in 0..<count { map.store(Article(key), for: key) }
  },
  Operation("map: store, 1 reader of the key") { count in
    let map = articles()
    let reader = Reader(map.subscription(to: 1, bufferingPolicy: .unbounded), count: count + 1)
    await settle()
    for number in 0..<count { map.store(Article(number), for: 1) }
    await reader.finish()
  },
  Operation("map: store, 1 reader of events") { count in
    let map = articles()
    let reader = Reader(map.events(), count: count)
    await settle()
    for number in 0..<count { map.store(Article(number), for: 1) }
    await reader.finish()
  },
  Operation("map: refresh(key)") { count in
    let map = filledArticles(8)
    for number in 0..<count { use(map.refresh(number & 7).cachedValue(1)) }
  },
  Operation("map: refreshAll of 8") { count in
    let map = filledArticles(8)
    for _ in 0..<count { use(map.refreshAll().cachedValue(1)) }
  },
  Operation("map: clear(key)", count: 300) { count in
    let map = filledArticles(300)
    for key in 0..<count { try await map.clear(key) }
  },
  Operation("map: clear(key), there is none", count: 300) { count in
    let map = articles()
    for key in 0..<count { try await map.clear(key) }
  },
  Operation("map: clear of none", count: 300) { count in
    let map = articles()
    for _ in 0..<count { try await map.clear() }
  },
  Operation("map: clearMemory of none", count: 300) { count in
    let map = articles()
    for _ in 0..<count { map.clearMemory() }
  },
  Operation("map: flush, nothing to write") { count in
    let map = filledArticles(8)
    for _ in 0..<count { try await map.flush() }
  },
  Operation("map: subscribe(to:) and drop", count: 600) { count in
    let map = articles()
    for _ in 0..<count { _ = map.subscribe(to: 1) }
  },
  Operation("map: subscriberCount(of:)") { count in
    let map = articles()
    for _ in 0..<count { use(map.subscriberCount(of: 1)) }
  },
  Operation("map: events and drop", count: 600) { count in
    let map = articles()
    for _ in 0..<count { _ = map.events() }
  },
  Operation("map: statistics") { count in
    let map = filledArticles(8)
    for _ in 0..<count { use(map.statistics.hits) }
  },
]

// MARK: - Options

private let optionOperations: [Operation] = [
  Operation("map: store, with tags of values") { count in
    let map = MultiplexerMap<Int, Article>(
      valueTagging: { key, _ in [CacheTag(key % 2 == 0 ? "even" : "odd")] },
      onKeyFetch: { Article($0) }
    )
    for number in 0..<count { map.store(Article(number), for: number & 7) }
  },
  Operation("map: miss, with a limit for fetches", count: 300) { count in
    let map = MultiplexerMap<Int, Article>(policy: limited(to: 8)) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, 100 waiting for a limit of 1") { count in
    let map = MultiplexerMap<Int, Article>(policy: limited(to: 1)) { Article($0) }
    for first in stride(from: 0, to: count, by: 100) {
      await inChildTasks(first..<first + 100) { key in use(try? await map.request(key)) }
    }
  },
  Operation("map: hit, with a time to idle", count: 30_000) { count in
    let map = MultiplexerMap<Int, Article>(policy: CachePolicy(timeToIdle: .seconds(60))) {
      Article($0)
    }
    for key in 0..<8 { map.store(Article(key), for: key) }
    for number in 0..<count { use(try await map.request(number & 7)) }
  },
  Operation("map: 100 tasks that wait, a task", count: 3_000) { count in
    for _ in stride(from: 0, to: count, by: 100) {
      await inChildTasks(0..<100) { _ in await Task.yield() }
    }
  },
  Operation("map: update(key)") { count in
    let map = filledArticles(8)
    for number in 0..<count { use(map.update(number & 7) { $0 = Article($0.number + 1) }) }
  },
  Operation("map: clear(where:) of 1 among 1,000", count: 300) { count in
    let map = filledArticles(1_000)
    for key in 0..<count {
      try await map.clear { $0 == key }
      map.store(Article(key), for: key)
    }
  },
  Operation("map: clear by tag of 1,000 among 10,000, a key", count: 3_000) { count in
    try await clearTags(count, among: 10_000)
  },
  Operation("map: clear by tag of 1,000 among 1,000,000, a key", count: 3_000) { count in
    try await clearTags(count, among: 1_000_000)
  },
]

/// Clears a number of entries by their tags, each of which a thousand of them have.
private func clearTags(_ count: Int, among total: Int) async throws {
  let map = MultiplexerMap<Int, Article>(
    tagging: { $0 < 3_000 ? [CacheTag("\($0 / 1_000)")] : [] },
    onKeyFetch: { Article($0) }
  )
  for key in 0..<total { map.store(Article(key), for: key) }
  for tag in 0..<count / 1_000 { try await map.clear(tags: [CacheTag("\(tag)")]) }
}

/// Runs a closure in a child task for each key.
func inChildTasks(
  _ keys: Range<Int>,
  _ body: @escaping @concurrent @Sendable (Int) async -> Void
) async {
  await withTaskGroup(of: Void.self) { group in
    for key in keys { group.addTask { await body(key) } }
  }
}

// MARK: - Misses

/// A cacher that is always empty.
private struct EmptyCacher: Cacher {
  func entry(forKey key: String) async throws -> CacheEntry<Article>? { nil }
  func store(_ entries: [String: CacheEntry<Article>]) async throws {}
  func removeEntries(forKeys keys: Set<String>) async throws {}
  func removeAllEntries() async throws {}
}

/// A cacher that has every entry.
private struct FullCacher: Cacher {
  private let now = Duration.seconds(Date.now.timeIntervalSince1970)

  func entry(forKey key: String) async throws -> CacheEntry<Article>? {
    CacheEntry(
      value: Article(1),
      storedAt: now,
      validator: nil,
      directives: CacheDirectives()
    )
  }

  func store(_ entries: [String: CacheEntry<Article>]) async throws {}
  func removeEntries(forKeys keys: Set<String>) async throws {}
  func removeAllEntries() async throws {}
}

private let missOperations: [Operation] = [
  Operation("map: miss, the fetch suspends", count: 300) { count in
    let map = MultiplexerMap<Int, Article> { key in
      await Task.yield()
      return Article(key)
    }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, with a context", count: 300) { count in
    let map = MultiplexerMap<Int, Article> { (key: Int, _: FetchContext<Article>) in
      .value(Article(key))
    }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, not modified", count: 300) { count in
    let map = MultiplexerMap<Int, Article> { (key: Int, context: FetchContext<Article>) in
      context.previousValue == nil ? .value(Article(key)) : .notModified()
    }
    use(try await map.request(1))
    for _ in 0..<count { use(try await map.refresh(1).request(1)) }
  },
  Operation("map: miss, transient", count: 300) { count in
    let map = MultiplexerMap<Int, Article> { (key: Int, _: FetchContext<Article>) in
      .transient(Article(key))
    }
    for _ in 0..<count { use(try await map.request(1)) }
  },
  Operation("map: miss by response", count: 300) { count in
    let map = articles()
    for key in 0..<count { use(try await map.response(key).value) }
  },
  Operation("map: miss that fails", count: 300) { count in
    let map = MultiplexerMap<Int, Article> { _ in throw FetchFailed() }
    for key in 0..<count { use(try? await map.request(key)) }
  },
  Operation("map: miss, with a timeout", count: 300) { count in
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(60)
    let map = MultiplexerMap<Int, Article>(policy: policy) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, with retries", count: 300) { count in
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 3, base: .seconds(1), cap: .seconds(10), jitter: 0)
    let map = MultiplexerMap<Int, Article>(policy: policy) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, 1 reader of the key", count: 300) { count in
    let map = articles()
    let reader = Reader(map.subscription(to: 1, bufferingPolicy: .unbounded), count: 1 + 2 * count)
    await settle()
    for _ in 0..<count { use(try await map.refresh(1).request(1)) }
    await reader.finish()
  },
  Operation("map: miss, with a cacher that is not read", count: 300) { count in
    let map = MultiplexerMap<Int, Article>(cacher: EmptyCacher()) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: miss, with a cacher that has nothing", count: 300) { count in
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    let map = MultiplexerMap<Int, Article>(policy: policy, cacher: EmptyCacher()) { Article($0) }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: restored from a cacher", count: 300) { count in
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    let map = MultiplexerMap<Int, Article>(policy: policy, cacher: FullCacher()) { _ in
      throw FetchFailed()
    }
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: store + flush, with a cacher", count: 300) { count in
    let map = MultiplexerMap<Int, Article>(cacher: EmptyCacher()) { Article($0) }
    for _ in 0..<count {
      map.store(Article(1), for: 1)
      try await map.flush()
    }
  },
  Operation("map: request(keys), a miss, a key of 100", count: 300) { count in
    let map = articles()
    for first in stride(from: 0, to: count, by: 100) {
      use(await map.request(first..<min(first + 100, count)).count)
    }
  },
  Operation("map: bulk miss, one key", count: 300) { count in
    let map = bulkArticles()
    for key in 0..<count { use(try await map.request(key)) }
  },
  Operation("map: join, with a task for each caller", count: 600) { count in
    let door = Countdown(1)
    let map = MultiplexerMap<Int, Article> { key in
      await door.wait()
      return Article(key)
    }
    try await inTasks(count, whenAllWait: { door.signal() }) { try await map.request(1) }
  },
  Operation("map: join, by task.value", count: 600) { count in
    let door = Countdown(1)
    let task = Task<Article, any Error> {
      await door.wait()
      return Article(1)
    }
    try await inTasks(count, whenAllWait: { door.signal() }) { try await task.value }
  },
]

/// Calls a closure in a number of tasks, and another one when all of them wait.
private func inTasks(
  _ count: Int,
  whenAllWait open: () -> Void,
  _ body: @escaping @concurrent @Sendable () async throws -> Article
) async throws {
  let tasks = (0..<count).map { _ in Task.detached { try await body() } }
  await settle()
  open()
  for task in tasks { use(try await task.value) }
}

// MARK: - Several requests, repositories, values

private let otherRequests: [Operation] = [
  Operation("Zipper.results of 3 hits", count: 600) { count in
    let (first, second, third) = (filledMultiplexer(), filledMultiplexer(), filledMultiplexer())
    for _ in 0..<count {
      let (one, two, three) = await Zipper(first, second, third).results()
      use(try one.get().number + two.get().number + three.get().number)
    }
  },
  Operation("Zipper.add") { count in
    let (first, second) = (filledMultiplexer(), filledMultiplexer())
    for _ in 0..<count { withExtendedLifetime(Zipper(first).add(second)) {} }
  },
  Operation("array of 3 hits: values", count: 600) { count in
    let requests = [filledMultiplexer(), filledMultiplexer(), filledMultiplexer()]
    for _ in 0..<count { use(try await requests.values().count) }
  },
  Operation("array of 3 hits: results", count: 600) { count in
    let requests = [filledMultiplexer(), filledMultiplexer(), filledMultiplexer()]
    for _ in 0..<count { use(await requests.results().count) }
  },
  Operation("Request: init + request") { count in
    for number in 0..<count { use(try await Request { Article(number) }.request()) }
  },
  Operation("repository: init") { count in
    for _ in 0..<count { _ = MuxRepository() }
  },
  Operation("repository: register + unregister a multiplexer") { count in
    let repository = MuxRepository()
    let multiplexer = filledMultiplexer()
    for _ in 0..<count { repository.unregister(multiplexer.register(in: repository)) }
  },
  Operation("repository: register + unregister a map") { count in
    let repository = MuxRepository()
    let map = articles()
    for _ in 0..<count { repository.unregister(map.register(in: repository)) }
  },
  Operation("repository: count") { count in
    let repository = MuxRepository()
    let member = filledMultiplexer().register(in: repository)
    for _ in 0..<count { use(repository.count) }
    withExtendedLifetime(member) {}
  },
  Operation("repository: clearAll of 1", count: 300) { count in
    let repository = MuxRepository()
    let member = filledMultiplexer().register(in: repository)
    for _ in 0..<count { try await repository.clearAll() }
    withExtendedLifetime(member) {}
  },
  Operation("repository: flushAll of 1", count: 300) { count in
    let repository = MuxRepository()
    let member = filledMultiplexer().register(in: repository)
    for _ in 0..<count { try await repository.flushAll() }
    withExtendedLifetime(member) {}
  },
  Operation("repository: clearMemory of 1") { count in
    let repository = MuxRepository()
    let member = filledMultiplexer().register(in: repository)
    for _ in 0..<count { repository.clearMemory() }
    withExtendedLifetime(member) {}
  },
  Operation("CacheStatistics: +", count: 30_000) { count in
    let one = CacheStatistics(hits: 1, misses: 1)
    var sum = CacheStatistics()
    for _ in 0..<count { sum = sum + one }
    use(sum.hits)
  },
  Operation("CachePolicy: init") { count in
    for number in 0..<count {
      let policy = CachePolicy(timeToLive: .seconds(number))
      use(policy.usesCachedValue(FetchFailed()) ? 1 : 0)
    }
  },
]
