import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A selected part of a page` {
  /// A state that counts the evaluations of a part.
  struct Counted: Sendable {
    let evaluations = Tally()
    var number = 0
    var half: Int {
      evaluations.increment()
      return number / 2
    }

    subscript(row: Row) -> Int { number }
  }

  /// An argument of a key path, which calls back when it is compared.
  struct Row: Hashable, Sendable {
    let number: Int
    let onComparison: @Sendable () -> Void
    let parcel: Parcel?

    static func == (left: Row, right: Row) -> Bool {
      left.onComparison()
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }

  typealias CountedPage = PageStore<Counted, Int, Counted, Int>

  private func makePage() -> CountedPage {
    Store<Counted, Int>(Counted()) { $0.number += $1 }
      .page({ _ in Counted() }, reducer: { $0.number += $1 })
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a selected part of a page is evaluated once per action for a thousand subscribers`() async {
    let page = makePage()
    let evaluations = Tally()
    let sum = page.select { states in
      evaluations.increment()
      return states.app.number + states.page.number
    }
    let streams = (0..<1000).map { _ in sum.subscription(bufferingPolicy: .unbounded) }
    #expect(evaluations.value == 1)
    for number in 2...10 {
      if number % 2 == 0 { page.dispatch(1) } else { page.parent.dispatch(10) }
      #expect(evaluations.value == number)
    }
    for _ in 0..<100 { #expect(sum.current == 45) }
    #expect(evaluations.value == 10, "reading it evaluates nothing")
    for stream in [streams[0], streams[999]] {
      #expect(await stream.first(10) == [0, 1, 11, 12, 22, 23, 33, 34, 44, 45])
    }
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a page part is evaluated once per action for equal key paths of many temporaries`()
    async
  {
    let page = makePage()
    let evaluations = page.state.evaluations
    let streams = (0..<1000).map { _ in
      page.select(\.page.half).subscription(bufferingPolicy: .unbounded)
    }
    let others = page.select(\.app.half).subscription(bufferingPolicy: .unbounded)
    let before = evaluations.value
    for number in 1...10 {
      page.dispatch(1)
      page.parent.dispatch(1)
      #expect(evaluations.value == before + 2 * number, "one for each state of page and app")
    }
    for stream in [streams[0], streams[999], others] {
      #expect(await stream.first(6) == [0, 1, 2, 3, 4, 5])
    }
    #expect(page.select(\.page.half).current == 5)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a part of a page is evaluated no more when its last temporary has no subscriber`() {
    let page = makePage()
    let evaluations = page.state.evaluations
    var streams = (0..<3).map { _ in page.select(\.page.half).subscribe() }
    streams.removeFirst()
    let before = evaluations.value
    page.dispatch(2)
    #expect(evaluations.value == before + 1)
    streams = []
    #expect(page.subscriberCount == 0)
    page.dispatch(2)
    #expect(evaluations.value == before + 1)
    let again = page.select(\.page.half)
    streams.append(again.subscribe())
    #expect(again.current == 2)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews)) @MainActor
  func `a selected part of a page is evaluated once per action for all its observed values`() {
    let page = makePage()
    let evaluations = page.state.evaluations
    let values = (0..<10).map { _ in ObservedValue(page.select(\.page.half)) }
    let before = evaluations.value
    page.dispatch(2)
    #expect(values.map(\.value) == Array(repeating: 1, count: 10))
    #expect(evaluations.value == before + 1)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `page parts of key paths with arguments are distinguished, without a lock`() async {
    let page = makePage()
    let comparisons = Tally()
    let row: @Sendable (Int) -> Row = { [weak page] number in
      Row(
        number: number,
        onComparison: {
          comparisons.increment()
          _ = page?.subscriberCount
          withExtendedLifetime(page?.select(\.page.number).subscribe()) {}
        },
        parcel: nil
      )
    }
    let streams = [1, 2, 1].map { number in
      page.select(\.page[row(number)]).subscription(bufferingPolicy: .unbounded)
    }
    page.dispatch(3)
    for stream in streams { #expect(await stream.first(2) == [0, 3]) }
    #expect(comparisons.value > 0)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a selected part of a page releases its closure when its last subscriber leaves`() {
    let page = makePage()
    weak var parcel: Parcel?
    var streams: [AsyncStream<Int>] = []
    do {
      let first = Parcel(1)
      parcel = first
      let row = Row(number: 1, onComparison: {}, parcel: first)
      for _ in 0..<2 { streams.append(page.select(\.page[row]).subscribe()) }
    }
    page.dispatch(1)
    #expect(parcel != nil)
    streams = []
    #expect(parcel == nil)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a selected part of a page ends with its page, of which subscribers keep nothing`() async {
    weak var weakPage: CountedPage?
    var streams: [Subscription<Int>] = []
    do {
      let page = makePage()
      weakPage = page
      for _ in 0..<2 {
        streams.append(page.select(\.page.half).subscription(bufferingPolicy: .unbounded))
      }
      page.dispatch(2)
    }
    #expect(weakPage == nil)
    for stream in streams { #expect(await stream.all() == [0, 1]) }
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a page part of one key path is right while actions and temporaries come and go`() async {
    let page = makePage()
    let all = page.select(\.page.half).subscription(bufferingPolicy: .unbounded)
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<200 { page.dispatch(1) }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<100 {
            let before = page.state.number / 2
            let part = page.select(\.page.half)
            let subscription = part.subscription(bufferingPolicy: .unbounded)
            #expect(part.current >= before)
            // The first element can be behind, but nothing between it and the present value is missing.
            var last: Int?
            for await number in subscription {
              if let last { #expect(number == last + 1) }
              last = number
              if number >= before { break }
            }
            #expect(last ?? -1 >= before)
          }
        }
      }
    }
    #expect(await all.first(201) == Array(0...200))
    #expect(page.subscriberCount == 1)
  }
}
