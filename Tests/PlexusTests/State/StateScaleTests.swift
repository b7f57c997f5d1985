import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Many followers of a store` {
  /// More than a time that grows with the square would allow.
  let count = 20_000

  @Test func `many followers leave one key path in the order in which they came, in good time`() {
    let store = Store<Int, Int>(0) { $0 += $1 }
    var changes: [Subscription<Change<Int>>?] = (0..<count).map { _ in
      store.subscription(toChangesOf: \.self)
    }
    for index in changes.indices { changes[index] = nil }
    #expect(store.subscriberCount == 0)
  }

  @Test func `many pages leave a store, the newest first, in good time`() {
    let store = Store<Int, Int>(0) { $0 += $1 }
    var pages: [PageStore<Int, Int, Int, Int>?] = (0..<count).map { _ in
      store.page({ $0 }, reducer: { $0 += $1 })
    }
    for index in pages.indices.reversed() { pages[index] = nil }
    store.dispatch(1)
    #expect(store.state == 1)
  }

  @Test func `followers are notified of each change once, whichever of them leave in between`()
    async
  {
    let store = Store<Int, Int>(0) { $0 += $1 }
    var changes: [Subscription<Change<Int>>?] = (0..<100).map { _ in
      store.subscription(toChangesOf: \.self)
    }
    for index in 0..<100 where index % 3 != 0 { changes[index] = nil }
    changes += (0..<10).map { _ in store.subscription(toChangesOf: \.self) }
    store.dispatch(1)
    for index in 0..<100 where index % 2 != 0 { changes[index] = nil }
    store.dispatch(1)
    #expect(store.subscriberCount == changes.count { $0 != nil })
    for subscription in changes {
      guard let subscription else { continue }
      #expect(await subscription.first(3).map(\.new) == [0, 1, 2])
    }
  }
}
