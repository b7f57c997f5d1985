import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The guarantees for concurrent page loads.
@MainActor @Suite(.fewAtOnce) struct `Loading pages` {
  let catalog = Catalog(isHeldUp: true)
  let publisher: PagedPublisher<String, Int>

  init() {
    publisher = catalog.publisher()
  }

  func first() -> Task<Void, any Error> {
    Task { try await publisher.loadFirstPage() }
  }

  func next() -> Task<Void, any Error> {
    Task { try await publisher.loadNextPage() }
  }

  /// Lets the publisher load a number of pages without suspending them.
  func load(_ count: Int) async throws {
    catalog.gate.open()
    for _ in 0..<count { try await publisher.loadNextPage() }
    catalog.gate.close()
  }

  @Test(.guarantee(.pageLoadsShareOneFetch))
  func `loading pages at the same time joins: one fetch for all callers`() async throws {
    let tasks = [next(), first(), first(), next(), next()]
    await everybodyHasBegun()
    catalog.gate.open()
    for task in tasks { try await task.value }
    #expect(catalog.asked.entries == [nil])
    #expect(words(publisher.state) == "loaded(a0 b0)")
    catalog.gate.close()
    let more = (0..<5).map { _ in next() }
    await everybodyHasBegun()
    catalog.gate.open()
    for task in more { try await task.value }
    #expect(catalog.asked.entries == [nil, 1])
    #expect(words(publisher.state) == "loaded(a0 b0 a1 b1)")
  }

