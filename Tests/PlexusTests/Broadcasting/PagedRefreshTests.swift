import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Refreshes of all loaded pages, and edits.
@MainActor @Suite(.fewAtOnce) struct `Refreshing and editing pages` {
  let catalog = Catalog()
  let list: PagedPublisher<String, Int>

  init() {
    list = catalog.publisher()
  }

  func load(_ count: Int) async throws {
    for _ in 0..<count { try await list.loadNextPage() }
  }

  /// Starts a refresh, and waits until it fetches its first page.
  func refresh() async -> Task<Void, any Error> {
    catalog.gate.close()
    let count = catalog.gate.arrivalCount
    let task = Task { try await list.refresh() }
    await catalog.gate.arrivals(count + 1)
    return task
  }

  @Test(.guarantee(.refreshesReplaceAllPages))
  func `a refresh loads every page again, and replaces all of them together`() async throws {
    try await load(2)
    catalog.publish("!")
    let states = list.subscription(bufferingPolicy: .unbounded)
    try await list.refresh()
    #expect(catalog.asked.entries == [nil, 1, nil, 1])
    let expected = ["loaded(a0 b0 a1 b1)", "loading(a0 b0 a1 b1)", "loaded(a0! b0! a1! b1!)"]
    #expect(await states.first(3).map(words) == expected)
    try await list.loadNextPage()
    #expect(words(list.state) == "loaded(a0! b0! a1! b1! a2! b2!.)")
  }

  @Test(.guarantee(.refreshesReplaceAllPages))
  func `a refresh that fails at any page keeps the old ones`() async throws {
    try await load(3)
    for failing in 0..<3 {
      let refreshing = await refresh()
      for _ in 0..<failing {
        let count = catalog.gate.arrivalCount
        catalog.gate.admit(1)
        await catalog.gate.arrivals(count + 1)
      }
      // The page at the gate is being fetched; the next one is the second one to fail.
      if failing < 2 { catalog.fail(LoadingFailure.second) } else { refreshing.cancel() }
      catalog.gate.open()
      if failing < 2 {
        await #expect(throws: LoadingFailure.second) { try await refreshing.value }
        #expect(words(list.state) == "failed(second, a0 b0 a1 b1 a2 b2.)")
      } else {
        await #expect(throws: CancellationError.self) { try await refreshing.value }
      }
    }
    try await list.refresh()
    #expect(words(list.state) == "loaded(a0 b0 a1 b1 a2 b2.)")
  }

  @Test func `a refresh without pages loads the first one`() async throws {
    try await list.refresh()
    #expect(words(list.state) == "loaded(a0 b0)")
    #expect(catalog.asked.entries == [nil])
  }

  @Test func `a refresh joins the load of the first page, which supersedes one in flight`()
    async throws
  {
    try await load(2)
    let superseded = await refresh()
    let first = Task { try await list.loadFirstPage() }
    await catalog.gate.arrivals(4)
    let joining = Task { try await list.refresh() }
    await everybodyHasBegun()
    catalog.gate.open()
    for task in [superseded, first, joining] { try await task.value }
    #expect(words(list.state) == "loaded(a0 b0)")
    // The superseded refresh has not fetched its second page.
    #expect(catalog.asked.entries == [nil, 1, nil, nil])
  }

  @Test(.guarantee(.resetDropsAllPages))
  func `a reset during a refresh leaves nothing of it, and stops its fetches`() async throws {
    try await load(2)
    let refreshing = await refresh()
    list.edit { $0 = ["edited"] }
    list.reset()
    catalog.gate.open()
    try await refreshing.value
    #expect(words(list.state) == "unknown")
    #expect(catalog.asked.entries == [nil, 1, nil])
  }

  @Test func `a refresh that its last caller leaves is cancelled, and the old pages stay`()
    async throws
  {
    try await load(2)
    let refreshing = await refresh()
    let other = Task { try await list.refresh() }
    await everybodyHasBegun()
    other.cancel()
    await #expect(throws: CancellationError.self) { try await other.value }
    #expect(words(list.state) == "loading(a0 b0 a1 b1)")
    refreshing.cancel()
    await #expect(throws: CancellationError.self) { try await refreshing.value }
    #expect(words(list.state) == "loaded(a0 b0 a1 b1)")
  }

