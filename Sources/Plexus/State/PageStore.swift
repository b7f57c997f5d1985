/// The store of one screen, beside the store of the app.
///
/// It has a state, a reducer, middleware and a lifetime of its own. Whoever subscribes gets the app's
/// state and the page's together. Code of the page dispatches to the app through ``parent``.
///
/// ```swift
/// struct App: Sendable, Equatable { var names = ["Ada", "Grace"] }
/// struct Filter: Sendable, Equatable { var text = "" }
///
/// let app = Store<App, String>(App()) { state, name in state.names.append(name) }
/// let page = app.page({ _ in Filter() }) { (state: inout Filter, text: String) in
///   state.text = text
/// }
/// page.dispatch("Gr")
/// for await (app, page) in page.subscribe() {
///   print(app.names.filter { $0.hasPrefix(page.text) })
///   break
/// }
/// ```
///
/// ## Consistency
///
/// A combination of the two states is always one that there was: a change of either is told together with
/// what the other was at that moment, in one order for all subscribers.
///
/// ## Order
///
/// Actions of the page follow the rules of ``Store``, in an order of their own: the app and each of its
/// pages carry out one action at a time. An action that one of them dispatches to another one while
/// that has nothing to do has been reduced when `dispatch` returns.
///
/// ## Lifetime
///
/// A page store lives as long as its owner keeps it, and keeps its parent, which knows it by its state
/// only and does not count it as a subscriber. Several pages of one kind live side by side. When the
/// last reference to a page store is gone, its effects are cancelled and its streams end.
///
/// What captures the owner of the page strongly must not be kept by the page: observe with
/// `observe(as: self)` or `[weak self]`, and cancel tasks whose loops capture `self`. The article
/// <doc:stores-and-pages> lists the ways.
///
/// ## Topics
///
/// ### Dispatching
/// - ``dispatch(_:)``
/// - ``dispatchAndWait(_:)``
/// - ``parent``
///
/// ### Following
/// - ``state``
/// - ``snapshot``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor PageStore<
  AppState: Sendable,
  AppAction: Sendable,
  PageState: Sendable,
  PageAction: Sendable
>: StatefulBroadcaster {
  /// What subscribers receive: both states at one moment.
  public typealias Element = (app: AppState, page: PageState)

  /// The store of the app.
  public nonisolated let parent: Store<AppState, AppAction>

  @usableFromInline let engine: StoreEngine<PageState, PageAction>
  @usableFromInline let feeds: ChangeSubscriptions
  @usableFromInline let appFeeds = ChangeSubscriptions()
  @usableFromInline let cell: PageCell<AppState, PageState>

  @inlinable
  init(
    parent: Store<AppState, AppAction>,
    state: PageState,
    middleware: [Middleware<PageState, PageAction>],
    reducer: @escaping Reducer<PageState, PageAction>
  ) {
    self.parent = parent
    let cell = PageCell(state, app: parent.cell)
    self.cell = cell
    let feeds = ChangeSubscriptions()
    self.feeds = feeds
    engine = StoreEngine(cell, feeds: feeds, middleware: middleware, reducer: reducer)
    cell.join()
  }

  deinit {
    engine.effects.close()
    // In turn: the states that the app's store has yet to reach are seen by the page's subscribers, too.
    parent.engine.run { [engine, appFeeds] selectors, _ in
      engine.close()
      for feed in appFeeds.finish() { selectors.remove(feed) }
    }
  }

  /// The newest state of the page.
  @inlinable public nonisolated var state: PageState {
    cell.state
  }

  /// The newest states of the app and of the page, at one moment.
  public nonisolated var snapshot: (app: AppState, page: PageState) {
    cell.snapshot
  }

  /// The newest states of the app and of the page, at one moment.
  public nonisolated var current: Element { snapshot }

  /// Carries out an action of the page; see ``Store/dispatch(_:)``.
  ///
  /// - Parameter action: What is to happen.
  @inlinable
  public nonisolated func dispatch(_ action: PageAction) {
    engine.dispatch(action, in: nil)
  }

  /// Carries out an action of the page and waits until its effects have ended; see
  /// ``Store/dispatchAndWait(_:)``.
  ///
  /// If the calling task is cancelled, this returns at once; the action and its effects go on.
  ///
  /// - Parameter action: What is to happen.
  public nonisolated func dispatchAndWait(_ action: PageAction) async {
    await engine.dispatchAndWait(action)
  }

  /// Registers a subscriber and returns both states, and those that follow a change of either.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Element> = .bufferingNewest(1)
  ) -> AsyncStream<Element> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns both states, and those that follow a change of either.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Element> = .bufferingNewest(1)
  ) -> Subscription<Element> {
    withHub { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// The number of the page's subscribers at this moment: to states and to changes, of the app's state,
  /// too, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    cell.hub.subscriberCount + feeds.count + appFeeds.count
  }
}

extension PageStore: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    cell.withHub(body)
  }
}
