import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Lists by key: which of them stay, and what a sign-out leaves of them.
@MainActor @Suite(.fewAtOnce) struct `A map of lists` {
  typealias Lists = PagedMap<String, String, Int>

  let asked = Log<String>()
  let gate = Gate()

  init() {
    gate.open()
  }

  func makeMap(capacity: Int, maximumPageCount: Int? = nil) -> Lists {
    PagedMap(capacity: capacity, maximumPageCount: maximumPageCount) { [asked, gate] key, cursor in
      asked.append("\(key)\(cursor ?? 0)")
      try await gate.wait()
      let page = cursor ?? 0
      return Page(items: ["\(key)\(page)"], next: page < 9 ? page + 1 : nil)
    }
  }

  @Test(.guarantee(.mapsOfListsKeepThoseInUse))
  func `a map of lists has one list for a key, which loads the pages of that key`() async throws {
    let map = makeMap(capacity: 5)
    let list = map["a"]
    #expect(map["a"] === list)
    #expect(map["b"] !== list)
    try await list.loadFirstPage()
    try await map["a"].loadNextPage()
    try await map["b"].loadFirstPage()
    #expect(list.state.value?.items == ["a0", "a1"])
    #expect(map["b"].state.value?.items == ["b0"])
    #expect(asked.entries == ["a0", "a1", "b0"])
    #expect(map.count == 2)
  }

  @Test(.guarantee(.mapsOfListsKeepThoseInUse))
  func `a map of lists evicts the unused list that was accessed longest ago`() async throws {
    let map = makeMap(capacity: 2)
    for key in ["a", "b", "c"] { try await map[key].loadFirstPage() }
    try await map["a"].loadNextPage()
    _ = map["d"]
    // "d" is in use while it is created.
    #expect(map.count == 3)
    _ = map["e"]
    #expect(map.count == 3)
    #expect(words(map["a"].state) == "loaded(a0 a1)")
    #expect(words(map["b"].state) == "unknown")
    #expect(words(map["c"].state) == "unknown")
  }

  @Test(.guarantee(.mapsOfListsKeepThoseInUse))
  func `a map of lists never evicts a list with subscribers`() async throws {
    let map = makeMap(capacity: 0)
    let states = map["a"].subscription(bufferingPolicy: .unbounded)
    let token = map["b"].observe { (_: LoadState<Pages<String>>) in }
    for number in 0..<10 { _ = map["\(number)"] }
    try await map["a"].loadFirstPage()
    #expect(await states.first(3).map(words) == ["unknown", "loading(-)", "loaded(a0)"])
    #expect(map["b"].subscriberCount == 1)
    #expect(map.count == 3)
    token.cancel()
    _ = map["c"]
    #expect(map.count == 2)
  }

  @Test func `a map of lists evicts a list whose handlers belong to released owners`() {
    final class Screen: Sendable {}
    let map = makeMap(capacity: 0)
    var screen: Screen? = Screen()
    if let screen { map["a"].observe(as: screen) { _, _ in } }
    _ = map["b"]
    #expect(map.count == 2)
    screen = nil
    _ = map["c"]
    #expect(map.count == 1)
  }

  @Test(.guarantee(.mapsOfListsKeepThoseInUse))
  func `a map of lists keeps a list that a caller holds, or that loads a page for one`()
    async throws
  {
    let map = makeMap(capacity: 0)
    let held = map["a"]
    gate.close()
    let loading = Task { [map] in try await map["b"].loadFirstPage() }
    await gate.arrivals(1)
    for number in 0..<10 { _ = map["\(number)"] }
    #expect(map["a"] === held)
    #expect(words(map["b"].state) == "loading(-)")
    gate.open()
    try await loading.value
    // A stream of a held list keeps it from here on.
    let states = held.subscription()
    _ = map["c"]
    #expect(map["a"] === held)
    withExtendedLifetime(states) {}
  }

  @Test func `a map of lists keeps a list that a view of it is subscribed to`() async throws {
    let map = makeMap(capacity: 0)
    let counts = map["a"].select { $0.value?.items.count ?? -1 }
    let token = counts.observe { (_: Int) in }
    for number in 0..<5 { _ = map["\(number)"] }
    try await map["a"].loadFirstPage()
    #expect(counts.current == 1)
    token.cancel()
  }

