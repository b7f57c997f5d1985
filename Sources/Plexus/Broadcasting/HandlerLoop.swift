/// A handler with a task of its own.
final class HandlerLoop<Element: Sendable>: Sendable {
  /// Called on the handler's actor; returns whether there is somebody left to call.
  typealias Body = @Sendable (Element, isolated (any Actor)?) async -> Bool

  private struct State {
    var body: Body?
    var task: Task<Void, Never>?
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
    let (body, task) = state.withLock { state in
      defer { state = State() }
      return (state.body, state.task)
    }
    guard body != nil else { return }
    subscriber.hub.remove(subscriber)
    subscriber.hub.disown(id: subscriber.id)
    task?.cancel()
  }

  /// The loop as its token sees it.
  var registration: HandlerRegistration<Element> {
    HandlerRegistration(id: subscriber.id, hub: subscriber.hub) { [weak self] in self?.cancel() }
  }

  private func run(isolation: isolated (any Actor)?) async {
    while let element = await subscriber.next(isolation: isolation) {
      guard let body = state.withLock({ $0.body }), await body(element, isolation) else { break }
    }
    cancel()
  }
}
