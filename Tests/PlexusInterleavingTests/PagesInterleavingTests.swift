import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Loading pages, in every order` {
    typealias Publisher = PagedPublisher<Int, Int>

    /// A list of endless pages with one number each; a fetch can suspend, and records its cancellation.
    static func makePublisher(fetches: Messenger<Int>? = nil) -> Publisher {
      PagedPublisher { cursor in
        fetches?.send(cursor ?? 0)
        await hop()
        try Task.checkCancellation()
        return Page(items: [cursor ?? 0], next: (cursor ?? 0) + 1)
      }
    }

    static func first(_ publisher: Publisher) -> Task<Void, any Error> {
      Task { try await publisher.loadFirstPage() }
    }

    static func next(_ publisher: Publisher) -> Task<Void, any Error> {
      Task { try await publisher.loadNextPage() }
    }

    /// Whether the pages are complete from the first one on, without repetition.
    static func isWhole(_ pages: Pages<Int>?) -> Bool {
      guard let pages else { return true }
      return pages.items == Array(0..<pages.items.count) && !pages.isComplete
    }

    @Test func `a cancelled caller never costs another one its page`() throws {
      try forEveryInterleaving {
        let publisher = Self.makePublisher()
        let doomed = Self.next(publisher)
        let other = Self.next(publisher)
        let canceller = Task { doomed.cancel() }
        try await other.value
        await canceller.value
        if case .failure(let error) = await doomed.result {
          try Wrong.unless(error is CancellationError, "\(error)")
        }
        guard case .loaded(let pages) = publisher.state else {
          throw Wrong(what: "\(publisher.state)")
        }
        try Wrong.unless(Self.isWhole(pages) && !pages.items.isEmpty, "\(pages.items)")
      }
    }

    @Test
    func `when all callers of pages are cancelled the state goes back, and none keeps waiting`()
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let publisher = Self.makePublisher()
        let tasks = [Self.next(publisher), Self.first(publisher)]
        let cancellers = tasks.map { task in Task { task.cancel() } }
        for canceller in cancellers { await canceller.value }
        var hasLoaded = false
        for task in tasks {
          switch await task.result {
          case .success: hasLoaded = true
          case .failure(let error): try Wrong.unless(error is CancellationError, "\(error)")
          }
        }
        switch publisher.state {
        case .unknown: try Wrong.unless(!hasLoaded, "a page was lost")
        case .loaded(let pages): try Wrong.unless(hasLoaded && Self.isWhole(pages), "\(pages)")
        case .loading, .failed: throw Wrong(what: "\(publisher.state)")
        }
        // It can start again.
        let count = publisher.state.value?.items.count ?? 0
        try await publisher.loadNextPage()
        let pages = publisher.state.value
        try Wrong.unless(pages?.items.count == count + 1 && Self.isWhole(pages), "\(pages as Any)")
      }
    }

    @Test(.guarantee(.pageLoadsShareOneFetch))
    func `callers share one fetch of a page, or fetch one page after the other`() throws {
      try forEveryInterleaving {
        let fetches = Messenger<Int>()
        let log = fetches.subscription()
        let publisher = Self.makePublisher(fetches: fetches)
        let callers = [Self.next(publisher), Self.next(publisher)]
        for caller in callers { try await caller.value }
        fetches.finish()
        var fetched: [Int] = []
        for await cursor in log { fetched.append(cursor) }
        try Wrong.unless([[0], [0, 1]].contains(fetched), "\(fetched)")
        let items = publisher.state.value?.items
        try Wrong.unless(items == fetched, "\(fetched) but \(items ?? [])")
      }
    }

    @Test func `a new first page while the next is loading leaves no gap and nothing twice`() throws
    {
      try forEveryInterleaving(deviations: 5) {
        var publisher: Publisher? = Self.makePublisher()
        try await publisher?.loadNextPage()
        let states = publisher?.subscription(bufferingPolicy: .unbounded)
        let next = publisher.map { Self.next($0) }
        let first = publisher.map { Self.first($0) }
        try await next?.value
        try await first?.value
        guard case .loaded(let pages) = publisher?.state else { throw Wrong(what: "not loaded") }
        // The first page last, or the next one behind a new first one.
        try Wrong.unless([[0], [0, 1]].contains(pages.items), "\(pages.items)")
        publisher = nil
        guard let states else { return }
        for await state in states { try Wrong.unless(Self.isWhole(state.value), "\(state)") }
      }
    }

    @Test func `a reset while loading leaves nothing behind, and the caller returns`() throws {
      try forEveryInterleaving {
        let publisher = Self.makePublisher()
        try await publisher.loadNextPage()
        let states = publisher.subscription(bufferingPolicy: .unbounded)
        let loading = Self.next(publisher)
        let signOut = Task {
          await hop()
          publisher.reset()
        }
        try await loading.value
        await signOut.value
        let final = publisher.state.value?.items
        try Wrong.unless(final == nil || final == [0], "\(final ?? [])")
        try await publisher.loadFirstPage()
        var isFirst = true
        for await state in states {
          // States that were not read before the reset are skipped.
          if isFirst, case .unknown = state { isFirst = false }
          try Wrong.unless(!isFirst, "\(state)")
          let items = state.value?.items ?? [0]
          try Wrong.unless(items == [0], "signed-out data: \(items)")
          if case .loaded = state { break }
        }
      }
    }

    /// A list that is endless in both directions.
    static func makeEndlessList(maximumPageCount: Int? = nil) -> Publisher {
      PagedPublisher(maximumPageCount: maximumPageCount) { cursor in
        await hop()
        let page = cursor ?? 0
        return Page(items: [page], previous: page - 1, next: page + 1)
      }
    }

    @Test(.guarantee(.pagesLoadAtBothEnds))
    func `both ends of a list load at once, and an edit of any time stays`() throws {
      try forEveryInterleaving(deviations: 4) {
        let publisher = Self.makeEndlessList()
        try await publisher.loadFirstPage()
        let loads = [
          Task { try await publisher.loadPreviousPage() }, Self.next(publisher),
          Task { publisher.edit { $0 = $0.map { $0 == 0 ? 100 : $0 } } },
        ]
        for load in loads { try await load.value }
        guard case .loaded(let pages) = publisher.state else {
          throw Wrong(what: "\(publisher.state)")
        }
        try Wrong.unless(pages.items == [-1, 100, 1], "\(pages.items)")
      }
    }

    @Test(.guarantee(.limitedListsAreWindows))
    func `a window that loads at both ends stays without a gap`() throws {
      try forEveryInterleaving(deviations: 4) {
        let publisher = Self.makeEndlessList(maximumPageCount: 2)
        try await publisher.loadFirstPage()
        let loads = [
          Task { try await publisher.loadPreviousPage() }, Self.next(publisher),
        ]
        for load in loads { try await load.value }
        let items = publisher.state.value?.items ?? []
        // The second page to arrive pushes out the first one.
        try Wrong.unless([[-1, 0], [0, 1]].contains(items), "\(items)")
      }
    }

    @Test(.guarantee(.refreshesReplaceAllPages))
    func `an edit during a refresh is in the new pages, and a reset leaves nothing`() throws {
      try forEveryInterleaving(deviations: 3) {
        let publisher = Self.makePublisher()
        for _ in 0..<2 { try await publisher.loadNextPage() }
        let refreshing = Task { try await publisher.refresh() }
        await hop()
        let editing = Task {
          let isDuring = publisher.state.isLoading
          publisher.edit { $0.append(7) }
          return isDuring
        }
        try await refreshing.value
        let isBefore = await !editing.value
        let items = publisher.state.value?.items
        // An edit before the refresh is not part of its pages.
        try Wrong.unless(items == [0, 7, 1, 7] || isBefore && items == [0, 1], "\(items ?? [])")
        let again = Task { try await publisher.refresh() }
        let signOut = Task { publisher.reset() }
        try await again.value
        await signOut.value
        // The refresh began after the reset, or its pages are not used.
        let left = publisher.state.value?.items
        try Wrong.unless(left == nil || left == [0], "\(left ?? [])")
      }
    }

    @Test func `a paged publisher that is released while it loads lets its callers finish`() throws
    {
      try forEveryInterleaving {
        var publisher: Publisher? = Self.makePublisher()
        weak let weakPublisher = publisher
        let states = publisher?.subscription(bufferingPolicy: .unbounded)
        let loading = publisher.map { Self.next($0) }
        let reader = Task {
          var last: Pages<Int>?
          if let states { for await state in states { last = state.value } }
          return last?.items
        }
        publisher = nil
        try await loading?.value
        try Wrong.unless(await reader.value == [0], "the page was not seen")
        try Wrong.unless(weakPublisher == nil, "the publisher is still there")
      }
    }
  }

  @Suite(.serialized)
  struct `Sharing a sequence, in every order` {
    /// Numbers from 0 on; every iteration starts again.
    struct Numbers: AsyncSequence, Sendable {
      struct Iterator: AsyncIteratorProtocol {
        var number = 0

        mutating func next() async -> Int? {
          await hop()
          guard !Task.isCancelled, number < 3 else { return nil }
          defer { number += 1 }
          return number
        }
      }

      func makeAsyncIterator() -> Iterator { Iterator() }
    }

    @Test func `every subscriber sees the rest of one iteration, and then the end`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(5)) {
        let shared = Numbers().broadcast()
        let readers = (0..<2).map { _ in
          Task {
            var numbers: [Int] = []
            for await number in shared.subscription() { numbers.append(number) }
            return numbers
          }
        }
        var lists: [[Int]] = []
        for reader in readers { lists.append(await reader.value) }
        for list in lists {
          try Wrong.unless(list == Array(0..<3).suffix(list.count), "\(list)")
        }
        try Wrong.unless(lists.contains([0, 1, 2]), "nobody saw the beginning: \(lists)")
        try Wrong.unless(shared.subscriberCount == 0, "somebody is left")
      }
    }

    @Test func `a subscriber that joins while the last one leaves sees one iteration, no gap`()
      throws
    {
      try forEveryInterleaving(deviations: 5) {
        let shared = Numbers().broadcast()
        let leaver = Task {
          for await _ in shared.subscription() { break }
        }
        let late = Task {
          await hop()
          var numbers: [Int] = []
          for await number in shared.subscription() { numbers.append(number) }
          return numbers
        }
        let numbers = await late.value
        await leaver.value
        try Wrong.unless(numbers == Array(0..<3).suffix(numbers.count), "\(numbers)")
      }
    }
  }
}
