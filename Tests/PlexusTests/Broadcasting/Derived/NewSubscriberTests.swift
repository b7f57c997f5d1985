import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A new subscriber never begins with an element that is older than the `current` read before it subscribed.
@Suite(.fewAtOnce) struct `A new subscriber of a view` {
  /// Calls a closure on another thread while an element is being transformed.
  private final class Pause: Sendable {
    private let action = Guarded<(@Sendable () -> Void)?>(nil)

    /// Sets the closure, which the next transform calls.
    func onNext(_ body: @escaping @Sendable () -> Void) {
      action.withLock { $0 = body }
    }

    func pass() {
      guard let body = action.withLock({ $0.take() }) else { return }
      withoutLocks(body)
    }
  }

  /// The elements of the subscribers that a test has added.
  private struct Subscribers: Sendable {
    let all = Guarded<[Subscription<Int>]>([])

    func add(_ source: some Broadcaster<Int>, _ policy: BufferingPolicy<Int> = .unbounded) {
      let subscription = source.subscription(bufferingPolicy: policy)
      all.withLock { $0.append(subscription) }
    }

    subscript(index: Int) -> Subscription<Int> { all.withLock { $0[index] } }
  }

  @Test(
    .guarantee(.viewsMissNothingAfterCurrent),
    arguments: [Policy.unbounded, .newest(1), .newest(100), .oldest(100)]
  )
  func `a new subscriber of a view begins with the value set before, not with an older one`(
    policy: Policy
  ) async {
    let (value, pause, late) = (CurrentValue(0), Pause(), Subscribers())
    let part = value.select { number in
      pause.pass()
      return number
    }
    let early = part.subscription(bufferingPolicy: .unbounded)
    let handled = Log<Int>()
    let token = Guarded<ObservationToken?>(nil)
    pause.onNext {
      value.value = 2
      #expect(part.current == 2)
      late.add(part, policy())
      token.withLock { $0 = part.observe { handled.append($0) } }
      value.value = 3
    }
    value.value = 1
    value.value = 4
    #expect(await early.first(5) == [0, 1, 2, 3, 4])
    let isConflated = policy == .newest(1)
    #expect(await late[0].first(isConflated ? 1 : 3) == (isConflated ? [4] : [2, 3, 4]))
    #expect(await handled.first(3) == [2, 3, 4])
    value.value = 5
    #expect(await late[0].first(1) == [5])
    #expect(part.subscriberCount == 3)
  }

  @Test func `a new subscriber of a transform or a filter begins with the value set before`() async
  {
    let (value, pause, late) = (CurrentValue(0), Pause(), Subscribers())
    let doubled = value.map { number in
      pause.pass()
      return 2 * number
    }
    let even = value.filter { number in
      pause.pass()
      return number.isMultiple(of: 2)
    }
    let distinct = doubled.removeDuplicates()
    let early = (
      doubled.subscription(bufferingPolicy: .unbounded),
      even.subscription(bufferingPolicy: .unbounded),
      distinct.subscription(bufferingPolicy: .unbounded)
    )
    pause.onNext {
      value.value = 4
      late.add(doubled)
      late.add(even)
      late.add(distinct)
    }
    value.value = 2
    value.value = 5
    value.value = 6
    #expect(await early.0.first(5) == [0, 4, 8, 10, 12])
    #expect(await early.1.first(4) == [0, 2, 4, 6])
    #expect(await early.2.first(5) == [0, 4, 8, 10, 12])
    #expect(await late[0].first(3) == [8, 10, 12])
    #expect(await late[1].first(2) == [4, 6])
    #expect(await late[2].first(3) == [8, 10, 12])
  }

