internal import PlexusSupport

/// The prefetching for a loader or a prefetcher, in tasks of low priority that end with the last reference.
final class PrefetchQueue: Sendable {
  /// The work of a loader on one item.
  struct Work: Sendable {
    /// The number of times that the loader was cleared: items from before are no longer prefetched.
    let epoch: @Sendable () -> Int
    let fetch: @concurrent @Sendable (MediaItem) async -> Void

    init(
      of core: MediaCore,
      fetch: @escaping @concurrent @Sendable (MediaItem) async -> Void
    ) {
      epoch = { core.epoch }
      self.fetch = fetch
    }
  }

  private struct Element: Hashable, Sendable {
    let item: MediaItem
    let epoch: Int
  }

  private struct State: Sendable {
    var elements: PrefetchState<Element>
    var tasks: [Int: Task<Void, Never>] = [:]
  }

  private let work: Work
  private let state: Locked<State>

  init(_ work: Work, concurrency: Int) {
    self.work = work
    state = Locked(State(elements: PrefetchState(limit: concurrency)))
  }

  deinit {
    for task in state.withLock({ $0.tasks }).values { task.cancel() }
  }

  /// Adds items that are not waiting or being fetched yet.
  func add(_ items: [MediaItem]) {
    let epoch = work.epoch()
    state.withLock { $0.elements.add(items.map { Element(item: $0, epoch: epoch) }) }
    start()
  }

  /// Ends the prefetching of items.
  func cancel(_ items: [MediaItem]) {
    let epoch = work.epoch()
    stop { $0.cancel(Set(items.map { Element(item: $0, epoch: epoch) })) }
  }

  /// Ends all prefetching.
  func cancelAll() {
    stop { $0.cancelAll() }
  }

  func pause() {
    stop { $0.pause() }
  }

  func resume() {
    state.withLock { $0.elements.resume() }
    start()
  }

  var isPaused: Bool { state.withLock { $0.elements.isPaused } }

  /// The numbers of items that wait and that are fetched.
  var counts: (waiting: Int, running: Int) { state.withLock { $0.elements.counts } }

  private func stop(_ change: (inout PrefetchState<Element>) -> [Int]) {
    let tasks = state.withLock { state in
      change(&state.elements).compactMap { state.tasks.removeValue(forKey: $0) }
    }
    for task in tasks { task.cancel() }
    start()
  }

  private func start() {
    state.withLock { state in
      // A task takes itself out when it ends, so that it has to be in before.
      while let next = state.elements.next() {
        let work = work
        state.tasks[next.id] = Task.detached(priority: .utility) { [weak self] in
          if next.element.epoch == work.epoch() { await work.fetch(next.element.item) }
          self?.finish(next.id)
        }
      }
    }
  }

  private func finish(_ id: Int) {
    let ended = state.withLock { state in
      state.elements.finish(id)
      return state.tasks.removeValue(forKey: id)
    }
    withExtendedLifetime(ended) {}
    start()
  }
}
