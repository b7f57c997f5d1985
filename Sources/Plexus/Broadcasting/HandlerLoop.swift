/// A handler with a task of its own.
final class HandlerLoop<Element: Sendable>: Sendable {
  /// Called on the handler's actor; returns whether there is somebody left to call.
  typealias Body = @Sendable (Element, isolated (any Actor)?) async -> Bool

  private struct State {
    var body: Body?
    var task: Task<Void, Never>?
    /// Whether the task is looking for the next element.
    var isReading = false
  }

  private let subscriber: Subscriber<Element>
  private let state: Locked<State>

  init(_ subscription: Subscription<Element>, body: @escaping Body) {
    subscriber = subscription.subscriber
    state = Locked(State(body: body))
  }

  /// Starts the task.
  ///
  /// - Parameter isolation: Where the handler belongs.
  func start(isolation: (any Actor)?) {
    let task = Task.detached(priority: Task.currentPriority) {
      await self.run(isolation: isolation)
    }
    let isCancelled = state.withLock { state in
      guard state.body != nil else { return true }
      state.task = task
      return false
    }
    if isCancelled { task.cancel() }
  }

  /// Removes the handler; it is not called again, and its task is cancelled.
  func cancel() {
    let (body, task, isReading) = state.withLock { state in
      let before = state
      state.body = nil
      state.task = nil
      return (before.body, before.task, before.isReading)
    }
    guard body != nil else { return }
    subscriber.hub.remove(subscriber)
    subscriber.hub.disown(id: subscriber.id)
    task?.cancel()
    // While the handler runs nobody reads, nor will anybody: what was to come is given up now.
    if !isReading {
      subscriber.claim()
      subscriber.end()
      subscriber.unclaim()
    }
  }

  /// The loop as its token sees it.
  var registration: HandlerRegistration<Element> {
    HandlerRegistration(id: subscriber.id, hub: subscriber.hub) { [weak self] in self?.cancel() }
  }

  private func run(isolation: isolated (any Actor)?) async {
    while beginReading() {
      let element = await subscriber.next(isolation: isolation)
      let body = endReading()
      guard let element, let body, await body(element, isolation) else { break }
    }
    cancel()
  }

  private func beginReading() -> Bool {
    state.withLock { state in
      state.isReading = state.body != nil
      return state.isReading
    }
  }

  private func endReading() -> Body? {
    state.withLock { state in
      state.isReading = false
      return state.body
    }
  }
}
