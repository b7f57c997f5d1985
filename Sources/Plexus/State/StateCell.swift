/// Where a state is kept for those who read it at any time, and from where it is published.
protocol StateCell<State>: AnyObject, Sendable {
  associatedtype State: Sendable

  /// The newest state.
  var state: State { get }
  /// Makes a state the newest one and tells the subscribers, in one critical section.
  func publish(_ new: State)
}

/// The state of a store, and the pages that combine it with their own.
@usableFromInline
final class AppCell<State: Sendable>: StateCell {
  private struct Current: Sendable {
    var state: State
    /// In order of creation.
    var pages: [any AppFollower<State>] = []
  }

  let hub = BroadcastHub<State>()
  private let current: Locked<Current>

  init(_ state: State) {
    current = Locked(Current(state: state))
  }

  var state: State {
    current.withLock { $0.state }
  }

  func publish(_ new: State) {
    let (old, delivery, pageDeliveries) = current.withLock { current in
      let old = current.state
      current.state = new
      return (old, hub.prepare(new), current.pages.map { $0.prepare(app: new) })
    }
    delivery.deliver()
    for deliver in pageDeliveries { deliver() }
    withExtendedLifetime(old) {}
  }

  /// Calls the body with the state, which does not change until it returns.
  func withState<Result>(_ body: (State) -> Result) -> Result {
    current.withLock { body($0.state) }
  }

  func insert(_ page: any AppFollower<State>) {
    current.withLock { $0.pages.append(page) }
  }

  func remove(_ page: any AppFollower<State>) {
    let removed = current.withLock { current in
      current.pages.firstIndex { $0 === page }.map { current.pages.remove(at: $0) }
    }
    withExtendedLifetime(removed) {}
  }
}

/// What has to hear of every state of a store in the moment when it becomes the newest.
@usableFromInline
protocol AppFollower<AppState>: AnyObject, Sendable {
  associatedtype AppState: Sendable

  /// Appends the combination with a new state of the app; called under the lock of the app's cell.
  ///
  /// - Returns: What remains to be done once no lock is held.
  func prepare(app: AppState) -> @Sendable () -> Void
}

/// The state of a page, published together with the app's.
///
/// Both change under the lock of the app's cell, so that a combination is always one that there was.
final class PageCell<AppState: Sendable, PageState: Sendable>: StateCell, AppFollower {
  typealias Snapshot = (app: AppState, page: PageState)

  let app: AppCell<AppState>
  let hub = BroadcastHub<Snapshot>()
  private let page: Locked<PageState>

  init(_ page: PageState, app: AppCell<AppState>) {
    self.page = Locked(page)
    self.app = app
  }

  var state: PageState {
    page.withLock { $0 }
  }

  var snapshot: Snapshot {
    app.withState { ($0, state) }
  }

  func publish(_ new: PageState) {
    let (old, delivery) = app.withState { app in
      let old = page.withLock { page in
        let old = page
        page = new
        return old
      }
      return (old, hub.prepare((app, new)))
    }
    delivery.deliver()
    withExtendedLifetime(old) {}
  }

  func prepare(app: AppState) -> @Sendable () -> Void {
    let delivery = hub.prepare((app, state))
    return { delivery.deliver() }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Snapshot>, _ replay: [Snapshot]) -> Result
  ) -> Result {
    app.withState { body(hub, [($0, state)]) }
  }
}
