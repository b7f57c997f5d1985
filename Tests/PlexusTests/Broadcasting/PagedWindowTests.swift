import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Lists that are loaded at both ends, and lists of limited size.
@MainActor @Suite(.fewAtOnce) struct `Loading pages at both ends` {
  /// A page on its way to a caller.
  let gate = Gate()
  let asked = Log<Int?>()

  init() {
    gate.open()
  }

  /// A list of the pages from -3 to 3, of which the one in the middle is loaded first.
  func makeList(maximumPageCount: Int? = nil) -> PagedPublisher<String, Int> {
    PagedPublisher(maximumPageCount: maximumPageCount) { [asked, gate] cursor in
      asked.append(cursor)
      try await gate.wait()
      let page = cursor ?? 0
      return Page(
        items: ["\(page)"],
        previous: page > -3 ? page - 1 : nil,
        next: page < 3 ? page + 1 : nil
      )
    }
  }

  @Test(.guarantee(.pagesLoadAtBothEnds))
  func `both ends of a list are loaded up to its first and its last page`() async throws {
    let list = makeList()
    for _ in 0..<5 { try await list.loadPreviousPage() }
    for _ in 0..<5 { try await list.loadNextPage() }
    let pages = Pages(
      items: (-3...3).map { "\($0)" },
      isComplete: true,
      isCompleteAtStart: true,
      pageCount: 7
    )
    #expect(list.state.value == pages)
    #expect(asked.entries == [nil, -1, -2, -3, 1, 2, 3])
  }

  @Test(.guarantee(.pagesLoadAtBothEnds))
  func `both ends of a list can load at once, in any order of arrival`() async throws {
    for isEndFirst in [false, true] {
      let list = makeList()
      gate.open()
      try await list.loadFirstPage()
      gate.close()
      let before = gate.arrivalCount
      let first = Task {
        try await isEndFirst ? list.loadNextPage() : list.loadPreviousPage()
      }
      await gate.arrivals(before + 1)
      let second = Task {
        try await isEndFirst ? list.loadPreviousPage() : list.loadNextPage()
      }
      await gate.arrivals(before + 2)
      gate.admit(1)
      try await first.value
      #expect(words(list.state) == (isEndFirst ? "loading(0 1)" : "loading(-1 0)"))
      gate.admit(1)
      try await second.value
      #expect(words(list.state) == "loaded(-1 0 1)")
    }
  }

  @Test(.guarantee(.resetDropsAllPages))
  func `a reset while both ends load leaves nothing of them`() async throws {
    let list = makeList()
    try await list.loadFirstPage()
    gate.close()
    let next = Task { try await list.loadNextPage() }
    let previous = Task { try await list.loadPreviousPage() }
    await gate.arrivals(3)
    list.reset()
    #expect(words(list.state) == "unknown")
    gate.open()
    for load in [next, previous] { try await load.value }
    #expect(words(list.state) == "unknown")
    try await list.loadPreviousPage()
    #expect(words(list.state) == "loaded(0)")
  }

  @Test func `a cancelled load at one end leaves the other one alone`() async throws {
    let list = makeList()
    try await list.loadFirstPage()
    gate.close()
    let doomed = Task { try await list.loadNextPage() }
    await gate.arrivals(2)
    let other = Task { try await list.loadPreviousPage() }
    await gate.arrivals(3)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    #expect(words(list.state) == "loading(0)")
    gate.open()
    try await other.value
    #expect(words(list.state) == "loaded(-1 0)")
  }

  @Test(.guarantee(.limitedListsAreWindows))
  func `a limited list is a window that moves in both directions`() async throws {
    let list = makeList(maximumPageCount: 3)
    for _ in 0..<4 { try await list.loadNextPage() }
    #expect(words(list.state) == "loaded(1 2 3.)")
    #expect(list.state.value?.isCompleteAtStart == false)
    #expect(list.state.value?.pageCount == 3)
    for _ in 0..<9 { try await list.loadPreviousPage() }
    #expect(words(list.state) == "loaded(-3 -2 -1)")
    #expect(list.state.value?.isCompleteAtStart == true)
    for _ in 0..<9 { try await list.loadNextPage() }
    #expect(words(list.state) == "loaded(1 2 3.)")
  }

