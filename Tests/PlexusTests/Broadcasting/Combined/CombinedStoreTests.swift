import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A store and its pages are combined as of one moment.
@Suite(.fewAtOnce) struct `A combination of a store and its pages` {
  struct App: Sendable, Equatable { var user = 0, count = 0 }

  typealias Page = PageStore<App, Int, Int, Int>

  private func makeStore() -> Store<App, Int> {
    Store(App()) { app, action in
      app.user = action
      app.count += 1
    }
  }

  private func page(of store: Store<App, Int>) -> Page {
    store.page({ _ in 0 }, reducer: { $0 += $1 })
  }

  @Test(.guarantee(.partsAreCombinedConsistently))
  func `parts of a store and of several of its pages come from one state of the app`() async {
    let store = makeStore()
    let (left, right) = (page(of: store), page(of: store))
    let all = combine(
      left.select(\.app.user),
      store.select(\.user),
      right.map(\.app.user),
      store,
      right,
      left.select(\.page)
    ) { [$0, $1, $2, $3.user, $4.app.user, $4.page, $5] }
    #expect(all.current == [0, 0, 0, 0, 0, 0, 0])
    let elements = all.subscription(bufferingPolicy: .unbounded)
    store.dispatch(5)
    right.dispatch(1)
    left.dispatch(2)
    store.dispatch(6)
    #expect(all.current == [6, 6, 6, 6, 6, 1, 2])
    #expect(
      await elements.first(5) == [
        [0, 0, 0, 0, 0, 0, 0], [5, 5, 5, 5, 5, 0, 0], [5, 5, 5, 5, 5, 1, 0],
        [5, 5, 5, 5, 5, 1, 2], [6, 6, 6, 6, 6, 1, 2],
      ]
    )
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `the streams of a combination end with the page, although its parent lives on`() async {
    let (store, other) = (makeStore(), CurrentValue(0))
    let elements: Subscription<Int>
    let others: Subscription<Int>
    do {
      let page = page(of: store)
      others = combine(page.select(\.page), other) { $0 + $1 }
        .subscription(bufferingPolicy: .unbounded)
      elements = combine(page.select(\.page), page.map(\.app.user)) { $0 + $1 }
        .subscription(bufferingPolicy: .unbounded)
      page.dispatch(1)
      store.dispatch(10)
    }
    #expect(await elements.all() == [0, 1, 11])
    #expect(store.subscriberCount == 0)
    other.value = 10
    other.finish()
    #expect(await others.all() == [0, 1, 11])
  }

  @Test(.guarantee(.combinationsPublishEveryChange))
  func `a combination of a page publishes every change of page and app, and changes are followed`()
    async
  {
    let store = makeStore()
    let page = page(of: store)
    let changes = store.subscription(toChangesOf: \.user)
    let user = store.select(\.user)
    let alone = user.subscription(bufferingPolicy: .unbounded)
    let seen = Log<Int>()
    // A handler of changes that reads the combination finds the state of the change.
    let sum = combine(user, page) { user, states in user + states.app.user + states.page }
    let token = store.observeChanges(of: \.user) { seen.append(sum.current) }
    let elements = sum.subscription(bufferingPolicy: .unbounded)
    store.dispatch(100)
    page.dispatch(1)
    store.dispatch(200)
    #expect(await elements.first(4) == [0, 200, 201, 401])
    #expect(await changes.first(3).map(\.new) == [0, 100, 200])
    #expect(await alone.first(3) == [0, 100, 200])
    #expect(await seen.first(3) == [0, 200, 401])
    withExtendedLifetime(token) {}
  }
}

extension Store where State == `A combination of a store and its pages`.App {
  /// Calls a closure after each change of a part, on the dispatching thread.
  fileprivate nonisolated func observeChanges<Part: Equatable & Sendable>(
    of path: any KeyPath<State, Part> & Sendable,
    _ body: @escaping @Sendable () -> Void
  ) -> ObservationToken {
    select(path).map { part in
      body()
      return part
    }.observe { _ in }
  }
}
