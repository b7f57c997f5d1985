import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A page store` {
  typealias Parent = Store<Shelf, ShelfAction>
  typealias Page = PageStore<Shelf, ShelfAction, Int, Int>

  let app = Parent(Shelf(count: 3), reducer: arrange)

  func makePage(_ middleware: Middleware<Int, Int>...) -> Page {
    app.page({ $0.count * 10 }, middleware: middleware, reducer: { $0 += $1 })
  }

  @Test func `a page store begins with a state made from the app's`() {
    app.dispatch(.add(1))
    #expect(makePage().state == 40)
  }

  @Test func `a page store has its own state, reducer and middleware`() {
    let doubling = Middleware<Int, Int> { action, _, next in next(action * 2) }
    let page = makePage(doubling)
    page.dispatch(1)
    #expect(page.state == 32)
    #expect(app.state.count == 3)
    page.parent.dispatch(.add(1))
    #expect(page.state == 32)
    #expect(app.state.count == 4)
  }

  @Test(.guarantee(.pagesAndAppsMatch))
  func `a page store delivers the states of app and page together, when either changes`() async {
    let page = makePage()
    let states = page.subscription(bufferingPolicy: .unbounded)
    let stream = page.subscribe(bufferingPolicy: .unbounded)
    page.dispatch(1)
    page.parent.dispatch(.add(1))
    page.dispatch(1)
    let expected = [[3, 30], [3, 31], [4, 31], [4, 32]]
    #expect(await states.first(4).map { [$0.app.count, $0.page] } == expected)
    #expect(await stream.first(4).map { [$0.app.count, $0.page] } == expected)
    #expect(page.snapshot.app.count == 4)
    #expect(page.snapshot.page == 32)
  }

  @Test func `a page store follows changes of the page and of the app`() async {
    let page = makePage()
    let ofPage = page.changes(of: \.self)
    let ofPageToo = page.changes(of: { $0.isMultiple(of: 2) })
    let ofApp = page.changes(ofApp: \.count)
    let ofAppToo = page.changes(ofApp: { $0.name })
    page.dispatch(1)
    app.dispatch(.add(1))
    app.dispatch(.rename("a"))
    page.dispatch(0)
    page.dispatch(1)
    #expect(await ofPage.first(3).map(\.new) == [30, 31, 32])
    #expect(await ofPageToo.first(3).map(\.new) == [true, false, true])
    #expect(await ofApp.first(2) == [Change(old: nil, new: 3), Change(old: 3, new: 4)])
    #expect(
      await ofAppToo.first(2) == [Change(old: nil, new: nil), Change(old: .some(nil), new: "a")]
    )
  }

  @Test(.guarantee(.pagesKeepTheirStore))
  func `a page store does not count as a subscriber of its parent, nor do its followers`() {
    let page = makePage()
    let states = page.subscribe()
    let changes = page.changes(of: \.self)
    let appChanges = page.changes(ofApp: \.count)
    let token = page.observe { _ in }
    #expect(app.subscriberCount == 0)
    #expect(page.subscriberCount == 4)
    withExtendedLifetime((states, changes, appChanges)) {}
    token.cancel()
    #expect(page.subscriberCount == 3)
  }

  @Test func `a page store is independent of others of its kind`() async {
    let first = makePage()
    let second = makePage()
    let states = second.subscription(bufferingPolicy: .unbounded)
    first.dispatch(1)
    app.dispatch(.add(1))
    second.dispatch(5)
    #expect(first.state == 31)
    #expect(second.state == 35)
    let seen = await states.first(3)
    #expect(seen.map { [$0.app.count, $0.page] } == [[3, 30], [4, 30], [4, 35]])
  }

  @Test(.guarantee(.pagesKeepTheirStore))
  func `a page store is freed when released, and ends its streams`()
    async
  {
    weak var weakPage: Page?
    var page: Page? = makePage()
    weakPage = page
    let states = page?.subscription(bufferingPolicy: .unbounded)
    let changes = page?.changes(of: \.self)
    let appChanges = page?.changes(ofApp: \.count)
    app.dispatch(.add(1))
    page?.dispatch(1)
    page = nil
    #expect(weakPage == nil)
    app.dispatch(.add(1))
    #expect(await states?.all().map { [$0.app.count, $0.page] } == [[3, 30], [4, 30], [4, 31]])
    #expect(await changes?.all().map(\.new) == [30, 31])
    #expect(await appChanges?.all().map(\.new) == [3, 4])
  }

  @Test func `a page store leaves no selector behind in its parent`() {
    let census = Census()
    var page: Page? = makePage()
    let parcel = Guarded<Parcel?>(census.parcel())
    let changes = page?.changes(
      ofApp: { [held = parcel.withLock { $0 }] in $0.count + (held?.number ?? 0) }
    )
    parcel.withLock { $0 = nil }
    #expect(census.living == 1)
    page = nil
    #expect(census.living == 0)
    withExtendedLifetime(changes) {}
  }

  @Test func `a page store leaves no state behind in its parent`() {
    let census = Census()
    var page: PageStore<Shelf, ShelfAction, Parcel, Parcel>? =
      app.page({ _ in census.parcel() }, reducer: { $0 = $1 })
    page?.dispatch(census.parcel())
    #expect(census.living == 1)
    app.dispatch(.add(1))
    page = nil
    #expect(census.living == 0)
  }

  @Test(arguments: [false, true])
  func `a page store releases what it holds without a lock`(isFollowed: Bool) {
    let later = Later<PageStore<Shelf, ShelfAction, Parcel, Parcel>>()
    let released = Log<Int>()
    let parcel: @Sendable (Int) -> Parcel = { number in
      Parcel(number) {
        released.append(number)
        _ = later.value?.snapshot
        _ = later.value?.parent.state
        _ = later.value?.subscription()
      }
    }
    let page = app.page({ _ in parcel(0) }, reducer: { $0 = $1 })
    later.value = page
    let states = isFollowed ? page.subscription() : nil
    for number in 1...3 { page.dispatch(parcel(number)) }
    app.dispatch(.add(1))
    // The subscriber retains the initial state until it reads.
    #expect(released.entries == (isFollowed ? [1, 2] : [0, 1, 2]))
    withExtendedLifetime(states) {}
  }

  @Test(.guarantee(.pagesKeepTheirStore)) func `a page store keeps its parent`() {
    weak var weakParent: Parent?
    var page: Page?
    do {
      let parent = Parent(Shelf(), reducer: arrange)
      weakParent = parent
      page = parent.page({ $0.count }, reducer: { $0 += $1 })
    }
    page?.parent.dispatch(.add(1))
    #expect(weakParent?.state.count == 1)
    page = nil
    #expect(weakParent == nil)
  }

  @Test func `a page store ends its effects when it is released`() async {
    let gate = Gate()
    let ended = Log<Bool>()
    var page: Page? = makePage(
      Middleware { action, context, next in
        next(action)
        context.run {
          try? await gate.wait()
          ended.append(Task.isCancelled)
        }
      }
    )
    page?.dispatch(1)
    await gate.arrivals(1)
    page = nil
    #expect(await ended.first(1) == [true])
  }

  @Test func `a page store waits for the effects of an action`() async {
    let gate = Gate()
    let page = makePage(
      Middleware { action, context, next in
        next(action)
        guard action == 1 else { return }
        context.run {
          try? await gate.wait()
          context.dispatch(100)
        }
      }
    )
    let waiting = Task {
      await page.dispatchAndWait(1)
      return page.state
    }
    await gate.arrivals(1)
    gate.open()
    #expect(await waiting.value == 131)
  }

  @Test(.guarantee(.pagesAndAppsMatch))
  func `a page store never combines states that were not there together`()
    async
  {
    // Middleware of the page dispatches to the app first, so the page's state follows the app's.
    let app = app
    let mirroring = Middleware<Int, Int> { action, _, next in
      app.dispatch(.add(1))
      next(app.state.count - 3)
    }
    let page = app.page({ _ in 0 }, middleware: [mirroring], reducer: { $0 = $1 })
    let states = page.subscription(bufferingPolicy: .unbounded)
    for _ in 0..<3 { page.dispatch(0) }
    let seen = await states.first(7).map { [$0.app.count - 3, $0.page] }
    #expect(seen == [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2], [3, 2], [3, 3]])
  }

  @Test func `a page store delivers the app's state before changes of the page at the same moment`()
    async
  {
    let app = Store<Parcel?, Parcel?>(nil) { $0 = $1 }
    let page = app.page({ _ in 0 }, reducer: { $0 += $1 })
    let unread = app.subscription(bufferingPolicy: .bufferingNewest(2))
    let states = page.subscription(bufferingPolicy: .bufferingOldest(9))
    var seen: [[Int]] = []
    for number in 1...3 {
      // The first parcel is displaced, and released, while the third one is delivered.
      app.dispatch(Parcel(number) { [weak page] in if number == 1 { page?.dispatch(1) } })
      seen += await states.first(number == 1 ? 2 : 1).map { [$0.app?.number ?? 0, $0.page] }
    }
    #expect(page.state == 1)
    seen += await states.first(1).map { [$0.app?.number ?? 0, $0.page] }
    #expect(seen == [[0, 0], [1, 0], [2, 0], [3, 0], [3, 1]])
    withExtendedLifetime(unread) {}
  }

  @Test
  func `a page store delivers the app's state before the changes that the app's subscribers make`()
    async throws
  {
    let app = Store<Int, Int>(0) { $0 = $1 }
    let page = app.page({ _ in 0 }, reducer: { $0 += $1 })
    let states = page.subscription(bufferingPolicy: .unbounded)
    let appStates = app.subscription(bufferingPolicy: .unbounded)
    // It is resumed, and dispatches to the page, inside the call that dispatches to the app.
    let loop = begin {
      for await state in appStates where state > 0 { page.dispatch(10) }
    }
    for number in 1...2 { app.dispatch(number) }
    let seen = await states.first(5).map { [$0.app, $0.page] }
    #expect(seen == [[0, 0], [1, 0], [1, 10], [2, 10], [2, 20]])
    loop.cancel()
    try await loop.value
  }

  @Test func `a page store shows both states in one order, whichever of them is dispatched to`()
    async
  {
    var page: Page? = makePage()
    guard let states = page?.subscription(bufferingPolicy: .unbounded) else { return }
    await withTaskGroup { [page, app] group in
      for _ in 0..<3 {
        group.addTask { for _ in 0..<2000 { app.dispatch(.add(1)) } }
        group.addTask { for _ in 0..<2000 { page?.dispatch(1) } }
      }
    }
    var last = [3, 30]
    var count = 0
    // A task still has to process the actions that the callers have enqueued.
    for (app, page) in await states.first(12_001) {
      if count > 0 { #expect(app.count + page == last[0] + last[1] + 1) }
      #expect(app.count >= last[0] && page >= last[1])
      last = [app.count, page]
      count += 1
    }
    #expect(count == 12001)
    #expect(last == [6003, 6030])
    #expect(page?.snapshot.app.count == 6003)
    #expect(page?.snapshot.page == 6030)
    page = nil
    #expect(await states.first(1).isEmpty)
  }

  @Test func `a page store has a snapshot of both states at one moment, beside dispatches to both`()
    async
  {
    let app = Store<Int, Int>(0) { $0 = $1 }
    let page = app.page({ _ in 0 }, reducer: { $0 = $1 })
    let isFinished = Guarded(false)
    let dispatching = Task.detached {
      var number = 0
      // The page is never ahead of the app, and at most one step behind it.
      while !isFinished.withLock({ $0 }) {
        number += 1
        app.dispatch(number)
        page.dispatch(number)
      }
      return number
    }
    var torn = 0
    for _ in 0..<400_000 {
      let (app, page) = page.snapshot
      if !(0...1).contains(app - page) { torn += 1 }
    }
    isFinished.withLock { $0 = true }
    let last = await dispatching.value
    #expect(torn == 0)
    #expect(page.snapshot == (last, last))
  }

  @Test func `a page store can be stored as any broadcaster, and calls handlers`() async {
    let page = makePage()
    let source: any Broadcaster<(app: Shelf, page: Int)> = page
    let log = Log<Int>()
    let token = source.observe { states in log.append(states.page) }
    await log.first(1)
    page.dispatch(1)
    #expect(await log.first(2) == [30, 31])
    withExtendedLifetime(token) {}
  }
}