  @Test(.guarantee(.limitedListsAreWindows))
  func `a limited list that is only loaded forward goes back to the pages that have left`()
    async throws
  {
    let catalog = Catalog()
    let list = PagedPublisher<String, Int>(maximumPageCount: 1) { try await catalog.page(at: $0) }
    for _ in 0..<3 { try await list.loadNextPage() }
    #expect(words(list.state) == "loaded(a2 b2.)")
    for _ in 0..<4 { try await list.loadPreviousPage() }
    #expect(words(list.state) == "loaded(a0 b0)")
    #expect(list.state.value?.isCompleteAtStart == true)
    #expect(catalog.asked.entries == [nil, 1, 2, 1, nil])
  }

  @Test func `a limited list does not use a page behind one that has left`() async throws {
    let list = makeList(maximumPageCount: 1)
    try await list.loadFirstPage()
    gate.close()
    let winner = Task { try await list.loadPreviousPage() }
    await gate.arrivals(2)
    let late = Task { try await list.loadNextPage() }
    await gate.arrivals(3)
    gate.admit(1)
    try await winner.value
    #expect(words(list.state) == "loaded(-1)")
    gate.open()
    try await late.value
    #expect(words(list.state) == "loaded(-1)")
    try await list.loadNextPage()
    #expect(words(list.state) == "loaded(0)")
  }

  @Test(.guarantee(.repeatedCursorsEndTheList))
  func `a list that returns to one of its pages ends with an error, and does not loop`()
    async throws
  {
    let asked = Log<Int?>()
    let list = PagedPublisher<Int, Int>(maximumPageCount: 2) { cursor in
      asked.append(cursor)
      let page = cursor ?? 0
      return Page(items: [page], next: page < 4 ? page + 1 : 1)
    }
    for _ in 0..<4 { try await list.loadNextPage() }
    await #expect(throws: LoadError.repeatedCursor) { try await list.loadNextPage() }
    for _ in 0..<3 { try await list.loadNextPage() }
    #expect(list.state.value?.items == [3, 4])
    #expect(list.state.value?.isComplete == true)
    #expect(list.state.error as? LoadError == .repeatedCursor)
    #expect(asked.entries == [nil, 1, 2, 3, 4])
    let sentence = "\(LoadError.repeatedCursor)"
    #expect(sentence.contains("returns to a page"))
  }

  /// A cursor whose comparison runs code of the user.
  private struct Cursor: Equatable {
    let number: Int
    let onCompare: @Sendable () -> Void

    static func == (left: Cursor, right: Cursor) -> Bool {
      left.onCompare()
      return left.number == right.number
    }
  }

  @Test func `a list compares cursors and runs edits with no lock held`() async throws {
    let reference = Log<PagedPublisher<Int, Cursor>>()
    let use: @Sendable () -> Void = {
      for list in reference.entries {
        withoutLocks { _ = (list.state, list.subscriberCount, list.subscription()) }
      }
    }
    let list = PagedPublisher<Int, Cursor>(maximumPageCount: 2) { cursor in
      let number = cursor?.number ?? 0
      return Page(
        items: [number],
        previous: Cursor(number: number - 1, onCompare: use),
        next: Cursor(number: number + 1, onCompare: use)
      )
    }
    reference.append(list)
    for _ in 0..<3 { try await list.loadNextPage() }
    for _ in 0..<3 { try await list.loadPreviousPage() }
    try await list.refresh()
    list.edit { _ in use() }
    #expect(list.state.value?.items == [-2, -1])
  }
}