  @Test(.guarantee(.viewsMissNothingAfterCurrent))
  func `a new subscriber of a view of a view begins with the value set before`() async {
    let (value, pause, late) = (CurrentValue(0), Pause(), Subscribers())
    let first = value.select { number in
      pause.pass()
      return number
    }
    let second = first.select { number in
      pause.pass()
      return 10 * number
    }
    let third = second.map { $0 + 1 }.map { $0 + 1 }
    let early = (
      second.subscription(bufferingPolicy: .unbounded),
      third.subscription(bufferingPolicy: .unbounded)
    )
    for round in 0..<2 {
      // The first view is behind in the first round, and the second one as well in the second round.
      let base = 10 * round
      let subscribe: @Sendable () -> Void = {
        value.value = base + 2
        #expect(second.current == 10 * base + 20)
        late.add(second)
        late.add(third)
        late.add(first)
      }
      pause.onNext { round == 0 ? subscribe() : pause.onNext(subscribe) }
      value.value = base + 1
      value.value = base + 3
    }
    let all = [0, 10, 20, 30, 110, 120, 130]
    #expect(await early.0.first(7) == all)
    #expect(await early.1.first(7) == all.map { $0 + 2 })
    #expect(await late[0].first(5) == [20, 30, 110, 120, 130])
    #expect(await late[1].first(5) == [22, 32, 112, 122, 132])
    #expect(await late[2].first(5) == [2, 3, 11, 12, 13])
    #expect(await late[3].first(2) == [120, 130])
    #expect(await late[4].first(2) == [122, 132])
    #expect(await late[5].first(2) == [12, 13])
  }

  @Test func `a new subscriber of the first view of a view begins with the value set before`() async
  {
    let (value, pause, late) = (CurrentValue(0), Pause(), Subscribers())
    let first = value.select { number in
      pause.pass()
      return number
    }
    let early = first.subscription(bufferingPolicy: .unbounded)
    pause.onNext {
      value.value = 2
      // It is not connected yet: it subscribes to a source that is behind.
      late.add(first.map { $0 + 1 })
      late.add(first.select { $0 + 1 }.select { $0 + 1 })
    }
    value.value = 1
    value.value = 3
    #expect(await early.first(4) == [0, 1, 2, 3])
    #expect(await late[0].first(2) == [3, 4])
    #expect(await late[1].first(2) == [4, 5])
    value.value = 4
    #expect(await late[0].first(1) == [5])
    #expect(await late[1].first(1) == [6])
  }

  @Test(.guarantee(.viewsMissNothingAfterCurrent))
  func `a new subscriber of a part of a store begins with the state of the current action`() async {
    struct State: Sendable { var number = 0 }
    let (pause, late) = (Pause(), Subscribers())
    let store = Store<State, Int>(State()) { $0.number = $1 }
    let part = store.select { state in
      pause.pass()
      return state.number
    }
    let path = store.select(\.number)
    let doubled = part.map { 2 * $0 }
    let early = (
      path.subscription(bufferingPolicy: .unbounded),
      part.subscription(bufferingPolicy: .unbounded),
      doubled.subscription(bufferingPolicy: .unbounded)
    )
    pause.onNext {
      #expect(store.state.number == 1)
      #expect(part.current == 1)
      late.add(part)
      late.add(doubled)
      late.add(path)
    }
    store.dispatch(1)
    store.dispatch(2)
    #expect(await early.0.first(3) == [0, 1, 2])
    #expect(await early.1.first(3) == [0, 1, 2])
    #expect(await early.2.first(3) == [0, 2, 4])
    #expect(await late[0].first(2) == [1, 2])
    #expect(await late[1].first(2) == [2, 4])
    #expect(await late[2].first(2) == [1, 2])
  }

