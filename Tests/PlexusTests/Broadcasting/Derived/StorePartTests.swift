import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A selected part of a store` {
  /// A state that counts the evaluations of a part.
  struct Counted: Sendable {
    let evaluations = Tally()
    var number = 0
    var other = 0
    var half: Int {
      evaluations.increment()
      return number / 2
    }
  }

  private func makeStore() -> Store<Counted, Int> { Store(Counted()) { $0.number += $1 } }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a store part is evaluated once per action for equal key paths of many temporaries`()
    async
  {
    let store = makeStore()
    let evaluations = store.state.evaluations
    let streams = (0..<1000).map { _ in
      store.select(\.half).subscription(bufferingPolicy: .unbounded)
    }
    #expect(evaluations.value == 1)
    for number in 2...10 {
      store.dispatch(1)
      #expect(evaluations.value == number)
    }
    let changes = store.changes(of: \.half)
    #expect(evaluations.value == 10, "changes of the same key path share the evaluation, too")
    #expect(store.subscriberCount == 1001)
    for stream in [streams[0], streams[999]] { #expect(await stream.first(5) == [0, 1, 2, 3, 4]) }
    withExtendedLifetime(changes) {}
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a part of a store is evaluated no more when its last temporary has no subscriber`() {
    let store = makeStore()
    let evaluations = store.state.evaluations
    var streams = (0..<3).map { _ in store.select(\.half).subscribe() }
    streams.removeFirst()
    store.dispatch(2)
    #expect(evaluations.value == 2)
    streams = []
    #expect(store.subscriberCount == 0)
    store.dispatch(2)
    #expect(evaluations.value == 2)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews)) @MainActor
  func `a selected part of a store is evaluated once per action for all its observed values`() {
    let store = makeStore()
    let evaluations = store.state.evaluations
    let values = (0..<10).map { _ in ObservedValue(store.select(\.half)) }
    let before = evaluations.value
    store.dispatch(2)
    #expect(values.map(\.value) == Array(repeating: 1, count: 10))
    #expect(evaluations.value == before + 1)
  }

  @Test(.guarantee(.partsAreNeverBehind))
  func `a part of a store is not behind the state for a handler notified of the state first`() {
    let store = makeStore()
    let part = store.select(\.half)
    let subscription = part.subscription(bufferingPolicy: .unbounded)
    let seen = Log<[Int]>()
    let states = store.map { state in
      seen.append([state.number / 2, part.current])
    }
    let token = states.observe { _ in }
    for _ in 0..<3 { store.dispatch(2) }
    #expect(seen.entries == [[0, 0], [1, 1], [2, 2], [3, 3]])
    withExtendedLifetime((subscription, token)) {}
  }

  @Test(.guarantee(.partsAreNeverBehind), arguments: [(0, [2, 5]), (2, [2, 3, 6])])
  func `a part of a store can be subscribed to during an action, and gives its value once`(
    expected: (step: Int, values: [Int])
  ) async {
    let late = Guarded<[Subscription<Int>]>([])
    let parts = Guarded<[Int]>([])
    let source = Guarded<Store<Counted, Int>?>(nil)
    let store = Store<Counted, Int>(Counted()) { state, step in
      state.number += step
      guard step == expected.step, let store = source.withLock({ $0.take() }) else { return }
      let part = store.select(\.half)
      let new = [
        part.subscription(bufferingPolicy: .unbounded),
        part.map { $0 }.subscription(bufferingPolicy: .unbounded),
        part.select { $0 }.map { $0 }.subscription(bufferingPolicy: .unbounded),
      ]
      parts.withLock { $0.append(part.current) }
      late.withLock { $0 += new }
    }
    source.withLock { $0 = store }
    for step in [4, expected.step, 0, 6] { store.dispatch(step) }
    #expect(parts.withLock { $0 } == [2])
    let subscriptions = late.withLock { $0 }
    #expect(subscriptions.count == 3)
    for subscription in subscriptions {
      #expect(await subscription.first(expected.values.count) == expected.values)
    }
  }

  @Test(.guarantee(.partsAreNeverBehind))
  func `a part of a store that is busy on another thread is there at once`() async {
    let late = Guarded<[Subscription<Int>]>([])
    let parts = Guarded<[Int]>([])
    let source = Guarded<Store<Counted, Int>?>(nil)
    let store = Store<Counted, Int>(Counted(number: 2)) { state, step in
      state.number += step
      guard let store = source.withLock({ $0 }) else { return }
      withoutLocks {
        let part = store.select(\.half)
        let subscription = part.subscription(bufferingPolicy: .unbounded)
        parts.withLock { $0.append(part.current) }
        late.withLock { $0.append(subscription) }
      }
    }
    source.withLock { $0 = store }
    store.dispatch(2)
    source.withLock { $0 = nil }
    store.dispatch(2)
    #expect(parts.withLock { $0 } == [1])
    for subscription in late.withLock({ $0 }) { #expect(await subscription.first(3) == [1, 2, 3]) }
  }

  @Test(.guarantee(.partsAreNeverBehind))
  func `a store part of one key path is right while actions and temporaries come and go`()
    async
  {
    let store = makeStore()
    let steady = store.select(\.half)
    let all = steady.subscription(bufferingPolicy: .unbounded)
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<400 { store.dispatch(1) }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<200 {
            let before = store.state.number / 2
            let part = store.select(\.half)
            let subscription = part.subscription(bufferingPolicy: .unbounded)
            #expect(part.current >= before)
            var iterator = subscription.makeAsyncIterator()
            let first = await iterator.next() ?? -1
            #expect(first >= before)
          }
        }
      }
    }
    #expect(await all.first(401) == Array(0...400))
    #expect(store.subscriberCount == 1)
  }

  @Test(.guarantee(.keyPathsAreSharedByAllViews))
  func `a selected part of a store releases its closure when its last subscriber leaves`() {
    let store = makeStore()
    weak var released: Owner?
    var stream: AsyncStream<Int>?
    do {
      let captured = Owner()
      released = captured
      stream = store.select { [captured] state in
        withExtendedLifetime(captured) { state.number }
      }.subscribe()
    }
    store.dispatch(1)
    #expect(released != nil)
    withExtendedLifetime(stream) {}
    stream = nil
    #expect(released == nil)
  }

  @Test(.guarantee(.partsAreNeverBehind))
  func `a selected part of a source that replays nothing begins with its state`() async {
    /// A state whose subscriptions replay nothing.
    struct Foreign: StatefulBroadcaster {
      let messenger = Messenger<Int>()
      let state = CurrentValue(0)

      var current: Int { state.value }
      var subscriberCount: Int { messenger.subscriberCount }

      func subscription(bufferingPolicy: BufferingPolicy<Int>) -> Subscription<Int> {
        messenger.subscription(bufferingPolicy: bufferingPolicy)
      }

      func send(_ number: Int) {
        state.value = number
        messenger.send(number)
      }
    }
    let foreign = Foreign()
    let part = foreign.select { $0 / 2 }
    let first = part.subscription(bufferingPolicy: .unbounded)
    foreign.send(1)
    foreign.send(2)
    let second = part.subscription(bufferingPolicy: .unbounded)
    foreign.send(4)
    #expect(await first.first(3) == [0, 1, 2])
    #expect(await second.first(2) == [1, 2])
    #expect(part.current == 2)
  }
}
