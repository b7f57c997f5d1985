import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The changes of a store of numbers, as a source of handlers.
private struct NumberChanges: Broadcaster {
  let store: Store<Int, Int>

  var subscriberCount: Int { store.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Change<Int>>) -> Subscription<Change<Int>> {
    store.subscription(toChangesOf: \.self, bufferingPolicy: bufferingPolicy)
  }

  func subscribe(bufferingPolicy: BufferingPolicy<Change<Int>>) -> AsyncStream<Change<Int>> {
    store.changes(of: \.self, bufferingPolicy: bufferingPolicy)
  }
}

/// An actor whose jobs run on the thread that enqueues them, before it continues.
private actor InlineHost {
  private final class Executor: SerialExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
      job.runSynchronously(on: asUnownedSerialExecutor())
    }
  }

  private nonisolated let executor = Executor()
  private var token: ObservationToken?

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  func dispatch(_ number: Int, to store: Store<Int, Int>) {
    store.dispatch(number)
  }

  /// Observes the changes, and at the first one ends that, and logs the number of subscribers.
  func observe(_ changes: NumberChanges, _ counts: Log<Int>) {
    token = changes.observe { [self] (_: Change<Int>) in
      token?.cancel()
      counts.append(changes.subscriberCount)
    }
  }
}

@Suite(.fewAtOnce) struct `Changes of a store` {
  func makeShelf() -> Store<Shelf, ShelfAction> { Store(Shelf(), reducer: arrange) }

  @Test(.guarantee(.changesAreReal))
  func `changes are the present value first, then real changes with the exact previous value`()
    async
  {
    let store = makeShelf()
    store.dispatch(.add(5))
    let byPath = store.changes(of: \.count)
    let byClosure = store.changes(of: { $0.count })
    let fast = store.subscription(toChangesOf: \.count)
    let fastByClosure = store.subscription(toChangesOf: { $0.count })
    store.dispatch(.add(1))
    for _ in 0..<100 { store.dispatch(.nothing) }
    store.dispatch(.put("a"))
    store.dispatch(.add(0))
    store.dispatch(.add(1))
    let expected = [
      Change(old: nil, new: 5), Change(old: 5, new: 6), Change(old: 6, new: 7),
    ]
    #expect(await byPath.first(3) == expected)
    #expect(await byClosure.first(3) == expected)
    #expect(await fast.first(3) == expected)
    #expect(await fastByClosure.first(3) == expected)
  }

