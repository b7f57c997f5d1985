import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The actions of a store` {
  typealias Record = ActionRecord<Int, Int>

  private func makeStore(_ middleware: [Middleware<Int, Int>] = []) -> Store<Int, Int> {
    Store(0, middleware: middleware) { state, action in state += action }
  }

  @Test(.guarantee(.actionsAreRecorded))
  func `the actions of a store have the states before and after them, without a gap`() async {
    let store = makeStore()
    store.dispatch(1)
    let actions = store.actions()
    for action in [2, 0, 3] { store.dispatch(action) }
    let records = await actions.first(3)
    #expect(records.map(\.action) == [2, 0, 3])
    #expect(records.map(\.before) == [1, 3, 3])
    #expect(records.map(\.after) == [3, 3, 6])
    #expect(Set(records).count == 3)
  }

  @Test(.guarantee(.actionsAreRecorded))
  func `the actions of a store are the ones that middleware passes on`() async {
    let store = makeStore([
      Middleware { action, _, next in
        guard action > 0 else { return }
        next(action)
        if action > 10 { next(-action) }
      }
    ])
    let actions = store.actions()
    for action in [1, -5, 20, 2] { store.dispatch(action) }
    #expect(await actions.first(4).map(\.action) == [1, 20, -20, 2])
  }

  @Test func `the actions of a store have the order of the reducer if one dispatches another`()
    async
  {
    let later = Later<Store<Int, Int>>()
    let store = Store<Int, Int>(0) { state, action in
      if action == 1 { later.value?.dispatch(2) }
      state += action
    }
    later.value = store
    let actions = store.actions()
    store.dispatch(1)
    store.dispatch(3)
    #expect(await actions.first(3).map(\.action) == [1, 2, 3])
  }

  @Test func `the actions of a store begin behind the current one if its reducer subscribes`()
    async
  {
    let later = Later<Store<Int, Int>>()
    let streams = Log<AsyncStream<Record>>()
    let store = Store<Int, Int>(0) { state, action in
      if action == 1, let store = later.value {
        store.dispatch(2)
        streams.append(store.actions())
        store.dispatch(3)
      }
      state += action
    }
    later.value = store
    store.dispatch(1)
    #expect(await streams.entries[0].first(1) == [Record(action: 3, before: 3, after: 6)])
  }

  @Test(.guarantee(.actionsAreRecorded))
  func `the actions of a store are one chain of states on any number of threads`() async {
    let store = makeStore()
    let actions = store.actions(bufferingPolicy: .unbounded)
    await withTaskGroup { group in
      for thread in 1...4 {
        group.addTask { for _ in 0..<500 { store.dispatch(thread) } }
      }
    }
    let records = await actions.first(2_000)
    #expect(zip(records, records.dropFirst()).allSatisfy { $0.after == $1.before })
    #expect(records.allSatisfy { $0.after == $0.before + $0.action })
    #expect(records.last?.after == 5_000)
  }

  @Test func `the actions of a store show each change once the state is published`() async {
    let store = makeStore()
    let actions = store.actions()
    let seen = Log<Bool>()
    let reader = Task {
      for await record in actions { seen.append(store.state >= record.after) }
    }
    for _ in 0..<50 { store.dispatch(1) }
    await seen.first(50)
    #expect(seen.entries.allSatisfy { $0 })
    reader.cancel()
  }

  @Test func `the actions of a store are bounded by the policy of the reader`() async {
    let store = makeStore()
    let actions = store.actions()
    for _ in 0..<150 { store.dispatch(1) }
    let newest = await actions.first(1)
    #expect(newest.map(\.before) == [50])
    #expect(newest.map(\.number) == [51], "The number shows how many were dropped")
  }

  @Test(.guarantee(.logsKeepNothingWithoutReaders))
  func `the actions of a store keep no state alive once the reader has left`() async {
    let census = Census()
    let store = Store<Parcel?, Parcel?>(nil) { state, action in state = action }
    do {
      let actions = store.actions()
      store.dispatch(census.parcel(1))
      store.dispatch(nil)
      #expect(census.living == 1)
      withExtendedLifetime(actions) {}
    }
    await census.falls(to: 0)
    store.dispatch(census.parcel(2))
    store.dispatch(nil)
    #expect(census.living == 0)
    let later = store.actions()
    store.dispatch(nil)
    #expect(await later.first(1).count == 1)
  }

  @Test func `the actions of a store end with the store, after those dispatched before`() async {
    var store: Store<Int, Int>? = makeStore()
    weak let former = store
    let actions = store?.actions()
    store?.dispatch(1)
    store = nil
    #expect(former == nil)
    #expect(await actions?.all() == [Record(action: 1, before: 0, after: 1)])
  }
}
