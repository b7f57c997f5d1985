/// The state of a page, published together with the app's.
///
/// Both change under the lock of the app's cell, so that every published combination has existed.
@usableFromInline
final class PageCell<AppState: Sendable, PageState: Sendable>: Sendable {
  @usableFromInline typealias Snapshot = (app: AppState, page: PageState)

  /// The sender of combinations in which only the state of the app is new.
  static var appMark: UInt64 { 1 }

  @usableFromInline let app: StoreCell<AppState>
  @usableFromInline let hub = BroadcastHub<Snapshot>()
  @usableFromInline let page: Locked<PageState>
  /// The number of this page among those of the app, while it follows it.
  @usableFromInline let place = Locked<Int?>(nil)

  @inlinable
  init(_ page: PageState, app: StoreCell<AppState>) {
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
    var delivery = Delivery<Snapshot>()
    app.withState { app in
      // A reader of the new state finds it among the elements, too.
      page.withLock { page in
        swap(&page, &old)
        hub.prepare((app, new), &delivery)
      }
    }
    delivery.deliver()
    withExtendedLifetime(old) {}
  }

  /// Begins to follow the app; called once.
  @usableFromInline
  func join() {
    let number = app.insert(StoreCell.Page { self.prepare(app: $0) })
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
    var delivery = Delivery<Snapshot>()
    hub.prepare((app, state), from: Self.appMark, &delivery)
    return { [delivery] in delivery.deliver() }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Snapshot>, _ replay: [Snapshot]) -> Result
  ) -> Result {
    app.withState { body(hub, [($0, state)]) }
  }
}
