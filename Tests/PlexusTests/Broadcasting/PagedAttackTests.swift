import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Attacks on lists of pages.
@MainActor @Suite(.fewAtOnce) struct `Attacked lists of pages` {
  enum Overtaking: CaseIterable, Sendable {
    case first, refresh, reset
  }

  @Test(arguments: Overtaking.allCases)
  func `the callers of a superseded load return without an error, even if its fetch fails`(
    overtaking: Overtaking
  ) async throws {
    let gate = Gate()
    let list = PagedPublisher<Int, Int> { cursor in
      let page = cursor ?? 0
      if page == 1 {
        try await gate.wait()
        throw Broken()
      }
      return Page(items: [page], next: page + 1)
    }
    try await list.loadFirstPage()
    let late = Task { try await list.loadNextPage() }
    await gate.arrivals(1)
    switch overtaking {
    case .first: try await list.loadFirstPage()
    case .refresh: try await list.refresh()
    case .reset: list.reset()
    }
    gate.open()
    await #expect(throws: Never.self) { try await late.value }
    #expect(list.state.error == nil)
  }

  @Test
  func `the callers of a load behind a page that has left return without its error`() async throws {
    let gate = Gate()
    let list = PagedPublisher<Int, Int>(maximumPageCount: 1) { cursor in
      let page = cursor ?? 0
      if page == 1 {
        try await gate.wait()
        throw Broken()
      }
      return Page(items: [page], previous: page - 1, next: page + 1)
    }
    try await list.loadFirstPage()
    let late = Task { try await list.loadNextPage() }
    await gate.arrivals(1)
    try await list.loadPreviousPage()
    gate.open()
    await #expect(throws: Never.self) { try await late.value }
    #expect(list.state.value?.items == [-1])
    #expect(list.state.error == nil)
  }

  @Test func `a list that returns to its first page by a cursor has no item twice`() async throws {
    let list = PagedPublisher<Int, Int> { cursor in
      let page = cursor ?? 0
      return Page(
        items: [page],
        previous: (page + 2) % 3,
        next: (page + 1) % 3
      )
    }
    for _ in 0..<8 { try? await list.loadNextPage() }
    let items = list.state.value?.items ?? []
    #expect(items.count == Set(items).count, "\(items)")
  }

  enum Links: CaseIterable, Sendable {
    case forward, backward, both
  }

