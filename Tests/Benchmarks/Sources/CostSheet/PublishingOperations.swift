import Plexus

/// Operations of publishers without a goal.
let publishingOperations: [Operation] = publisherOperations + loadStateOperations + pagedOperations

// MARK: - DataPublisher

private struct LoadFailed: Error {}

private func filledPublisher() -> DataPublisher<Article> {
  let publisher = DataPublisher<Article>()
  publisher.update(Article(1))
  return publisher
}

private let publisherOperations: [Operation] = [
  Operation("publisher: init", count: 600) { count in
    for _ in 0..<count { _ = DataPublisher<Article>() }
  },
  Operation("publisher: state") { count in
    let publisher = filledPublisher()
    for _ in 0..<count { use(publisher.state.value) }
  },
  Operation("publisher: isStale") { count in
    let publisher = filledPublisher()
    for _ in 0..<count { use(publisher.isStale ? 1 : 0) }
  },
  Operation("publisher: subscriberCount") { count in
    let publisher = filledPublisher()
    for _ in 0..<count { use(publisher.subscriberCount) }
  },
  Operation("publisher: subscribe and drop", count: 600) { count in
    let publisher = filledPublisher()
    for _ in 0..<count { _ = publisher.subscribe() }
  },
  Operation("publisher: subscription and drop", count: 600) { count in
    let publisher = filledPublisher()
    for _ in 0..<count { _ = publisher.subscription() }
  },
  Operation("publisher: update, 1 reader that is behind", count: 300) { count in
    let publisher = DataPublisher<Article>()
    let reader = Reader(publisher.subscription()) { $0.value?.number == count - 1 }
    await settle()
    for number in 0..<count { publisher.update(Article(number)) }
    await reader.finish()
  },
  Operation("publisher: update, 1 reader of all", count: 300) { count in
    let publisher = DataPublisher<Article>()
    let reader = Reader(publisher.subscription(bufferingPolicy: .unbounded), count: count + 1)
    await settle()
    for number in 0..<count { publisher.update(Article(number)) }
    await reader.finish()
  },
  Operation("publisher: update, 1 reader, one at a time", count: 300) { count in
    let publisher = DataPublisher<Article>()
    let reader = Reader(publisher.subscription(), count: count + 1)
    await settle()
    for number in 0..<count {
      publisher.update(Article(number))
      await Task.yield()
    }
    await reader.finish()
  },
  Operation("publisher: startLoading + update") { count in
    let publisher = filledPublisher()
    for number in 0..<count {
      publisher.startLoading()
      publisher.update(Article(number))
    }
  },
  Operation("publisher: fail") { count in
    let publisher = filledPublisher()
    for _ in 0..<count { publisher.fail(LoadFailed()) }
  },
  Operation("publisher: reset") { count in
    let publisher = filledPublisher()
    for _ in 0..<count { publisher.reset() }
  },
  Operation("publisher: update + reset") { count in
    let publisher = filledPublisher()
    for number in 0..<count {
      publisher.update(Article(number))
      publisher.reset()
    }
  },
  Operation("publisher: loadIfNeeded, there is a value") { count in
    let publisher = filledPublisher()
    for number in 0..<count { use(try await publisher.loadIfNeeded { Article(number) }) }
  },
  Operation("publisher: load that fails", count: 600) { count in
    let publisher = filledPublisher()
    for _ in 0..<count { use(try? await publisher.load { throw LoadFailed() }) }
  },
  Operation("publisher: follow, an element", count: 600) { count in
    let publisher = DataPublisher<Int>()
    let reader = Reader(publisher.subscription(bufferingPolicy: .unbounded), count: count + 1)
    publisher.follow(numbers(count))
    await reader.finish()
  },
  Operation("publisher: subscriberCounts and drop", count: 600) { count in
    let publisher = filledPublisher()
    for _ in 0..<count { _ = publisher.subscriberCounts() }
  },
  Operation("publisher: waitForSubscriber, there is one") { count in
    let publisher = filledPublisher()
    let subscription = publisher.subscription()
    for _ in 0..<count { try await publisher.waitForSubscriber() }
    withExtendedLifetime(subscription) {}
  },
  Operation("manager: refresh", count: 600) { count in
    let manager = ArticleManager()
    for _ in 0..<count { use(try await manager.refresh()) }
  },
  Operation("manager: refreshIfNeeded, there is a value") { count in
    let manager = ArticleManager()
    manager.publisher.update(Article(1))
    for _ in 0..<count { use(try await manager.refreshIfNeeded()) }
  },
  Operation("manager: subscribe and drop", count: 600) { count in
    let manager = ArticleManager()
    for _ in 0..<count { _ = manager.subscribe() }
  },
  Operation("manager: logOut") { count in
    let manager = ArticleManager()
    for _ in 0..<count { manager.logOut() }
  },
]

