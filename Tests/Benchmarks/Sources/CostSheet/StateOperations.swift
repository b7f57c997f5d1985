import Plexus

/// Operations of stores, pages and consumers without a goal.
let stateOperations: [Operation] = storeOperations + pageOperations + consumerOperations

/// A state with a part.
private struct Count: Sendable {
  var number = 0
}

private func countStore(_ middleware: [Middleware<Count, Int>] = []) -> Store<Count, Int> {
  Store(Count(), middleware: middleware) { $0.number += $1 }
}

// MARK: - Store

private let storeOperations: [Operation] = [
  Operation("store: init") { count in
    for _ in 0..<count { _ = countStore() }
  },
  Operation("store: state") { count in
    let store = countStore()
    for _ in 0..<count { use(store.state.number) }
  },
  Operation("store: dispatch") { count in
    let store = countStore()
    for _ in 0..<count { store.dispatch(1) }
  },
  Operation("store: dispatch, a log of actions", goal: 2_000) { count in
    let store = countStore()
    let actions = store.actions()
    for _ in 0..<count { store.dispatch(1) }
    withExtendedLifetime(actions) {}
  },
  Operation("store: dispatch, 1 reader of states that is behind") { count in
    let store = countStore()
    let reader = Reader(store.subscription()) { $0.number == count }
    await settle()
    for _ in 0..<count { store.dispatch(1) }
    await reader.finish()
  },
  Operation("store: dispatch, 1 reader of all states") { count in
    let store = countStore()
    let reader = Reader(store.subscription(bufferingPolicy: .unbounded), count: count + 1)
    await settle()
    for _ in 0..<count { store.dispatch(1) }
    await reader.finish()
  },
  Operation("store: dispatch, 1 reader of states, one at a time", count: 300) { count in
    let store = countStore()
    let reader = Reader(store.subscription(), count: count + 1)
    await settle()
    for _ in 0..<count {
      store.dispatch(1)
      await Task.yield()
    }
    await reader.finish()
  },
  Operation("store: dispatch, 1 reader of changes") { count in
    let store = countStore()
    let reader = Reader(store.subscription(toChangesOf: { $0.number }), count: count + 1)
    await settle()
    for _ in 0..<count { store.dispatch(1) }
    await reader.finish()
  },
  Operation("store: dispatch, 1 reader of what does not change") { count in
    let store = countStore()
    let subscription = store.subscription(toChangesOf: { $0.number < 0 })
    for _ in 0..<count { store.dispatch(1) }
    withExtendedLifetime(subscription) {}
  },
  Operation("store: dispatch, 1 middleware") { count in
    let store = countStore([Middleware { action, _, next in next(action) }])
    for _ in 0..<count { store.dispatch(1) }
  },
  Operation("store: dispatch, 1 middleware that reads the state") { count in
    let store = countStore([
      Middleware { action, context, next in
        use(context.state.number)
        next(action)
      }
    ])
    for _ in 0..<count { store.dispatch(1) }
  },
  Operation("store: dispatch, 1 middleware that dispatches once more") { count in
    let store = countStore([
      Middleware { action, context, next in
        if action == 1 { context.dispatch(2) }
        next(action)
      }
    ])
    for _ in 0..<count { store.dispatch(1) }
  },
  Operation("store: dispatch, 1 middleware with an effect", count: 300) { count in
    let effects = Countdown(count)
    let store = countStore([
      Middleware { action, context, next in
        next(action)
        context.run { effects.signal() }
      }
    ])
    for _ in 0..<count { store.dispatch(1) }
    await effects.wait()
  },
  Operation("store: dispatchAndWait", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { await store.dispatchAndWait(1) }
  },
  Operation("store: subscribe and drop", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { _ = store.subscribe() }
  },
  Operation("store: subscription and drop", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { _ = store.subscription() }
  },
  Operation("store: subscriberCount") { count in
    let store = countStore()
    for _ in 0..<count { use(store.subscriberCount) }
  },
  Operation("store: subscription(toChangesOf: path) and drop", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { _ = store.subscription(toChangesOf: \.number) }
  },
  Operation("store: changes(of:) and drop", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { _ = store.changes(of: { $0.number }) }
  },
  Operation("store: changes(of: path) and drop", count: 600) { count in
    let store = countStore()
    for _ in 0..<count { _ = store.changes(of: \.number) }
  },
]

// MARK: - PageStore

