import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A store` {
  func makeShelf() -> Store<Shelf, ShelfAction> { Store(Shelf(), reducer: arrange) }

  @Test(.guarantee(.dispatchReduces)) func `a store has reduced an action when dispatch returns`() {
    let store = makeShelf()
    store.dispatch(.add(2))
    #expect(store.state.count == 2)
    store.dispatch(.add(3))
    #expect(store.state.count == 5)
  }

  @Test(.guarantee(.sendingIsSynchronous)) @MainActor
  func `a store takes actions from an actor and from a plain thread`() {
    let store = makeShelf()
    store.dispatch(.add(1))
    onOwnThread { store.dispatch(.add(2)) }
    #expect(store.state.count == 3)
  }

  @Test func `a store delivers the current state first and every later one`() async {
    let store = makeShelf()
    store.dispatch(.add(1))
    let states = store.subscription(bufferingPolicy: .unbounded)
    let stream = store.subscribe(bufferingPolicy: .unbounded)
    store.dispatch(.add(1))
    store.dispatch(.nothing)
    store.dispatch(.add(1))
    #expect(await states.first(4).map(\.count) == [1, 2, 2, 3])
    #expect(await stream.first(4).map(\.count) == [1, 2, 2, 3])
  }

  @Test
  func `a store shows the state before an action to its reducer, and lets it be read at any time`()
  {
    let later = Later<Store<Int, Int>>()
    let seen = Log<Int?>()
    let store = Store<Int, Int>(0) { state, action in
      state += action
      seen.append(later.value?.state)
    }
    later.value = store
    store.dispatch(5)
    store.dispatch(1)
    #expect(seen.entries == [0, 5])
  }

  @Test(.guarantee(.actionsPassCompletely))
  func `a store processes an action of a reducer after the current one`() async {
    let later = Later<Store<[Int], Int>>()
    let store = Store<[Int], Int>([]) { state, action in
      if action < 3 {
        later.value?.dispatch(action + 1)
        #expect(later.value?.state == Array(0..<action))
      }
      state.append(action)
    }
    later.value = store
    let states = store.subscription(bufferingPolicy: .unbounded)
    store.dispatch(0)
    #expect(store.state == [0, 1, 2, 3])
    #expect(await states.first(5) == [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]])
  }

  @Test(.guarantee(.actionsPassCompletely))
  func `a store processes an action of middleware after the current one`() {
    let log = Log<String>()
    let nesting = Middleware<[Int], Int> { action, context, next in
      log.append("begin \(action)")
      if action < 2 { context.dispatch(action + 1) }
      next(action)
      log.append("end \(action) \(context.state)")
    }
    let store = Store<[Int], Int>([], middleware: [nesting]) { $0.append($1) }
    store.dispatch(0)
    #expect(
      log.entries == [
        "begin 0", "end 0 [0]", "begin 1", "end 1 [0, 1]", "begin 2", "end 2 [0, 1, 2]",
      ]
    )
  }

  @Test func `a store processes an action of a selector after the current one`() async {
    let later = Later<Store<Int, Int>>()
    let store = Store<Int, Int>(0) { $0 += $1 }
    later.value = store
    let first = store.subscription(toChangesOf: { (state: Int) in
      if state == 1 { later.value?.dispatch(10) }
      return state
    })
    let second = store.subscription(toChangesOf: { $0 })
    store.dispatch(1)
    #expect(store.state == 11)
    for changes in [first, second] {
      #expect(await changes.first(3).map(\.new) == [0, 1, 11])
    }
  }

  @Test(.guarantee(.actionsPassCompletely))
  func `a store passes middleware, reducer and selectors completely before the next action`() {
    let log = Log<String>()
    let later = Later<Store<Int, Int>>()
    let middleware = Middleware<Int, Int> { action, _, next in
      log.append("middleware \(action)")
      next(action)
      log.append("after \(action)")
    }
    let store = Store<Int, Int>(0, middleware: [middleware]) { state, action in
      log.append("reducer \(action)")
      if action < 2 { later.value?.dispatch(action + 1) }
      state = action
    }
    later.value = store
    let changes = store.changes(of: { (state: Int) in
      log.append("selector \(state)")
      return state
    })
    store.dispatch(1)
    let expected = (1...2).flatMap {
      ["middleware \($0)", "reducer \($0)", "selector \($0)", "after \($0)"]
    }
    #expect(log.entries == ["selector 0"] + expected)
    withExtendedLifetime(changes) {}
  }

  @Test(.guarantee(.actionsPassCompletely))
  func `a store does not nest a chain of 100,000 actions`() {
    let later = Later<Store<Int, Int>>()
    let chain = Middleware<Int, Int> { action, context, next in
      if action > 0, action.isMultiple(of: 2) { context.dispatch(action - 1) }
      next(action)
    }
    let store = Store<Int, Int>(0, middleware: [chain]) { state, action in
      state += 1
      if !action.isMultiple(of: 2) { later.value?.dispatch(action - 1) }
    }
    later.value = store
    store.dispatch(100_000)
    #expect(store.state == 100_001)
  }

  @Test(.guarantee(.actionsPassCompletely))
  func `a store does not make another thread wait while it is processing an action`() async {
    let later = Later<Store<[Int], Int>>()
    let store = Store<[Int], Int>([]) { state, action in
      if action == 1 {
        onOwnThread {
          later.value?.dispatch(2)
          #expect(later.value?.state == [])
        }
      }
      state.append(action)
    }
    later.value = store
    let states = store.subscription(bufferingPolicy: .unbounded)
    store.dispatch(1)
    #expect(store.state == [1, 2])
    #expect(await states.first(3) == [[], [1], [1, 2]])
  }

  @Test func `a store lets an action wait while another thread begins to follow changes`() async {
    let store = Store<Int, Int>(0) { $0 += $1 }
    let isFirst = Guarded(true)
    let changes = store.subscription(toChangesOf: { (state: Int) in
      let isFirst = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isFirst {
        onOwnThread {
          store.dispatch(1)
          #expect(store.state == 0)
        }
      }
      return state
    })
    #expect(store.state == 1)
    #expect(await changes.first(2).map(\.new) == [0, 1])
  }

  @Test func `a store counts streams of states and of changes, and handlers`() {
    let store = makeShelf()
    #expect(store.subscriberCount == 0)
    var states: Subscription<Shelf>? = store.subscription()
    var changes: AsyncStream<Change<Int>>? = store.changes(of: \.count)
    let token = store.observe { (_: Shelf) in }
    #expect(store.subscriberCount == 3)
    withExtendedLifetime(states) {}
    states = nil
    #expect(store.subscriberCount == 2)
    withExtendedLifetime(changes) {}
    changes = nil
    #expect(store.subscriberCount == 1)
    token.cancel()
    #expect(store.subscriberCount == 0)
  }

  @Test(.guarantee(.storesEndTheirStreams))
  func `a store ends its streams after what was sent when it is released`() async {
    var store: Store<Shelf, ShelfAction>? = makeShelf()
    let states = store?.subscription(bufferingPolicy: .unbounded)
    let changes = store?.changes(of: \.count)
    store?.dispatch(.add(1))
    store = nil
    #expect(await states?.all().map(\.count) == [0, 1])
    #expect(await changes?.all().map(\.new) == [0, 1])
  }

  @Test func `a store can be stored as any broadcaster of its states`() async {
    let store = makeShelf()
    let source: any Broadcaster<Shelf> = store
    store.dispatch(.rename("Ada"))
    #expect(await source.subscribe(bufferingPolicy: .unbounded).first(1)[0].name == "Ada")
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns), arguments: [false, true])
  func `a store releases what it holds without a lock`(isFollowed: Bool) {
    struct Holder: Sendable { var parcel: Parcel? }
    let later = Later<Store<Holder, Parcel?>>()
    let released = Log<Int>()
    let store = Store<Holder, Parcel?>(Holder()) { $0.parcel = $1 }
    later.value = store
    let states = isFollowed ? store.subscription() : nil
    for number in 1...3 {
      // Each is released while the store processes the next action, and does not dispatch again.
      store.dispatch(
        Parcel(number) {
          released.append(number)
          _ = later.value?.state
          _ = later.value?.subscriberCount
          if number == 2 { later.value?.dispatch(nil) }
        }
      )
    }
    #expect(released.entries.prefix(2) == [1, 2])
    #expect(store.state.parcel == nil)
    withExtendedLifetime(states) {}
  }
}