private struct ArticleManager: DataManager {
  let publisher = DataPublisher<Article>()

  func fetch() async throws -> Article { Article(1) }
}

// MARK: - LoadState

private let loadStateOperations: [Operation] = [
  Operation("LoadState: value + error + isLoading") { count in
    let state = LoadState.loaded(Article(1))
    for _ in 0..<count {
      use(state.value)
      use(state.error == nil && !state.isLoading ? 1 : 0)
    }
  },
  Operation("LoadState: map") { count in
    let state = LoadState.loaded(Article(1))
    for _ in 0..<count { use(state.map { $0.number }.value ?? 0) }
  },
]

// MARK: - PagedPublisher

private func pagedPublisher() -> PagedPublisher<Int, Int> {
  PagedPublisher { cursor in Page(items: [], next: (cursor ?? 0) + 1) }
}

private func filledList() async throws -> PagedPublisher<Int, Int> {
  let publisher = PagedPublisher<Int, Int> { cursor in
    Page(items: [0, 1, 2], next: (cursor ?? 0) + 1)
  }
  for _ in 0..<3 { try await publisher.loadNextPage() }
  return publisher
}

private let pagedOperations: [Operation] = [
  Operation("paged publisher: init", count: 600) { count in
    for _ in 0..<count { _ = pagedPublisher() }
  },
  Operation("paged publisher: loadFirstPage", count: 300) { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { try await publisher.loadFirstPage() }
  },
  Operation("paged publisher: loadNextPage", count: 300) { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { try await publisher.loadNextPage() }
  },
  Operation("paged publisher: loadNextPage, at the end") { count in
    let publisher = PagedPublisher<Int, Int> { _ in Page(items: [], next: nil) }
    try await publisher.loadFirstPage()
    for _ in 0..<count { try await publisher.loadNextPage() }
  },
  Operation("paged publisher: loadNextPage, 10 pages at most", count: 300) { count in
    let publisher = PagedPublisher<Int, Int>(maximumPageCount: 10) { cursor in
      Page(items: [cursor ?? 0], next: (cursor ?? 0) + 1)
    }
    for _ in 0..<count { try await publisher.loadNextPage() }
  },
  Operation("paged publisher: refresh of 3 pages", count: 300) { count in
    let publisher = try await filledList()
    for _ in 0..<count { try await publisher.refresh() }
  },
  Operation("paged publisher: edit of 3 pages") { count in
    let publisher = try await filledList()
    for number in 0..<count { publisher.edit { $0[0] = number } }
  },
  Operation("paged map: the list of a key") { count in
    let map = PagedMap<Int, Int, Int>(capacity: 20) { _, _ in Page(items: [], next: nil) }
    for number in 0..<count { use(map[number % 10].state.isLoading ? 1 : 0) }
  },
  Operation("paged map: a new list, 20 others", count: 600) { count in
    let map = PagedMap<Int, Int, Int>(capacity: 20) { _, _ in Page(items: [], next: nil) }
    for number in 0..<count { use(map[number].state.isLoading ? 1 : 0) }
  },
  Operation("paged publisher: reset") { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { publisher.reset() }
  },
  Operation("paged publisher: state") { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { use(publisher.state.isLoading ? 1 : 0) }
  },
  Operation("paged publisher: subscriberCount") { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { use(publisher.subscriberCount) }
  },
  Operation("paged publisher: subscribe and drop", count: 600) { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { _ = publisher.subscribe() }
  },
  Operation("paged publisher: subscription and drop", count: 600) { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { _ = publisher.subscription() }
  },
  Operation("paged publisher: subscriberCounts and drop", count: 600) { count in
    let publisher = pagedPublisher()
    for _ in 0..<count { _ = publisher.subscriberCounts() }
  },
  Operation("paged publisher: waitForSubscriber, there is one") { count in
    let publisher = pagedPublisher()
    let subscription = publisher.subscription()
    for _ in 0..<count { try await publisher.waitForSubscriber() }
    withExtendedLifetime(subscription) {}
  },
]