/// A typical screen: it owns its page, and its loops and handlers refer to it.
@MainActor private final class Screen {
  let page: PageStore<Shelf, ShelfAction, Int, Int>
  let bag = ObservationBag()
  let shown: Log<Int>
  var loops: [Task<Void, Never>] = []

  init(_ app: Store<Shelf, ShelfAction>, shown: Log<Int>) {
    page = app.page({ $0.count }, reducer: { $0 += $1 })
    self.shown = shown
  }

  func show(_ number: Int) { shown.append(number) }

  func useOwnedHandlers() {
    page.observe(as: self) { screen, states in screen.show(states.page) }
  }

  func useHandlersInBag() {
    page.observe { [weak self] states in self?.show(states.page) }.store(in: bag)
  }

  func useHandlersThatCaptureStrongly() {
    page.observe { states in self.show(states.page) }.store(in: bag)
  }

  func useWeakLoop() {
    let changes = page.changes(of: \.self)
    loops.append(Task { [weak self] in for await change in changes { self?.show(change.new) } })
  }

  func useLoopThatCapturesStrongly() {
    loops.append(
      Task {
        for await change in self.page.changes(ofApp: \.count) { self.show(change.new) }
      }
    )
  }

  func useConsumer() -> StateConsumer<(app: Shelf, page: Int)> {
    let consumer = StateConsumer<(app: Shelf, page: Int)>()
    consumer.add(\.page) { [weak self] _, new in self?.show(new) }
    consumer.follow(page)
    return consumer
  }
}