  @Test
  func `changes of an optional value distinguish nil from the missing old value of the first`()
    async
  {
    let store = makeShelf()
    let changes = store.changes(of: \.name)
    store.dispatch(.rename(nil))
    store.dispatch(.rename("a"))
    store.dispatch(.rename("a"))
    store.dispatch(.rename(nil))
    store.dispatch(.rename(nil))
    store.dispatch(.rename("b"))
    let seen = await changes.first(4)
    #expect(
      seen == [
        Change(old: nil, new: nil), Change(old: .some(nil), new: "a"),
        Change(old: "a", new: nil), Change(old: .some(nil), new: "b"),
      ]
    )
    #expect(seen[0].old == nil)
    #expect(seen[1].old == .some(nil))
  }

  @Test(.guarantee(.tokensAndOwnersReleaseHandlers))
  func `a handler of changes that ends during the action in which it was added no longer counts`() {
    let later = Later<Store<Int, Int>>()
    let counts = Log<Int>()
    let store = Store<Int, Int>(0) { state, action in
      state = action
      guard let store = later.value else { return }
      let token = NumberChanges(store: store).observe { (_: Change<Int>) in }
      counts.append(store.subscriberCount)
      token.cancel()
      counts.append(store.subscriberCount)
    }
    later.value = store
    store.dispatch(1)
    #expect(counts.entries == [1, 0])
    #expect(store.subscriberCount == 0)
  }

  @Test(.guarantee(.tokensAndOwnersReleaseHandlers))
  func `a handler of changes that ends at its first value no longer counts`() async {
    let later = Later<Store<Int, Int>>()
    let (host, counts) = (InlineHost(), Log<Int>())
    let store = Store<Int, Int>(0) { state, action in
      state = action
      guard let store = later.value else { return }
      // The subscription begins after the action, on this thread.
      host.assumeIsolated { $0.observe(NumberChanges(store: store), counts) }
    }
    later.value = store
    await host.dispatch(1, to: store)
    await counts.first(1)
    #expect(counts.entries == [0])
  }

  @Test func `changes of an array are those of its elements`() async {
    let store = Store<[[Int]], Int>([[1]]) { state, action in
      if action > 0 { state[0].append(action) } else { state[0] = Array(state[0]) }
    }
    let changes = store.changes(of: { $0[0] })
    store.dispatch(0)
    store.dispatch(2)
    #expect(
      await changes.first(2) == [Change(old: nil, new: [1]), Change(old: [1], new: [1, 2])]
    )
  }

  /// A state that counts the evaluations of one of its parts.
  struct Counted: Sendable {
    let looks = Log<Void>()
    var number = 0
    var half: Int {
      looks.append(())
      return number / 2
    }
  }

  @Test(.guarantee(.selectorsRunOncePerAction))
  func `changes of a store take one evaluation at subscription and one an action`() {
    let store = Store<Counted, Int>(Counted()) { $0.number += $1 }
    let looks = store.state.looks
    let changes = store.changes(of: { $0.half })
    #expect(looks.count == 1)
    for count in 2...10 {
      store.dispatch(1)
      #expect(looks.count == count)
    }
    let second = store.changes(of: { $0.half })
    #expect(looks.count == 11)
    store.dispatch(1)
    #expect(looks.count == 13)
    withExtendedLifetime((changes, second)) {}
  }

  @Test(.guarantee(.selectorsRunOncePerAction))
  func `changes of one key path share one evaluation`() async {
    let store = Store<Counted, Int>(Counted()) { $0.number += $1 }
    let looks = store.state.looks
    var streams = (0..<10).map { _ in store.subscription(toChangesOf: \.half) }
    #expect(looks.count == 1)
    store.dispatch(2)
    #expect(looks.count == 2)
    var late: AsyncStream<Change<Int>>? = store.changes(of: \.half)
    #expect(looks.count == 2)
    store.dispatch(2)
    #expect(looks.count == 3)
    #expect(await streams[9].first(3).map(\.new) == [0, 1, 2])
    #expect(await late?.first(2) == [Change(old: nil, new: 1), Change(old: 1, new: 2)])
    // Leaving subscribers take nothing from the others, and the last one ends the evaluation.
    streams = []
    store.dispatch(2)
    #expect(looks.count == 4)
    #expect(await late?.first(1).map(\.new) == [3])
    late = nil
    store.dispatch(2)
    #expect(looks.count == 4)
  }

  @Test func `a selector without followers is not evaluated`() async {
    let store = Store<Counted, Int>(Counted()) { $0.number += $1 }
    let looks = store.state.looks
    for isPath in [true, false] {
      var stream: Subscription<Change<Int>>? =
        isPath
        ? store.subscription(toChangesOf: \.half) : store.subscription(toChangesOf: { $0.half })
      store.dispatch(1)
      let before = looks.count
      withExtendedLifetime(stream) {}
      stream = nil
      store.dispatch(1)
      #expect(looks.count == before)
      // Another subscriber can come later.
      let again = store.subscription(toChangesOf: \.half)
      store.dispatch(2)
      #expect(
        await again.first(2).map(\.new) == [store.state.number / 2 - 1, store.state.number / 2]
      )
    }
  }

  @Test func `changes end for a loop whose task is cancelled, which frees the selector`() async {
    let census = Census()
    let store = makeShelf()
    let begun = Log<Int>()
    let parcel = Guarded<Parcel?>(census.parcel())
    let loop = Task { [held = parcel.withLock { $0 }] in
      for await change in store.changes(of: { $0.count + (held?.number ?? 0) }) {
        begun.append(change.new)
      }
    }
    parcel.withLock { $0 = nil }
    await begun.first(1)
    #expect(store.subscriberCount == 1)
    loop.cancel()
    await loop.value
    #expect(store.subscriberCount == 0)
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  @Test func `changes subscribed to while an action is processed begin with the state after it`()
    async
  {
    let later = Later<Store<Int, Int>>()
    let streams = Log<Subscription<Change<Int>>>()
    let subscribe: @Sendable () -> Void = {
      guard let store = later.value else { return }
      streams.append(store.subscription(toChangesOf: { $0 }))
      streams.append(store.subscription(toChangesOf: \.self))
    }
    let middleware = Middleware<Int, Int> { action, _, next in
      if action == 1 { subscribe() }
      next(action)
      if action == 1 { subscribe() }
    }
    let store = Store<Int, Int>(0, middleware: [middleware]) { state, action in
      if action == 1 {
        subscribe()
        onOwnThread(subscribe)
      }
      state += action
    }
    later.value = store
    store.dispatch(1)
    store.dispatch(10)
    #expect(streams.count == 8)
    for stream in streams.entries {
      #expect(await stream.first(2) == [Change(old: nil, new: 1), Change(old: 1, new: 11)])
    }
  }

  @Test func `changes subscribed to in a selector begin after the action, too`() async {
    let later = Later<Store<Int, Int>>()
    let streams = Log<Subscription<Change<Int>>>()
    let store = Store<Int, Int>(0) { $0 += $1 }
    later.value = store
    let outer = store.subscription(toChangesOf: { (state: Int) in
      if state == 1, let store = later.value {
        streams.append(store.subscription(toChangesOf: { $0 }))
      }
      return state
    })
    store.dispatch(1)
    store.dispatch(1)
    #expect(await streams.first(1)[0].first(2).map(\.new) == [1, 2])
    withExtendedLifetime(outer) {}
  }

  @Test func `changes dropped while an action is processed receive nothing after it`() async {
    let census = Census()
    let held = Guarded<Subscription<Change<Int>>?>(nil)
    let store = Store<Int, Int>(0) { state, action in
      if action == 1 { held.withLock { $0 = nil } }
      state += action
    }
    let parcel = Guarded<Parcel?>(census.parcel())
    held.withLock { held in
      held = store.subscription(
        toChangesOf: { [held = parcel.withLock { $0 }] state in state + (held?.number ?? 0) }
      )
    }
    parcel.withLock { $0 = nil }
    #expect(census.living == 1)
    store.dispatch(1)
    #expect(store.subscriberCount == 0)
    #expect(census.living == 0)
  }

  /// The part of a key that distinguishes key paths; comparing it uses a store.
  struct Key: Hashable, Sendable {
    let number: Int
    let later: Later<Store<[Int], Int>>

    static func == (left: Key, right: Key) -> Bool {
      _ = left.later.value?.subscriberCount
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {
      _ = later.value?.state
      _ = later.value?.subscription(toChangesOf: { $0.count })
      hasher.combine(0)
    }
  }

  @Test func `changes of key paths with arguments are distinguished, without a lock`() async {
    let later = Later<Store<[Int], Int>>()
    let store = Store<[Int], Int>([0, 0]) { $0[$1] += 1 }
    later.value = store
    let streams = [0, 1, 0].map { index in
      store.subscription(toChangesOf: \.[Key(number: index, later: later)])
    }
    store.dispatch(0)
    store.dispatch(1)
    store.dispatch(1)
    #expect(await streams[0].first(2).map(\.new) == [0, 1])
    #expect(await streams[1].first(3).map(\.new) == [0, 1, 2])
    #expect(await streams[2].first(2).map(\.new) == [0, 1])
  }

  @Test(.guarantee(.changesAreReal))
  func `changes skipped under a bounded policy keep the exact previous value of the store`() async {
    let store = makeShelf()
    let changes = store.changes(of: \.count, bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<5 { store.dispatch(.add(1)) }
    #expect(await changes.first(1) == [Change(old: 4, new: 5)])
  }

  @Test func `changes form one chain for a subscriber that joins while others dispatch`() async {
    let store = makeShelf()
    await withTaskGroup { group in
      for _ in 0..<3 {
        group.addTask { for _ in 0..<300 { store.dispatch(.add(1)) } }
      }
      for number in 0..<3 {
        group.addTask {
          for _ in 0..<30 {
            let before = store.state.count
            let changes =
              number == 0
              ? store.subscription(toChangesOf: \.count)
              : store.subscription(toChangesOf: { $0.count })
            store.dispatch(.add(1))
            let target = store.state.count
            var previous: Int?
            for await change in changes {
              #expect(change.old == previous)
              #expect(change.new >= before)
              if let previous { #expect(change.new == previous + 1) }
              previous = change.new
              if change.new >= target { break }
            }
          }
        }
      }
    }
    // A task can still have to process the actions that the callers have enqueued.
    await store.dispatchAndWait(.nothing)
    #expect(store.state.count == 990)
    #expect(store.subscriberCount == 0)
  }

  @Test func `changes of selectors that are added and removed arrive in subscription order`() async
  {
    let order = Log<Int>()
    let store = Store<Int, Int>(0) { $0 += $1 }
    var streams: [Int: Subscription<Change<Int>>] = [:]
    for number in 0..<100 {
      streams[number] = store.subscription(toChangesOf: { (state: Int) in
        order.append(number)
        return state
      })
    }
    var random = SeededRandom(seed: 5)
    var left = Array(0..<100)
    while left.count > 2 {
      let index = Int.random(in: 0..<left.count, using: &random)
      streams[left.remove(at: index)] = nil
      let before = order.count
      store.dispatch(1)
      #expect(Array(order.entries[before...]) == left)
    }
    #expect(store.subscriberCount == 2)
  }

  @TaskLocal private static var isSubscriber = false

  @Test func `subscribing to changes does not occupy the thread with what others have left`() async
  {
    let (later, own) = (Later<Store<Int, Int>>(), Guarded(0))
    let store = Store<Int, Int>(0) { state, action in
      if Self.isSubscriber { own.withLock { $0 += 1 } }
      state = action
    }
    later.value = store
    let changes = Self.$isSubscriber.withValue(true) {
      store.subscription(toChangesOf: { (state: Int) in
        if state == 0 {
          onOwnThread { for number in 1...10_000 { later.value?.dispatch(number) } }
        }
        return state
      })
    }
    // No other call follows: a task processes the rest, in order.
    #expect(await changes.first(10_001).map(\.new) == Array(0...10_000))
    #expect(own.withLock { $0 } <= 1_024)
  }

  @Test func `changes of the app dispatched before the release of a page come before the end`()
    async
  {
    let later = Later<Store<Int, Int>>()
    let store = Store<Int, Int>(0) { $0 = $1 }
    later.value = store
    var page: PageStore? = store.page({ (_: Int) in 0 }, reducer: { (_: inout Int, _: Int) in })
    let changes = page?.subscription(toChangesOfApp: { (state: Int) in
      if state == 0 { for number in 1...1_000 { later.value?.dispatch(number) } }
      return state
    })
    page = nil
    #expect(await changes?.all().map(\.new) == Array(0...1_000))
    #expect(store.state == 1_000)
  }
}

extension [Int] {
  fileprivate subscript(key: `Changes of a store`.Key) -> Int { self[key.number] }
}
