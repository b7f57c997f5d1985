import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Values of a state whose operators call back` {
  /// A number whose comparison runs a closure first.
  struct Number: Sendable, Equatable {
    var number: Int
    var onCompare: @Sendable (Int, Int) -> Void = { _, _ in }

    static func == (left: Number, right: Number) -> Bool {
      left.onCompare(left.number, right.number)
      return left.number == right.number
    }
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns))
  func `state values are compared without a lock, and what they dispatch follows`() async {
    let later = Later<Store<Number, Int>>()
    let compare: @Sendable (Int, Int) -> Void = { new, _ in
      withoutLocks {
        guard let store = later.value else { return }
        _ = store.state
        _ = store.subscriberCount
        _ = store.subscription()
        _ = store.changes(of: \.number)
        if new == 1 { store.dispatch(10) }
      }
    }
    let store = Store<Number, Int>(Number(number: 0, onCompare: compare)) { $0.number += $1 }
    later.value = store
    let changes = store.subscription(toChangesOf: \.self)
    store.dispatch(1)
    store.dispatch(0)
    #expect(await changes.first(3).map(\.new.number) == [0, 1, 11])
    #expect(store.subscriberCount == 1)
  }

  @Test func `state values may feed, add to and empty the consumer that compares them`() async {
    let later = Later<StateConsumer<Number>>()
    let log = Log<Int>()
    let compare: @Sendable (Int, Int) -> Void = { new, _ in
      withoutLocks {
        guard let consumer = later.value else { return }
        switch new {
        case 1: consumer.consume(Number(number: 2))
        case 2: consumer.add(\.number, firesImmediately: true) { _, new in log.append(100 + new) }
        case 3: consumer.removeAll()
        default: break
        }
      }
    }
    let consumer = StateConsumer<Number>(initialState: Number(number: 0))
    later.value = consumer
    consumer.add(\.self) { _, new in log.append(new.number) }
    consumer.consume(Number(number: 1, onCompare: compare))
    consumer.consume(Number(number: 2, onCompare: compare))
    consumer.consume(Number(number: 4, onCompare: compare))
    await log.contains(4)
    consumer.consume(Number(number: 3, onCompare: compare))
    consumer.consume(Number(number: 5, onCompare: compare))
    let marked = Log<Int>()
    consumer.add(\.number) { _, new in marked.append(new) }
    consumer.consume(Number(number: 6))
    await marked.first(1)
    #expect(log.entries.filter { $0 < 100 } == [1, 2, 4])
    #expect(!log.entries.contains { $0 % 100 == 5 || $0 % 100 == 6 })
  }

  @Test(arguments: [
    AsyncStream<Change<Int>>.Continuation.BufferingPolicy.bufferingNewest(0), .bufferingNewest(-1),
    .bufferingNewest(.min), .bufferingOldest(0), .bufferingOldest(.min), .bufferingOldest(.max),
    .bufferingNewest(.max),
  ])
  func `changes are reported under a policy of any size`(
    policy: AsyncStream<Change<Int>>.Continuation.BufferingPolicy
  ) async {
    var store: Store<Int, Int>? = Store(0) { $0 += $1 }
    let changes = store?.subscription(toChangesOf: \.self, bufferingPolicy: policy)
    let states = store?.subscription(bufferingPolicy: .bufferingNewest(0))
    store?.dispatch(1)
    #expect(store?.subscriberCount == 2)
    store = nil
    let seen = await changes?.all().map(\.new) ?? []
    #expect([[], [0, 1]].contains(seen))
    #expect(await states?.all() == [])
  }

  @Test func `a context that is kept after its action was waited for does no harm`() async {
    let kept = Guarded<Middleware<Int, Int>.Context?>(nil)
    let middleware = Middleware<Int, Int> { action, context, next in
      kept.withLock { $0 = context }
      next(action)
    }
    let store = Store<Int, Int>(0, middleware: [middleware]) { $0 += $1 }
    await store.dispatchAndWait(1)
    let context = kept.withLock { $0 }
    for _ in 0..<3 { context?.dispatch(1) }
    let ran = Log<Void>()
    context?.run { ran.append(()) }
    await ran.first(1)
    await store.dispatchAndWait(1)
    #expect(store.state == 5)
  }
}
