/// The state of a store, and the pages that combine it with their own.
@usableFromInline
final class StoreCell<State: Sendable>: Sendable {
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
    var delivery = Delivery<State>()
    current.withLock { current in
      swap(&current.state, &old)
      if !current.pages.isEmpty {
        pageDeliveries = current.pages.places.compactMap { $0.member?.prepare(new) }
      }
      hub.prepare(new, &delivery)
    }
    delivery.deliver()
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
