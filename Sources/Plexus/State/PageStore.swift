/// The store of one screen, in addition to the store of the app.
///
/// It has its own state, reducer, middleware and lifetime. Subscribers receive the states of the app and of the page
/// together. Code of the page dispatches to the app through ``parent``.
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
///   print(app.names.filter { $0.hasPrefix(page.text) })  // Prints "["Grace"]"
///   break
/// }
/// ```
///
/// ## Consistency
///
/// Subscribers receive only combinations of the two states that existed at one moment: a change of either is delivered
/// together with the other state at that moment, in one order for all subscribers.
///
/// ## Order
///
/// Actions of the page follow the rules of ``Store``, in their own order: the app and each of its pages process one
/// action at a time. An action that one of them dispatches to an idle other one has been reduced when `dispatch`
/// returns.
///
/// ## Lifetime
///
/// A page store lives as long as its owner keeps it. It keeps its parent alive, and does not count as one of its
/// subscribers. Several pages of one kind can exist at the same time. Releasing the last reference to a page store
/// cancels its effects and ends its streams.
///
/// The page must not keep closures that capture its owner strongly. Observe with `observe(as: self)` or `[weak self]`,
/// and cancel tasks whose loops capture `self`. See <doc:stores-and-pages>.
///
/// ## Topics
///
/// ### Dispatching
/// - ``dispatch(_:)``
/// - ``dispatchAndWait(_:)``
/// - ``parent``
///
/// ### Reading
/// - ``state``
/// - ``snapshot``
/// - ``current``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
///
/// ### Following changes
/// - ``changes(of:bufferingPolicy:)-(KeyPath<PageState,V>Sendable,_)``
/// - ``changes(of:bufferingPolicy:)-((PageState)->V,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-(KeyPath<PageState,V>Sendable,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-((PageState)->V,_)``
/// - ``changes(ofApp:bufferingPolicy:)-(KeyPath<AppState,V>Sendable,_)``
/// - ``changes(ofApp:bufferingPolicy:)-((AppState)->V,_)``
/// - ``subscription(toChangesOfApp:bufferingPolicy:)-(KeyPath<AppState,V>Sendable,_)``
/// - ``subscription(toChangesOfApp:bufferingPolicy:)-((AppState)->V,_)``
public final actor PageStore<
  AppState: Sendable,
  AppAction: Sendable,
  PageState: Sendable,
  PageAction: Sendable
>: StatefulBroadcaster {
  /// The type of the elements: the states of the app and the page at one moment.
  public typealias Element = (app: AppState, page: PageState)

  /// The store of the app.
  public nonisolated let parent: Store<AppState, AppAction>

  @usableFromInline let engine: StoreEngine<PageState, PageAction>
  @usableFromInline let subscribers: ChangeSubscriptions
  @usableFromInline let appSubscribers = ChangeSubscriptions()
  @usableFromInline let cell: PageCell<AppState, PageState>
  @usableFromInline let parts = PageStoreParts()

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
    let subscribers = ChangeSubscriptions()
    self.subscribers = subscribers
    engine = StoreEngine(
      StoreEngine.Cell(
        read: { cell.state },
        publish: { cell.publish($0) },
        finish: { cell.finish() }
      ),
      subscribers: subscribers,
      middleware: middleware,
      reducer: reducer
    )
    parent.engine.connect(appSubscribers)
    cell.join()
  }

  deinit {
    engine.effects.close()
    // In turn, so that the page's subscribers also receive the states that the app's store has not reached yet.
    parent.engine.run { [engine, appSubscribers] selectors, _ in
      engine.close()
      for id in appSubscribers.finish() { selectors.remove(id) }
    }
  }

  /// The current state of the page.
  @inlinable public nonisolated var state: PageState {
    cell.state
  }

  /// The states of the app and of the page at one moment.
  public nonisolated var snapshot: (app: AppState, page: PageState) {
    cell.snapshot
  }

  /// The states of the app and of the page at one moment.
  public nonisolated var current: Element { snapshot }

  /// Dispatches an action of the page; see ``Store/dispatch(_:)``.
  ///
  /// - Parameter action: The action.
  @inlinable
  public nonisolated func dispatch(_ action: PageAction) {
    engine.dispatch(action, in: nil)
  }

  /// Dispatches an action of the page and waits until its effects have ended.
  ///
  /// If the calling task is cancelled, the method returns immediately; the action and its effects continue. See
  /// ``Store/dispatchAndWait(_:)``.
  ///
  /// - Parameter action: The action.
  public nonisolated func dispatchAndWait(_ action: PageAction) async {
    await engine.dispatchAndWait(action)
  }

  /// Registers a subscriber, which receives both states and then every change of either.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Element> = .bufferingNewest(1)
  ) -> AsyncStream<Element> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives both states and then every change of either.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Element> = .bufferingNewest(1)
  ) -> Subscription<Element> {
    withHub { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// The current number of subscribers to states and to changes of the page, including streams and handlers.
  ///
  /// Subscribers to changes of the app's state that were registered with the page count, too. All views that select the
  /// same key path count as one.
  public nonisolated var subscriberCount: Int {
    cell.hub.subscriberCount + subscribers.count + appSubscribers.count
  }
}

extension PageStore: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    cell.withHub(body)
  }
}

extension PageStore: PartEvaluating {
  nonisolated func connection<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (Element) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> DerivedCore<Part>.Connection {
    guard let path else { return core.connection(to: self, minimumReplay: 1, select) }
    let shared = SelectedPart(self, core: parts.core(of: path), select)
    return core.connection(to: shared, minimumReplay: 1) { $0 }
  }

  nonisolated func replay<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (Element) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> Replay<Part>? {
    guard let path else { return core.replay(of: { currentReplay() }, select) }
    let shared = SelectedPart(self, core: parts.core(of: path), select)
    return core.replay(of: { shared.currentReplay() }, { $0 })
  }
}
