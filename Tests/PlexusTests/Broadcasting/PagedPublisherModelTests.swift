import TestSupport
import Testing

@testable import Plexus

/// All sequences of events up to a length, compared with a model.
@Suite(.fewAtOnce) struct `Paged publisher model` {
  /// An event of a publisher.
  enum Event: Hashable {
    case askFirst
    case askNext
    case succeed(Int)
    case succeedAtEnd(Int)
    case breakDown(Int)
    case abandon(Int)
    case reset
  }

  /// A load, as an observer sees it.
  struct Load: Hashable {
    let id: Int
    let isFirst: Bool
  }

  /// The state, and the belief of an observer that sees only the events.
  struct World {
    var state = LoadingState<Pages<String>, Int>()
    var history: [Event] = []
    var brokenPromise: String?

    /// All loads so far.
    var loads: [Flight] = []
    var lastNumber = 0
    /// The known items, and the next cursor.
    var items: [String]?
    var cursor: Int?
    var belief = "unknown"
    /// The state before the current load began.
    var settled = "unknown"
    var running: [Load] = []
    var current: Load?

    var possibleEvents: [Event] {
      var events: [Event] = [.askFirst, .askNext, .reset]
      for flight in running {
        let id = flight.id
        events += [.succeed(id), .succeedAtEnd(id), .breakDown(id), .abandon(id)]
      }
      return events
    }

    mutating func apply(_ event: Event) {
      history.append(event)
      switch event {
      case .askFirst: ask(.first)
      case .askNext: ask(.next)
      case .succeed(let id): finish(id, isLast: false)
      case .succeedAtEnd(let id): finish(id, isLast: true)
      case .breakDown(let id):
        let isCurrent = retire(id)
        if state.finishPage(loads[id], with: .failure(LoadingFailure.first)) != isCurrent {
          brokenPromise = "a late failure was used, or none"
        }
        if isCurrent { settle("failed") }
      case .abandon(let id):
        let isCurrent = retire(id)
        if state.abandon(loads[id]) != isCurrent { brokenPromise = "a late departure was noticed" }
        if isCurrent { settle(settled) }
      case .reset:
        state.reset()
        (items, cursor) = (nil, nil)
        settle("unknown")
      }
      check()
    }

    private mutating func ask(_ request: LoadingState<Pages<String>, Int>.Request) {
      let wantsFirst = request == .first || items == nil
      let isAtEnd = items != nil && cursor == nil
      switch state.answer(to: request) {
      case .known:
        if current != nil || wantsFirst || !isAtEnd { brokenPromise = "a page was not loaded" }
      case .joins:
        if current == nil { brokenPromise = "a caller waits for nothing" }
        if request == .first, current?.isFirst == false {
          brokenPromise = "a first page from a later one"
        }
      case .begins(let continues):
        let id = loads.count
        loads.append(Flight.ofCaller())
        let start = state.begin(loads[id], continuing: continues)
        if let current, request == .next || current.isFirst {
          brokenPromise = "two loads at once: \(current)"
        }
        if current == nil, request == .next, isAtEnd { brokenPromise = "loads beyond the end" }
        if start != (wantsFirst ? nil : cursor) { brokenPromise = "the wrong page is fetched" }
        let flight = Load(id: id, isFirst: wantsFirst)
        running.append(flight)
        current = flight
        belief = "loading"
      }
    }

    private mutating func finish(_ id: Int, isLast: Bool) {
      let flight = current
      let isCurrent = retire(id)
      lastNumber += 1
      let page = Page(items: ["\(lastNumber)"], next: isLast ? nil : lastNumber)
      if state.finishPage(loads[id], with: .success(page)) != isCurrent {
        brokenPromise = "a late page was used, or none"
      }
      guard isCurrent, let flight else { return }
      items = (flight.isFirst ? [] : items ?? []) + page.items
      cursor = page.next
      settle("loaded")
    }

    /// Ends a load, and returns whether it was the current one.
    private mutating func retire(_ id: Int) -> Bool {
      running.removeAll { $0.id == id }
      return current?.id == id
    }

    private mutating func settle(_ words: String) {
      (belief, settled, current) = (words, words, nil)
    }

    private mutating func check() {
      let words = words(state.current)
      if !words.hasPrefix(belief) { brokenPromise = "\(words) instead of \(belief)" }
      if state.current.value?.items != items { brokenPromise = "the wrong pages are known" }
      if let pages = state.current.value, pages.isComplete != (cursor == nil) {
        brokenPromise = "wrong about the end"
      }
      if loads.indices.contains(where: { state.isCurrent(loads[$0]) != ($0 == current?.id) }) {
        brokenPromise = "callers would join the wrong load"
      }
    }
  }

  @Test(.guarantee(.publishersHoldInEveryOrder))
  func `every sequence of seven events keeps every promise of a paged publisher`() throws {
    var count = 0
    try walk(World(), depth: 7, &count)
    #expect(count > 50_000)
  }

  private func walk(_ world: World, depth: Int, _ count: inout Int) throws {
    count += 1
    guard depth > 0 else { return }
    for event in world.possibleEvents {
      var next = world
      next.apply(event)
      try #require(next.brokenPromise == nil, "after \(next.history)")
      try walk(next, depth: depth - 1, &count)
    }
  }
}