  @Test(arguments: Links.allCases, [1, 2, 3, nil])
  func `a window shows consecutive items, whatever the cursors of the two directions are`(
    links: Links,
    limit: Int?
  ) async throws {
    var random = SeededRandom(seed: 7)
    for _ in 0..<60 {
      let asked = Log<String?>()
      // Cursors as of keyset paging: different ones for the two directions.
      let list = PagedPublisher<Int, String>(maximumPageCount: limit) { cursor in
        asked.append(cursor)
        let range: Range<Int>
        switch cursor?.first {
        case "a":
          let start = Int(cursor?.dropFirst() ?? "") ?? 0
          range = start..<min(start + 2, 14)
        case "b":
          let end = Int(cursor?.dropFirst() ?? "") ?? 0
          range = max(end - 2, 0)..<end
        default:
          range = links == .forward ? 0..<2 : links == .backward ? 12..<14 : 6..<8
        }
        let isFirst = range.lowerBound == 0
        let isLast = range.upperBound == 14
        return Page(
          items: Array(range),
          previous: links == .forward || isFirst ? nil : "b\(range.lowerBound)",
          next: links == .backward || isLast ? nil : "a\(range.upperBound)"
        )
      }
      for _ in 0..<30 {
        switch random.next() % 7 {
        case 0, 1, 2: try await list.loadNextPage()
        case 3, 4, 5: try await list.loadPreviousPage()
        default: try await list.refresh()
        }
        let pages = try #require(list.state.value)
        let items = pages.items
        #expect(items == Array((items.first ?? 0)...(items.last ?? 0)), "\(asked.entries)")
        #expect(pages.isComplete == (items.last == 13), "\(items) \(asked.entries)")
        #expect(pages.isCompleteAtStart == (items.first == 0), "\(items) \(asked.entries)")
        #expect(pages.pageCount == items.count / 2)
        if let limit { #expect(pages.pageCount <= limit) }
      }
    }
  }

  @Test func `handlers that edit, reset and load again do not disturb a list`() async throws {
    let catalog = Catalog()
    let list = catalog.publisher()
    let edits = Tally()
    let token = onSend(list) { state in
      if case .loaded(let pages) = state, pages.items.count > 2, edits.increment() <= 2 {
        list.edit { items in items.removeFirst() }
      }
    }
    try await list.loadFirstPage()
    try await list.loadNextPage()
    #expect(words(list.state) == "loaded()" || words(list.state) == "loaded(b0 b1)")
    list.reset()
    #expect(words(list.state) == "unknown")
    withExtendedLifetime(token) {}
  }

  @Test func `items and errors are released with no lock held at every event`() async throws {
    let released = Tally()
    let reference = Log<PagedPublisher<Parcel, Int>>()
    let list = PagedPublisher<Parcel, Int>(maximumPageCount: 2) { cursor in
      let number = cursor ?? 0
      let parcel = Parcel(number) {
        released.increment()
        for list in reference.entries { withoutLocks { _ = list.subscriberCount } }
      }
      return Page(items: [parcel], previous: number - 1, next: number + 1)
    }
    reference.append(list)
    for _ in 0..<4 { try await list.loadNextPage() }
    for _ in 0..<4 { try await list.loadPreviousPage() }
    try await list.refresh()
    list.edit { $0.removeAll() }
    try await list.loadFirstPage()
    list.edit { items in items = items.map { Parcel($0.number) } }
    let load = Task { try await list.loadNextPage() }
    load.cancel()
    _ = await load.result
    list.reset()
    // The task of a load can still hold its page.
    while released.value < 10 { await Task.detached {}.value }
    #expect(released.value >= 10)
  }

  @Test func `a map of lists uses nothing of an account after a clear`() async throws {
    let account = Guarded(0)
    let map = PagedMap<Int, Int, Int>(capacity: 3) { key, cursor in
      let current = account.withLock { $0 }
      await Task.detached {}.value
      return Page(items: [current], next: (cursor ?? 0) + 1)
    }
    await withTaskGroup { group in
      for worker in 0..<3 {
        group.addTask { @Sendable in
          for round in 0..<1_500 {
            let key = (round &* 7 &+ worker) % 8
            switch round % 3 {
            case 0: try? await map[key].loadFirstPage()
            case 1: try? await map[key].loadNextPage()
            default: try? await map[key].refresh()
            }
          }
        }
      }
      group.addTask { @Sendable in
        for _ in 0..<300 {
          let current = account.withLock { value in
            value += 1
            return value
          }
          try? await map.clear()
          for key in 0..<8 {
            let items = map[key].state.value?.items ?? []
            #expect(items.allSatisfy { $0 >= current }, "\(items) of \(current)")
          }
          await Task.detached {}.value
        }
      }
    }
    _ = map[100]
    _ = map[101]
    #expect(map.count <= 4)
  }

  @Test func `a subscriber that sees one list cleared finds no pages in another one`() async throws
  {
    let map = PagedMap<Int, Int, Int>(capacity: 9) { key, _ in Page(items: [key], next: nil) }
    for key in 0..<5 { try await map[key].loadFirstPage() }
    let remains = Log<Int>()
    let tokens = (0..<5).map { key in
      onSend(map[key]) { state in
        guard case .unknown = state else { return }
        for other in 0..<5 where map[other].state.value != nil { remains.append(other) }
      }
    }
    try await map.clear()
    #expect(remains.entries.isEmpty)
    withExtendedLifetime(tokens) {}
  }

  @Test func `a subscriber that sees one value of a cache cleared finds no other one`() async throws
  {
    let map = MultiplexerMap<Int, Int> { $0 }
    for key in 0..<5 { _ = try await map.request(key) }
    let remains = Log<Int>()
    let tokens = (0..<5).map { key in
      onSend(map[key]) { state in
        guard case .unknown = state else { return }
        for other in 0..<5 where map[other].current.value != nil { remains.append(other) }
      }
    }
    try await map.clear()
    #expect(remains.entries.isEmpty)
    withExtendedLifetime(tokens) {}
  }

  enum Load: CaseIterable, Sendable {
    case first, next, previous, refresh

    func run(_ list: PagedPublisher<Int, Int>) async throws {
      switch self {
      case .first: try await list.loadFirstPage()
      case .next: try await list.loadNextPage()
      case .previous: try await list.loadPreviousPage()
      case .refresh: try await list.refresh()
      }
    }
  }

  @Test(arguments: Load.allCases)
  func `a caller that is cancelled before its load, or by its fetch, changes nothing`(
    load: Load
  ) async throws {
    let current = Guarded<Task<Void, any Error>?>(nil)
    let list = PagedPublisher<Int, Int> { cursor in
      if let task = current.withLock({ $0.take() }) {
        task.cancel()
        while !Task.isCancelled { await Task.detached {}.value }
      }
      let page = cursor ?? 0
      return Page(items: [page], previous: page - 1, next: page + 1)
    }
    try await list.loadFirstPage()
    let states = list.subscription(bufferingPolicy: .unbounded)
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await load.run(list)
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    let late = Task { @MainActor in try await load.run(list) }
    current.withLock { $0 = late }
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(list.state.value?.items == [0])
    #expect(!list.state.isLoading)
    let seen = await states.first(3).map(\.isLoading)
    #expect(seen == [false, true, false])
    try await load.run(list)
    #expect(list.state.value?.items.contains(0) == true)
  }

  @Test(arguments: Load.allCases)
  func `a fetch can edit, reset and replace the list that it loads`(load: Load) async throws {
    for action in 0..<3 {
      let reference = Guarded<PagedPublisher<Int, Int>?>(nil)
      let isArmed = Guarded(false)
      let list = PagedPublisher<Int, Int> { cursor in
        let page = cursor ?? 0
        let isFirst = isArmed.withLock { armed in
          defer { armed = false }
          return armed
        }
        if isFirst, let list = reference.withLock({ $0 }) {
          switch action {
          case 0: list.edit { $0.append(100) }
          case 1: list.reset()
          default: do { try await list.loadFirstPage() } catch LoadError.recursiveLoad {}
          }
        }
        return Page(items: [page], previous: page - 1, next: page + 1)
      }
      reference.withLock { $0 = list }
      try await list.loadFirstPage()
      try await list.loadNextPage()
      isArmed.withLock { $0 = true }
      try await load.run(list)
      let items = list.state.value?.items
      #expect(!list.state.isLoading)
      switch action {
      case 0: #expect(items?.filter { $0 == 100 }.count == (load == .first ? 1 : 2))
      case 1: #expect(items == nil)
      default: #expect(items == [0])
      }
      reference.withLock { $0 = nil }
    }
  }

  @Test func `callers that come and leave on threads leave no load behind`() async throws {
    let list = PagedPublisher<Int, Int>(maximumPageCount: 3) { cursor in
      for _ in 0..<3 { await Task.detached {}.value }
      let page = cursor ?? 0
      if page == 4 { throw Broken() }
      return Page(items: [page], previous: page - 1, next: page + 1)
    }
    await withTaskGroup { group in
      for worker in 0..<4 {
        group.addTask { @Sendable in
          var random = SeededRandom(seed: UInt64(worker))
          for _ in 0..<600 {
            let load = Load.allCases[Int(random.next() % 4)]
            let task = Task.detached { try? await load.run(list) }
            if random.next() % 2 == 0 { await Task.detached {}.value }
            if random.next() % 3 == 0 { task.cancel() }
            if random.next() % 50 == 0 { list.reset() }
            if random.next() % 20 == 0 { list.edit { $0.reverse() } }
            if random.next() % 2 == 0 { _ = await task.value }
          }
        }
      }
    }
    try? await list.loadFirstPage()
    while list.state.isLoading { await Task.detached {}.value }
    list.reset()
    try await list.refresh()
    #expect(list.state.value?.items == [0])
  }

  /// A cursor whose comparison calls a closure once.
  struct CallingCursor: Equatable, Sendable {
    let number: Int
    let call: Guarded<(@Sendable () -> Void)?>

    static func == (left: Self, right: Self) -> Bool {
      left.call.withLock { $0.take() }?()
      return left.number == right.number
    }
  }

  @Test func `cursors that edit and reset the list when they are compared do no harm`() async throws
  {
    let call = Guarded<(@Sendable () -> Void)?>(nil)
    let list = PagedPublisher<Int, CallingCursor> { cursor in
      let page = cursor?.number ?? 0
      return Page(items: [page], next: CallingCursor(number: page + 1, call: call))
    }
    for _ in 0..<3 { try await list.loadNextPage() }
    call.withLock { $0 = { list.edit { $0.append(-1) } } }
    try await list.loadNextPage()
    #expect(list.state.value?.items == [0, -1, 1, -1, 2, -1, 3])
    call.withLock { $0 = { list.edit { $0.append(-2) } } }
    try await list.refresh()
    #expect(list.state.value?.items == [0, -2, 1, -2, 2, -2, 3, -2])
    call.withLock { $0 = { list.reset() } }
    try await list.loadNextPage()
    #expect(list.state.value == nil)
  }
}