private func page(of store: Store<Count, Int>) -> PageStore<Count, Int, Count, Int> {
  store.page({ _ in Count() }, reducer: { $0.number += $1 })
}

private let pageOperations: [Operation] = [
  Operation("page: init and drop", count: 300) { count in
    let store = countStore()
    for _ in 0..<count { _ = page(of: store) }
  },
  Operation("page: state") { count in
    let page = page(of: countStore())
    for _ in 0..<count { use(page.state.number) }
  },
  Operation("page: snapshot") { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { use(page.snapshot.page.number) }
    withExtendedLifetime(store) {}
  },
  Operation("page: dispatch") { count in
    let page = page(of: countStore())
    for _ in 0..<count { page.dispatch(1) }
  },
  Operation("page: dispatchAndWait", count: 600) { count in
    let page = page(of: countStore())
    for _ in 0..<count { await page.dispatchAndWait(1) }
  },
  Operation("page: dispatch to the app, 1 page with a reader") { count in
    let store = countStore()
    let page = page(of: store)
    let reader = Reader(page.subscription(bufferingPolicy: .unbounded), count: count + 1)
    await settle()
    for _ in 0..<count { store.dispatch(1) }
    await reader.finish()
  },
  Operation("page: subscribe and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.subscribe() }
    withExtendedLifetime(store) {}
  },
  Operation("page: subscription and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.subscription() }
    withExtendedLifetime(store) {}
  },
  Operation("page: subscriberCount") { count in
    let page = page(of: countStore())
    for _ in 0..<count { use(page.subscriberCount) }
  },
  Operation("page: subscription(toChangesOf:) and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.subscription(toChangesOf: { $0.number }) }
    withExtendedLifetime(store) {}
  },
  Operation("page: changes(of:) and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.changes(of: { $0.number }) }
    withExtendedLifetime(store) {}
  },
  Operation("page: subscription(toChangesOfApp:) and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.subscription(toChangesOfApp: { $0.number }) }
    withExtendedLifetime(store) {}
  },
  Operation("page: changes(ofApp:) and drop", count: 600) { count in
    let store = countStore()
    let page = page(of: store)
    for _ in 0..<count { _ = page.changes(ofApp: { $0.number }) }
    withExtendedLifetime(store) {}
  },
]

// MARK: - StateConsumer

private let consumerOperations: [Operation] = [
  Operation("consumer: init") { count in
    for _ in 0..<count { _ = StateConsumer<Count>() }
  },
  Operation("consumer: add + removeAll", count: 600) { count in
    let consumer = StateConsumer(initialState: Count())
    for _ in 0..<count {
      consumer.add({ $0.number }) { _, _ in }
      consumer.removeAll()
    }
  },
  Operation("consumer: add in a bag + cancelAll", count: 600) { count in
    let consumer = StateConsumer(initialState: Count())
    let bag = ObservationBag()
    for _ in 0..<count {
      consumer.add({ $0.number }, in: bag) { _, _ in }
      bag.cancelAll()
    }
  },
  Operation("consumer: consume, no closure") { count in
    let consumer = StateConsumer(initialState: Count())
    for number in 0..<count { consumer.consume(Count(number: number)) }
  },
  Operation("consumer: consume, 1 closure, no change") { count in
    let consumer = StateConsumer(initialState: Count())
    consumer.add({ $0.number < 0 }) { _, _ in }
    for number in 0..<count { consumer.consume(Count(number: number)) }
  },
  Operation("consumer: consume, 1 closure is called", count: 600) { count in
    let consumer = StateConsumer(initialState: Count())
    let calls = Countdown(count)
    consumer.add({ $0.number }) { _, _ in calls.signal() }
    for number in 1...count { consumer.consume(Count(number: number)) }
    await calls.wait()
  },
  Operation("consumer: consume, 1 async closure is called", count: 600) { count in
    let consumer = StateConsumer(initialState: Count())
    let calls = Countdown(count)
    consumer.add({ $0.number }) { (_: Int?, _: Int) async in calls.signal() }
    for number in 1...count { consumer.consume(Count(number: number)) }
    await calls.wait()
  },
  Operation("consumer: follow, an element", count: 600) { count in
    let messenger = Messenger<Count>()
    let consumer = StateConsumer(initialState: Count())
    let calls = Countdown(count)
    consumer.add({ $0.number }) { _, _ in calls.signal() }
    consumer.follow(messenger)
    await settle()
    for number in 1...count {
      messenger.send(Count(number: number))
      await Task.yield()
    }
    await calls.wait()
  },
]