  @Test func `a new subscriber of a part of a page begins with the state of the page`() async {
    struct State: Sendable, Equatable { var number = 0 }
    let (pause, late) = (Pause(), Subscribers())
    let store = Store<Int, Int>(0) { $0 = $1 }
    let page = store.page { _ in
      State()
    } reducer: { (state: inout State, action: Int) in
      state.number = action
    }
    let part = page.select { snapshot in
      pause.pass()
      return snapshot.page.number
    }
    let early = (
      part.subscription(bufferingPolicy: .unbounded),
      page.select(\.page.number).map { number in
        pause.pass()
        return number
      }.subscription(bufferingPolicy: .unbounded)
    )
    let path = page.select(\.page.number)
    pause.onNext {
      // Dispatched from another thread, it waits for its turn.
      page.dispatch(2)
      #expect(part.current == 1)
      late.add(part)
      late.add(path)
      late.add(path.map { $0 })
    }
    page.dispatch(1)
    page.dispatch(3)
    #expect(await early.0.first(4) == [0, 1, 2, 3])
    #expect(await early.1.first(4) == [0, 1, 2, 3])
    for index in 0..<3 { #expect(await late[index].first(3) == [1, 2, 3]) }
  }

  @Test func `a new subscriber of a view of a publisher gets nothing from before a reset`() async {
    let (publisher, pause) = (DataPublisher<Int>(), Pause())
    let states = publisher.map { state in
      pause.pass()
      return state.value
    }
    let early = states.subscription(bufferingPolicy: .unbounded)
    let late = Guarded<[Subscription<Int?>]>([])
    publisher.update(1)
    pause.onNext {
      publisher.reset()
      let subscription = states.subscription(bufferingPolicy: .unbounded)
      late.withLock { $0.append(subscription) }
      publisher.update(4)
    }
    publisher.update(2)
    publisher.update(5)
    let seen = await late.withLock { $0[0] }.first(3)
    #expect(seen == [nil, 4, 5])
    withExtendedLifetime(early) {}
  }

  /// A broadcaster of a user's that forwards another one.
  private struct Forwarding<Source: StatefulBroadcaster>: StatefulBroadcaster {
    let source: Source
    var current: Source.Element { source.current }
    var subscriberCount: Int { source.subscriberCount }

    func subscription(
      bufferingPolicy: BufferingPolicy<Source.Element>
    ) -> Subscription<Source.Element> {
      source.subscription(bufferingPolicy: bufferingPolicy)
    }

    func subscribe() -> AsyncStream<Source.Element> { source.subscribe() }
  }

  @Test(.guarantee(.viewsOfViewsAreNeverBehind), arguments: 0..<3)
  func `a new subscriber of a view of a forwarded view begins with the value set before`(
    stage: Int
  ) async {
    let (value, pause, late) = (CurrentValue(0), Pause(), Subscribers())
    let first = value.select { number in
      if stage == 0 { pause.pass() }
      return number
    }
    let second = first.select { number in
      if stage == 1 { pause.pass() }
      return number
    }
    let third = Forwarding(source: Forwarding(source: second)).select { number in
      if stage == 2 { pause.pass() }
      return number
    }
    let doubled = Forwarding(source: third).map { 2 * $0 }
    let early = (
      third.subscription(bufferingPolicy: .unbounded),
      doubled.subscription(bufferingPolicy: .unbounded)
    )
    pause.onNext {
      value.value = 2
      #expect(third.current == 2)
      late.add(third)
      late.add(doubled)
      value.value = 3
    }
    value.value = 1
    value.value = 4
    #expect(await early.0.first(5) == [0, 1, 2, 3, 4])
    #expect(await early.1.first(5) == [0, 2, 4, 6, 8])
    #expect(await late[0].first(3) == [2, 3, 4])
    #expect(await late[1].first(3) == [4, 6, 8])
  }

  @Test(.guarantee(.viewsMissNothingAfterCurrent))
  func `a new subscriber of a view begins no earlier than current while others set the value`()
    async
  {
    let value = CurrentValue(0)
    let part = value.select { $0 }
    let doubled = part.map { 2 * $0 }
    let early = (part.subscribe(), doubled.subscribe())
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask { for _ in 0..<2_000 { value.update { $0 += 1 } } }
        group.addTask {
          for _ in 0..<500 {
            let current = part.current
            let subscription = part.subscription(bufferingPolicy: .unbounded)
            let other = doubled.subscription(bufferingPolicy: .unbounded)
            value.update { $0 += 1 }
            let seen = await subscription.first(2)
            #expect(seen[0] >= current, "\(seen) after \(current)")
            #expect(seen[1] == seen[0] + 1, "it misses nothing and gets nothing twice")
            let doubles = await other.first(2)
            #expect(doubles[0] >= 2 * current, "\(doubles) after \(current)")
            #expect(doubles[1] == doubles[0] + 2)
          }
        }
      }
    }
    withExtendedLifetime(early) {}
  }
}