  @Test(.guarantee(.mapsOfListsSignOut))
  func `clearing a map of lists resets all lists, and uses no page in flight`() async throws {
    let map = makeMap(capacity: 1)
    let held = map["held"]
    try await held.loadFirstPage()
    try await map["kept"].loadFirstPage()
    let states = map["watched"].subscription(bufferingPolicy: .unbounded)
    try await map["watched"].loadFirstPage()
    gate.close()
    let late = Task { try await held.loadNextPage() }
    await gate.arrivals(4)
    try await map.clear()
    for key in ["held", "kept", "watched"] { #expect(words(map[key].state) == "unknown") }
    gate.open()
    try await late.value
    #expect(words(held.state) == "unknown")
    #expect(await states.first(1).map(words) == ["unknown"])
    #expect(map["held"] === held)
  }

  @Test(.guarantee(.mapsOfListsSignOut))
  func `a repository clears a map of lists with its other members`() async throws {
    let repository = MuxRepository()
    let map = makeMap(capacity: 1).register(in: repository)
    let list = map["a"]
    try await list.loadFirstPage()
    try await repository.clearAll()
    #expect(words(list.state) == "unknown")
    try await list.loadFirstPage()
    repository.unregister(map)
    try await repository.clearAll()
    #expect(words(list.state) == "loaded(a0)")
  }

  @Test func `a repository does not use pages that were loaded while it detached its members`()
    async throws
  {
    let repository = MuxRepository()
    let map = makeMap(capacity: 1)
    let list = map["a"]
    map.register(in: repository)
    map.pause()
    try await list.loadFirstPage()
    map.resume()
    #expect(words(list.state) == "unknown")
  }

  @Test func `a repository that clears its memory leaves the lists in use alone`() async throws {
    let repository = MuxRepository()
    let map = makeMap(capacity: 5).register(in: repository)
    let held = map["a"]
    try await held.loadFirstPage()
    try await map["b"].loadFirstPage()
    repository.clearMemory()
    #expect(map.count == 1)
    #expect(words(map["a"].state) == "loaded(a0)")
    #expect(words(map["b"].state) == "unknown")
  }

  @Test func `a map of lists is not kept by a repository, and ends the streams of its lists`()
    async
  {
    let repository = MuxRepository()
    var map: Lists? = makeMap(capacity: 1).register(in: repository)
    let states = map?["a"].subscription(bufferingPolicy: .unbounded)
    map = nil
    #expect(repository.count == 0)
    #expect(await states?.all().map(words) == ["unknown"])
  }

  @Test func `a map of lists limits the pages of each list`() async throws {
    let map = makeMap(capacity: 1, maximumPageCount: 2)
    let list = map["a"]
    for _ in 0..<4 { try await list.loadNextPage() }
    #expect(list.state.value?.items == ["a2", "a3"])
  }

  @Test func `a map of lists releases evicted pages with no lock held`() async {
    let census = Census()
    let reference = Log<PagedMap<Int, Parcel, Int>>()
    let map = PagedMap<Int, Parcel, Int>(capacity: 1) { key, _ in
      let parcel = census.parcel {
        for map in reference.entries { withoutLocks { _ = (map[key], map.count) } }
      }
      return Page(items: [parcel], next: nil)
    }
    reference.append(map)
    for key in 0..<4 { try? await map[key].loadFirstPage() }
    await census.falls(to: 2)
    #expect(census.living <= 2)
  }

  @Test(.startsProcess) func `a map of lists refuses limits without a meaning`() async {
    await #expect(processExitsWith: .failure) {
      _ = PagedMap<Int, Int, Int>(capacity: -1) { _, _ in Page(items: [], next: nil) }
    }
    await #expect(processExitsWith: .failure) {
      _ = PagedMap<Int, Int, Int>(capacity: 1, maximumPageCount: 0) { _, _ in
        Page(items: [], next: nil)
      }
    }
    await #expect(processExitsWith: .failure) {
      _ = PagedPublisher<Int, Int>(maximumPageCount: 0) { _ in Page(items: [], next: nil) }
    }
  }

  @Test func `threads that access a map of lists get the same list of a key`() async {
    let map = makeMap(capacity: 2)
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let key = "\(number % 7)"
          let list = map[key]
          return map[key] === list && map[key] === list
        }
      }
      for await isSame in group { #expect(isSame) }
    }
    _ = map["last"]
    #expect(map.count <= 3)
  }
}