  @Test func `a load of pages that fails throws the error to all callers`() async throws {
    try await load(1)
    catalog.fail(LoadingFailure.second)
    let tasks = (0..<4).map { _ in next() }
    await everybodyHasBegun()
    catalog.gate.open()
    for task in tasks { await #expect(throws: LoadingFailure.second) { try await task.value } }
    #expect(catalog.asked.entries == [nil, 1])
    #expect(words(publisher.state) == "failed(second, a0 b0)")
  }

  @Test func `loading pages joins a new first page when the next one is requested`() async throws {
    try await load(3)
    let tasks = [first(), next(), first()]
    await everybodyHasBegun()
    catalog.gate.open()
    for task in tasks { try await task.value }
    #expect(catalog.asked.entries == [nil, 1, 2, nil])
    #expect(words(publisher.state) == "loaded(a0 b0)")
  }

  @Test(arguments: [false, true])
  func `loading pages does not use a page that a new first one has overtaken`(
    isLate: Bool
  ) async throws {
    try await load(1)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let overtaken = next()
    await catalog.gate.arrivals(2)
    catalog.publish("!")
    let newest = first()
    await catalog.gate.arrivals(3)
    #expect(catalog.asked.entries == [nil, 1, nil])
    if isLate {
      // The first one in the queue is the superseded page.
      catalog.gate.admit(1)
      try await overtaken.value
      #expect(words(publisher.state) == "loading(a0 b0)")
    }
    catalog.gate.open()
    try await newest.value
    try await overtaken.value
    #expect(words(publisher.state) == "loaded(a0! b0!)")
    try await publisher.loadNextPage()
    let expected = [
      "loaded(a0 b0)", "loading(a0 b0)", "loading(a0 b0)", "loaded(a0! b0!)",
      "loading(a0! b0!)", "loaded(a0! b0! a1! b1!)",
    ]
    #expect(await states.first(6).map(words) == expected)
  }

  @Test(.guarantee(.resetDropsAllPages))
  func `a load of pages that ends after a reset is not used, though its callers return`()
    async throws
  {
    try await load(1)
    let late = next()
    await catalog.gate.arrivals(2)
    publisher.reset()
    catalog.gate.open()
    try await late.value
    #expect(words(publisher.state) == "unknown")
    try await publisher.loadNextPage()
    #expect(catalog.asked.entries == [nil, 1, nil])
    #expect(words(publisher.state) == "loaded(a0 b0)")
  }

  @Test func `loading pages starts again after a reset while the old page is in flight`()
    async throws
  {
    let old = first()
    await catalog.gate.arrivals(1)
    publisher.reset()
    catalog.publish("!")
    let new = next()
    await catalog.gate.arrivals(2)
    catalog.gate.admit(1)
    try await old.value
    #expect(words(publisher.state) == "loading(-)")
    catalog.gate.open()
    try await new.value
    #expect(words(publisher.state) == "loaded(a0! b0!)")
  }

  @Test func `a load of pages is left at once by a caller that is cancelled`() async throws {
    try await load(1)
    let stays = next()
    await catalog.gate.arrivals(2)
    let doomed = (0..<20).map { _ in next() }
    await everybodyHasBegun()
    for task in doomed { task.cancel() }
    for task in doomed { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(words(publisher.state) == "loading(a0 b0)")
    catalog.gate.open()
    try await stays.value
    #expect(words(publisher.state) == "loaded(a0 b0 a1 b1)")
  }

  @Test(arguments: ["unknown", "loaded(a0 b0)", "failed(first, a0 b0)"], [false, true])
  func `a load of pages is cancelled with its last caller, and leaves the state as it was`(
    before: String,
    isOfFirstPage: Bool
  ) async throws {
    if before != "unknown" { try await load(1) }
    if before.hasPrefix("failed") {
      catalog.gate.open()
      catalog.fail(LoadingFailure.first)
      await #expect(throws: LoadingFailure.first) { try await publisher.loadNextPage() }
      catalog.gate.close()
    }
    #expect(words(publisher.state) == before)
    let arrivals = catalog.gate.arrivalCount
    let tasks = (0..<3).map { _ in isOfFirstPage ? first() : next() }
    await catalog.gate.arrivals(arrivals + 1)
    await everybodyHasBegun()
    #expect(publisher.state.isLoading)
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(words(publisher.state) == before)
    // The gate resumes a cancelled fetch.
    while catalog.gate.waiterCount > 0 { await Task.detached {}.value }
    catalog.gate.open()
    try await publisher.loadNextPage()
    let after = before == "unknown" ? "loaded(a0 b0)" : "loaded(a0 b0 a1 b1)"
    #expect(words(publisher.state) == after)
  }

  @Test func `an abandoned load of a first page goes back behind the page it has overtaken, too`()
    async throws
  {
    try await load(1)
    let overtaken = next()
    await catalog.gate.arrivals(2)
    let abandoned = first()
    await catalog.gate.arrivals(3)
    abandoned.cancel()
    await #expect(throws: CancellationError.self) { try await abandoned.value }
    #expect(words(publisher.state) == "loaded(a0 b0)")
    catalog.gate.open()
    try await overtaken.value
    #expect(words(publisher.state) == "loaded(a0 b0)")
  }

  @Test func `loading pages does nothing for a caller that is cancelled already`() async {
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    for isFirst in [false, true] {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        if isFirst { try await publisher.loadFirstPage() }
        try await publisher.loadNextPage()
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(catalog.asked.count == 0)
    let caller = first()
    #expect(await states.first(2).map(words) == ["unknown", "loading(-)"])
    catalog.gate.open()
    try? await caller.value
  }

  @Test func `loading pages runs off the caller's actor and apart from the caller's task`()
    async throws
  {
    enum Local {
      @TaskLocal static var value = 0
    }
    let seen = Log<Int>()
    let publisher = PagedPublisher<Int, Int> { _ in
      seen.append(Local.value)
      return Page(items: [], next: nil)
    }
    try await Local.$value.withValue(7) { try await publisher.loadFirstPage() }
    #expect(seen.entries == [0])
  }

  @Test func `loading pages fails if a fetch requests the page that it fetches`() async {
    let reference = Log<PagedPublisher<Int, Int>>()
    let publisher = PagedPublisher<Int, Int> { _ in
      try await reference.entries[0].loadNextPage()
      return Page(items: [], next: nil)
    }
    reference.append(publisher)
    await #expect(throws: LoadError.recursiveLoad) { try await publisher.loadFirstPage() }
    #expect(publisher.state.error is LoadError)
  }
}