@Suite(.fewAtOnce) @MainActor struct `A screen that owns a page store` {
  let app = Store<Shelf, ShelfAction>(Shelf(), reducer: arrange)

  @Test func `a screen is freed with handlers that it owns, in a bag, loops and a consumer`() async
  {
    let shown = Log<Int>()
    weak var weakPage: PageStore<Shelf, ShelfAction, Int, Int>?
    var loops: [Task<Void, Never>] = []
    var consumer: StateConsumer<(app: Shelf, page: Int)>?
    do {
      let screen = Screen(app, shown: shown)
      weakPage = screen.page
      screen.useOwnedHandlers()
      screen.useHandlersInBag()
      screen.useWeakLoop()
      consumer = screen.useConsumer()
      await shown.first(4)
      screen.page.dispatch(1)
      await shown.first(8)
      loops = screen.loops
    }
    #expect(weakPage == nil)
    for loop in loops { await loop.value }
    #expect(shown.entries == [0, 0, 0, 0, 1, 1, 1, 1])
    withExtendedLifetime(consumer) {}
  }

  @Test func `a screen is freed with closures that capture it strongly, once they are cancelled`()
    async
  {
    let shown = Log<Int>()
    weak var weakScreen: Screen?
    weak var weakPage: PageStore<Shelf, ShelfAction, Int, Int>?
    do {
      let screen = Screen(app, shown: shown)
      weakScreen = screen
      weakPage = screen.page
      screen.useHandlersThatCaptureStrongly()
      screen.useLoopThatCapturesStrongly()
      await shown.first(2)
      // The actions of a screen when it disappears.
      screen.bag.cancelAll()
      for loop in screen.loops {
        loop.cancel()
        await loop.value
      }
    }
    #expect(weakScreen == nil)
    #expect(weakPage == nil)
  }
}
