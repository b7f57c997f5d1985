import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The guarantees for readers of a list that is loaded page by page.
@Suite(.fewAtOnce) struct `A paged publisher` {
  @Test(.guarantee(.pagesLoadInOrder))
  func `a paged publisher publishes every page with those before it, up to the last`() async throws
  {
    let publisher = Catalog().publisher()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    try await publisher.loadFirstPage()
    #expect(words(publisher.state) == "loaded(a0 b0)")
    try await publisher.loadNextPage()
    try await publisher.loadNextPage()
    #expect(words(publisher.state) == "loaded(a0 b0 a1 b1 a2 b2.)")
    let expected = [
      "unknown", "loading(-)", "loaded(a0 b0)", "loading(a0 b0)", "loaded(a0 b0 a1 b1)",
      "loading(a0 b0 a1 b1)", "loaded(a0 b0 a1 b1 a2 b2.)",
    ]
    #expect(await states.first(7).map(words) == expected)
  }

  @Test
  func `a paged publisher fetches the first page without a cursor, others with that of the last`()
    async throws
  {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    for _ in 0..<3 { try await publisher.loadNextPage() }
    #expect(catalog.asked.entries == [nil, 1, 2])
  }

  @Test(.guarantee(.pagesLoadInOrder)) func `a paged publisher does nothing at the end`()
    async throws
  {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    for _ in 0..<3 { try await publisher.loadNextPage() }
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    for _ in 0..<3 { try await publisher.loadNextPage() }
    #expect(catalog.asked.count == 3)
    try await publisher.loadFirstPage()
    let expected = ["loaded(a0 b0 a1 b1 a2 b2.)", "loading(a0 b0 a1 b1 a2 b2.)"]
    #expect(await states.first(2).map(words) == expected)
  }

  @Test func `a paged publisher is complete with a single page, and continues after an empty one`()
    async throws
  {
    let single = PagedPublisher<String, Int> { _ in Page(items: [], next: nil) }
    try await single.loadFirstPage()
    #expect(words(single.state) == "loaded(.)")
    let sparse = PagedPublisher<String, Int> { cursor in
      cursor == nil ? Page(items: [], next: 1) : Page(items: ["x"], next: nil)
    }
    try await sparse.loadFirstPage()
    try await sparse.loadNextPage()
    #expect(words(sparse.state) == "loaded(x.)")
  }

  @Test func `a paged publisher replaces all pages by a new first one, and continues behind that`()
    async throws
  {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    for _ in 0..<3 { try await publisher.loadNextPage() }
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    catalog.publish("!")
    try await publisher.loadFirstPage()
    try await publisher.loadNextPage()
    let expected = [
      "loaded(a0 b0 a1 b1 a2 b2.)", "loading(a0 b0 a1 b1 a2 b2.)", "loaded(a0! b0!)",
      "loading(a0! b0!)", "loaded(a0! b0! a1! b1!)",
    ]
    #expect(await states.first(5).map(words) == expected)
    #expect(catalog.asked.entries == [nil, 1, 2, nil, 1])
  }

  @Test(.guarantee(.failedPagesKeepEarlierOnes))
  func `a paged publisher keeps the pages before one that failed, which can be requested again`()
    async throws
  {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    try await publisher.loadFirstPage()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    catalog.fail(LoadingFailure.first)
    await #expect(throws: LoadingFailure.first) { try await publisher.loadNextPage() }
    try await publisher.loadNextPage()
    #expect(catalog.asked.entries == [nil, 1, 1])
    let expected = [
      "loaded(a0 b0)", "loading(a0 b0)", "failed(first, a0 b0)", "loading(a0 b0)",
      "loaded(a0 b0 a1 b1)",
    ]
    #expect(await states.first(5).map(words) == expected)
  }

  @Test
  func `a paged publisher keeps all pages if a new first one fails, and continues behind them`()
    async throws
  {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    try await publisher.loadNextPage()
    try await publisher.loadNextPage()
    catalog.fail(LoadingFailure.first)
    await #expect(throws: LoadingFailure.first) { try await publisher.loadFirstPage() }
    #expect(words(publisher.state) == "failed(first, a0 b0 a1 b1)")
    try await publisher.loadNextPage()
    #expect(words(publisher.state) == "loaded(a0 b0 a1 b1 a2 b2.)")
    #expect(catalog.asked.entries == [nil, 1, nil, 2])
  }

