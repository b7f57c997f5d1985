import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A store that is released while it is busy` {
  typealias Numbers = Store<[Int], Int>

  /// Keeps an object until it is taken out.
  final class Keeper<Value: Sendable>: Sendable {
    private let value = Guarded<Value?>(nil)

    func keep(_ new: Value) { value.withLock { $0 = new } }

    func take() -> Value? {
      value.withLock { value in
        defer { value = nil }
        return value
      }
    }
  }

  @Test(.guarantee(.storesEndTheirStreams))
  func `a released busy store processes earlier actions, and publishes them before its end`() async
  {
    let (owner, census) = (Keeper<Numbers>(), Census())
    let kept = Keeper<Middleware<[Int], Int>.Context>()
    let middleware = Middleware<[Int], Int> { action, context, next in
      kept.keep(context)
      next(action)
      guard action == 1 else { return }
      let store = owner.take()
      store?.dispatch(2)
      store?.dispatch(3)
    }
    var parcel: Parcel? = census.parcel()
    owner.keep(
      Numbers([], middleware: [middleware]) { [parcel] state, action in
        withExtendedLifetime(parcel) { state.append(action) }
      }
    )
    parcel = nil
    let later = Later<Numbers>()
    do {
      let store = owner.take()
      later.value = store
      store?.dispatch(0)
      if let store { owner.keep(store) }
    }
    guard let states = later.value?.subscription(bufferingPolicy: .unbounded),
      let changes = later.value?.subscription(toChangesOf: \.count)
    else { return }
    // Only its owner holds the store, and releases it meanwhile.
    kept.take()?.dispatch(1)
    #expect(later.value == nil)
    #expect(await states.all().last == [0, 1, 2, 3])
    #expect(await changes.all().map(\.new) == [1, 2, 3, 4])
    kept.take()?.dispatch(4)
    #expect(census.living == 0)
  }

  @Test func `a page store that is released while busy publishes earlier actions before its end`()
    async
  {
    typealias Page = PageStore<Int, Int, [Int], Int>
    let app = Store<Int, Int>(0) { $0 += $1 }
    let owner = Keeper<Page>()
    let kept = Keeper<Middleware<[Int], Int>.Context>()
    let middleware = Middleware<[Int], Int> { action, context, next in
      kept.keep(context)
      next(action)
      guard action == 1 else { return }
      let page = owner.take()
      page?.dispatch(2)
      page?.parent.dispatch(5)
    }
    let later = Later<Page>()
    do {
      let page = app.page({ _ in [] }, middleware: [middleware], reducer: { $0.append($1) })
      later.value = page
      page.dispatch(0)
      owner.keep(page)
    }
    guard let states = later.value?.subscription(bufferingPolicy: .unbounded) else { return }
    kept.take()?.dispatch(1)
    #expect(later.value == nil)
    let seen = await states.all()
    #expect(seen.map(\.page) == [[0], [0, 1], [0, 1], [0, 1, 2]])
    #expect(seen.map(\.app) == [0, 0, 5, 5])
  }

  @Test func `a store that is released while it is busy loses no action, stress`() async {
    let kept = Keeper<Middleware<[Int], Int>.Context>()
    let keeping = Middleware<[Int], Int> { action, context, next in
      if action == 0 { kept.keep(context) }
      next(action)
    }
    for _ in 0..<200 {
      let (owner, leavers) = (Keeper<Numbers>(), Keeper<[Subscription<Change<Int>>]>())
      let states: Subscription<[Int]>
      do {
        let store = Numbers([], middleware: [keeping]) { $0.append($1) }
        store.dispatch(0)
        states = store.subscription(bufferingPolicy: .unbounded)
        leavers.keep(
          (0..<20).map { number in store.subscription(toChangesOf: { $0.count + number }) }
        )
        owner.keep(store)
      }
      let context = kept.take()
      await withTaskGroup { group in
        group.addTask { for _ in 0..<20 { context?.dispatch(2) } }
        group.addTask { _ = leavers.take() }
        group.addTask { owner.take()?.dispatch(1) }
      }
      #expect(await states.all().last?.contains(1) == true)
    }
  }

  @Test func `a store, a page or a consumer may be released in a selector of its own`() async {
    let owner = Keeper<Numbers>()
    let later = Later<Numbers>()
    do {
      let store = Numbers([]) { $0.append($1) }
      later.value = store
      owner.keep(store)
    }
    let changes = later.value?.subscription(toChangesOf: { (state: [Int]) in
      if state.count == 1 { _ = owner.take() }
      return state.count
    })
    later.value?.dispatch(1)
    #expect(later.value == nil)
    #expect(await changes?.all().map(\.new) == [0, 1])

    let app = Store<Int, Int>(0) { $0 += $1 }
    let page = Keeper<PageStore<Int, Int, Int, Int>>()
    let ofApp: Subscription<Change<Int>>
    do {
      let new = app.page({ $0 }, reducer: { $0 += $1 })
      ofApp = new.subscription(toChangesOfApp: { (state: Int) in
        if state == 1 { _ = page.take() }
        return state
      })
      page.keep(new)
    }
    app.dispatch(1)
    app.dispatch(1)
    #expect(await ofApp.all().map(\.new).starts(with: [0]))
    #expect(app.subscriberCount == 0)

    let consumer = Keeper<StateConsumer<Int>>()
    let called = Log<Int>()
    let weakConsumer = Later<StateConsumer<Int>>()
    do {
      let new = StateConsumer<Int>()
      let select: @Sendable (Int) -> Int = { state in
        if state == 1 { _ = consumer.take() }
        return state
      }
      new.add(select) { _, new in called.append(new) }
      weakConsumer.value = new
      consumer.keep(new)
    }
    weakConsumer.value?.consume(1)
    #expect(weakConsumer.value == nil)
  }
}