  @Test func `a refresh that returns to a page fails, and the old pages stay`() async throws {
    let isBroken = Log<Void>()
    let list = PagedPublisher<Int, Int> { cursor in
      let page = cursor ?? 0
      return Page(items: [page], next: isBroken.count > 0 ? max(1, page) : page + 1)
    }
    for _ in 0..<3 { try await list.loadNextPage() }
    isBroken.append(())
    await #expect(throws: LoadError.repeatedCursor) { try await list.refresh() }
    #expect(list.state.value?.items == [0, 1, 2])
    #expect(list.state.error as? LoadError == .repeatedCursor)
  }

  // MARK: - Edits

  @Test(.guarantee(.editsStay))
  func `an edit is seen at once, and stays when another page arrives`() async throws {
    try await load(2)
    catalog.gate.close()
    let next = Task { try await list.loadNextPage() }
    await catalog.gate.arrivals(3)
    let states = list.subscription(bufferingPolicy: .unbounded)
    list.edit { items in items.removeAll { $0 == "a0" || $0 == "b1" } }
    #expect(words(list.state) == "loading(b0 a1)")
    catalog.gate.open()
    try await next.value
    #expect(words(list.state) == "loaded(b0 a1 a2 b2.)")
    let expected = ["loading(a0 b0 a1 b1)", "loading(b0 a1)", "loaded(b0 a1 a2 b2.)"]
    #expect(await states.first(3).map(words) == expected)
  }

  @Test(.guarantee(.editsStay))
  func `edits during a refresh are applied again, in order, to the new pages`() async throws {
    try await load(2)
    catalog.publish("!")
    let refreshing = await refresh()
    list.edit { items in items = items.map { "\($0)1" } }
    list.edit { items in items = items.map { "\($0)2" } }
    #expect(words(list.state) == "loading(a012 b012 a112 b112)")
    catalog.gate.open()
    try await refreshing.value
    #expect(words(list.state) == "loaded(a0!12 b0!12 a1!12 b1!12)")
    try await list.refresh()
    #expect(words(list.state) == "loaded(a0! b0! a1! b1!)")
  }

  @Test func `an edit during the load of the first page is applied to it`() async throws {
    catalog.gate.close()
    let first = Task { try await list.loadFirstPage() }
    await catalog.gate.arrivals(1)
    list.edit { $0.removeLast() }
    #expect(words(list.state) == "loading(-)")
    catalog.gate.open()
    try await first.value
    #expect(words(list.state) == "loaded(a0)")
  }

  @Test func `an edit of nothing calls no closure and publishes nothing`() async throws {
    let states = list.subscription(bufferingPolicy: .unbounded)
    let calls = Log<Void>()
    list.edit { _ in calls.append(()) }
    list.reset()
    list.edit { _ in calls.append(()) }
    #expect(calls.count == 0)
    try await load(1)
    let expected = ["unknown", "loading(-)", "loaded(a0 b0)"]
    #expect(await states.first(3).map(words) == expected)
  }

  @Test(.guarantee(.editsStay))
  func `an edit is called for each page, and again if the list changes meanwhile`() async throws {
    try await load(2)
    let seen = Log<[String]>()
    list.edit { [list] items in
      seen.append(items)
      // A change from within, as from another thread: once.
      if seen.count == 1 { list.edit { $0.append("+") } }
      items.append("*")
    }
    let expected = [["a0", "b0"], ["a1", "b1"], ["a0", "b0", "+"], ["a1", "b1", "+"]]
    #expect(seen.entries == expected)
    #expect(words(list.state) == "loaded(a0 b0 + * a1 b1 + *)")
  }

  @Test func `an edit that resets the list changes nothing`() async throws {
    try await load(2)
    list.edit { [list] items in
      list.reset()
      items = ["edited"]
    }
    #expect(words(list.state) == "unknown")
  }

  @Test func `edits from many threads are all applied`() async throws {
    try await load(1)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        group.addTask { [list] in list.edit { $0.append("\(number)") } }
      }
    }
    #expect(Set(list.state.value?.items ?? []).count == 102)
  }

  @Test func `a failure stays published when the pages are edited`() async throws {
    try await load(1)
    catalog.fail(LoadingFailure.first)
    await #expect(throws: LoadingFailure.first) { try await list.loadNextPage() }
    list.edit { $0.removeLast() }
    #expect(words(list.state) == "failed(first, a0)")
  }

  @Test func `an edit is released with the load that it is kept for`() async throws {
    let census = Census()
    try await load(1)
    edit(holding: census.parcel())
    await census.falls(to: 0)
    let refreshing = await refresh()
    edit(holding: census.parcel())
    #expect(census.living == 1)
    catalog.gate.open()
    try await refreshing.value
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  private func edit(holding parcel: Parcel) {
    list.edit { _ in withExtendedLifetime(parcel) {} }
  }
}