  @Test func `a paged publisher begins with the first page if that has failed`() async throws {
    let catalog = Catalog()
    let publisher = catalog.publisher()
    catalog.fail(LoadingFailure.first)
    await #expect(throws: LoadingFailure.first) { try await publisher.loadNextPage() }
    #expect(words(publisher.state) == "failed(first, -)")
    try await publisher.loadNextPage()
    #expect(words(publisher.state) == "loaded(a0 b0)")
  }

  @Test func `a paged publisher is a state whose current element and parts are those of its pages`()
    async throws
  {
    let publisher = Catalog().publisher()
    let stateful: any StatefulBroadcaster<LoadState<Pages<String>>> = publisher
    let count = publisher.select { $0.value?.items.count ?? -1 }
    let counts = count.subscription(bufferingPolicy: .unbounded)
    #expect(words(stateful.current) == "unknown")
    try await publisher.loadFirstPage()
    #expect(words(stateful.current) == "loaded(a0 b0)")
    #expect(count.current == 2)
    try await publisher.loadNextPage()
    #expect(words(publisher.current) == "loaded(a0 b0 a1 b1)")
    publisher.reset()
    #expect(words(publisher.current) == "unknown")
    #expect(count.current == -1)
    #expect(await counts.first(1) == [-1], "a reset takes back what was not read")
  }

  @Test(.guarantee(.resetDropsAllPages))
  func `a paged publisher has dropped all pages when a reset is published`()
    async throws
  {
    let publisher = Catalog().publisher()
    try await publisher.loadFirstPage()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let seen = Log<String>()
    let token = publisher.observe { [weak publisher] (state: LoadState<Pages<String>>) in
      guard case .unknown = state else { return }
      if let publisher { seen.append(words(publisher.state)) }
    }
    #expect(await states.first(1).map(words) == ["loaded(a0 b0)"])
    publisher.reset()
    #expect(await seen.first(1) == ["unknown"])
    #expect(await states.first(1).map(words) == ["unknown"])
    try await publisher.loadNextPage()
    #expect(words(publisher.state) == "loaded(a0 b0)")
    token.cancel()
  }

  @Test func `a paged publisher releases its items with a reset, outside of its lock`() async throws
  {
    let census = Census()
    let released = Log<Void>()
    let reference = Log<PagedPublisher<Parcel, Int>>()
    let publisher = PagedPublisher<Parcel, Int> { cursor in
      let parcel = census.parcel {
        for publisher in reference.entries {
          withoutLocks {
            publisher.reset()
            _ = (publisher.state, publisher.subscriberCount, publisher.subscription())
          }
        }
        released.append(())
      }
      return Page(items: [parcel], next: (cursor ?? 0) + 1)
    }
    reference.append(publisher)
    for _ in 0..<3 { try await publisher.loadNextPage() }
    #expect(census.living == 3)
    publisher.reset()
    await census.falls(to: 0)
    #expect(released.count == 3)
    // A late page is released without a lock, and so is one that replaces others.
    for _ in 0..<2 { try await publisher.loadFirstPage() }
    await census.falls(to: 1)
    // The release of the first one resets the publisher, so that the second one can be gone, too.
    #expect(census.living <= 1)
    publisher.reset()
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  @Test func `a paged publisher releases its cursors with a reset`() async throws {
    let census = Census()
    let publisher = PagedPublisher<Int, ParcelCursor> { _ in
      Page(items: [1], next: ParcelCursor(parcel: census.parcel()))
    }
    try await publisher.loadFirstPage()
    try await publisher.loadNextPage()
    // That of the second page, for a refresh, and that of the third one.
    #expect(census.living == 2)
    publisher.reset()
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  @Test func `a paged publisher ends its streams with its last reference, and frees its fetch`()
    async throws
  {
    let census = Census()
    var publisher: PagedPublisher<String, Int>? = paged(holding: census.parcel())
    let stream = publisher?.subscribe(bufferingPolicy: .unbounded)
    let subscription = publisher?.subscription(bufferingPolicy: .unbounded)
    try await publisher?.loadFirstPage()
    publisher = nil
    #expect(await stream?.all().map(words) == ["unknown", "loading(-)", "loaded(x.)"])
    #expect(await subscription?.all().count == 3)
    await census.falls(to: 0)
  }

  /// A cursor that reports its release.
  private struct ParcelCursor: Equatable, Sendable {
    let parcel: Parcel

    static func == (left: Self, right: Self) -> Bool { left.parcel === right.parcel }
  }

  private func paged(holding captured: Parcel) -> PagedPublisher<String, Int> {
    PagedPublisher { _ in
      withExtendedLifetime(captured) { Page(items: ["x"], next: nil) }
    }
  }
}
