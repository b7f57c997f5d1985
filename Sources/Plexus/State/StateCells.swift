/// The state of a store, and the pages that combine it with their own.
@usableFromInline
final class AppCell<State: Sendable>: Sendable {
  /// A page, which gets every state in the critical section that sets it.
  @usableFromInline
  struct Page: Sendable {
    /// Appends the combination with a new state; called under the lock.
    ///
    /// It returns the work that remains, to be done with no lock held.
    @usableFromInline let prepare: @Sendable (State) -> @Sendable () -> Void
  }

  @usableFromInline
  struct Current: Sendable {
    @usableFromInline var state: State
    /// The pages, in order of creation.
    @usableFromInline var pages = StableList<Page>()

    @inlinable
    init(state: State) {
      self.state = state
    }
  }

  @usableFromInline let hub = BroadcastHub<State>()
  @usableFromInline let current: Locked<Current>

  @inlinable
  init(_ state: State) {
    current = Locked(Current(state: state))
  }

  @inlinable var state: State {
    current.withLock { $0.state }
  }

  @inlinable
  func publish(_ new: State) {
    var old = new
    var pageDeliveries: [@Sendable () -> Void] = []
    let delivery = current.withLock { current in
      swap(&current.state, &old)
      if !current.pages.isEmpty {
        pageDeliveries = current.pages.places.compactMap { $0.member?.prepare(new) }
      }
      return hub.prepare(new)
    }
    delivery?.deliver()
    for deliver in pageDeliveries { deliver() }
    withExtendedLifetime(old) {}
  }

  /// Calls the body with the state, which does not change until it returns.
  @inlinable
  func withState<Result>(_ body: (State) -> Result) -> Result {
    current.withLock { body($0.state) }
  }

  @usableFromInline
  func finish() {
    hub.finish()
  }

  /// Adds a page, which gets every state from now on.
  ///
  /// - Returns: The number by which it is removed.
  func insert(_ page: Page) -> Int {
    current.withLock { $0.pages.append(page) }
  }

  func remove(_ page: Int) {
    current.release { $0.pages.remove(page) }
  }
}

/// The state of a page, published together with the app's.
///
/// Both change under the lock of the app's cell, so that every published combination has existed.
@usableFromInline
final class PageCell<AppState: Sendable, PageState: Sendable>: Sendable {
  @usableFromInline typealias Snapshot = (app: AppState, page: PageState)

  @usableFromInline let app: AppCell<AppState>
  @usableFromInline let hub = BroadcastHub<Snapshot>()
  @usableFromInline let page: Locked<PageState>
  /// The number of this page among those of the app, while it follows it.
  @usableFromInline let place = Locked<Int?>(nil)

  @inlinable
  init(_ page: PageState, app: AppCell<AppState>) {
    self.page = Locked(page)
    self.app = app
  }

  @inlinable var state: PageState {
    page.withLock { $0 }
  }

  var snapshot: Snapshot {
    app.withState { ($0, state) }
  }

  @inlinable
  func publish(_ new: PageState) {
    var old = new
    let delivery = app.withState { app in
      // A reader of the new state finds it among the elements, too.
      page.withLock { page in
        swap(&page, &old)
        return hub.prepare((app, new))
      }
    }
    delivery?.deliver()
    withExtendedLifetime(old) {}
  }

  /// Begins to follow the app; called once.
  @usableFromInline
  func join() {
    let number = app.insert(AppCell.Page { self.prepare(app: $0) })
    place.withLock { $0 = number }
  }

  @usableFromInline
  func finish() {
    if let number = place.withLock({ $0 }) { app.remove(number) }
    hub.finish()
  }

  /// Appends the combination with a new state of the app; called under the lock of the app's cell.
  ///
  /// - Returns: The work that remains, to be done with no lock held.
  private func prepare(app: AppState) -> @Sendable () -> Void {
    let delivery = hub.prepare((app, state))
    return { delivery?.deliver() }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Snapshot>, _ replay: [Snapshot]) -> Result
  ) -> Result {
    app.withState { body(hub, [($0, state)]) }
  }
}
