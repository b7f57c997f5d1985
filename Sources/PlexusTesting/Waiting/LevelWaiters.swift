internal import PlexusSupport

/// A state with a level that tasks can wait for.
protocol Leveled: Sendable {
  /// The level that is compared with those of the waiting tasks.
  var level: Int { get }

  /// The tasks that wait for a higher level.
  var levelWaiters: LevelWaiters { get set }
}

/// The tasks that wait until a level is reached.
struct LevelWaiters: Sendable {
  private struct Waiter: Sendable {
    let level: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private var waiters: [Int: Waiter] = [:]
  private var lastID = 0

  mutating func makeID() -> Int {
    lastID += 1
    return lastID
  }

  mutating func insert(_ continuation: CheckedContinuation<Void, Never>, level: Int, id: Int) {
    waiters[id] = Waiter(level: level, continuation: continuation)
  }

  mutating func remove(_ id: Int) -> CheckedContinuation<Void, Never>? {
    waiters.removeValue(forKey: id)?.continuation
  }

  /// Removes and returns the waiters for the given level or a lower one, in order of arrival.
  mutating func removeAll(upTo level: Int) -> [CheckedContinuation<Void, Never>] {
    guard !waiters.isEmpty else { return [] }
    let reached = waiters.filter { $0.value.level <= level }.sorted { $0.key < $1.key }
    for (id, _) in reached { waiters.removeValue(forKey: id) }
    return reached.map(\.value.continuation)
  }
}

extension Locked where Value: Leveled {
  /// Waits until the level is at least the given one, or the calling task is cancelled.
  func reach(_ level: Int) async {
    let id = withLock { $0.levelWaiters.makeID() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = withLock { state in
          // A task that is cancelled after this check finds its waiter: `onCancel` takes the lock, too.
          guard state.level < level, !Task.isCancelled else { return false }
          state.levelWaiters.insert(continuation, level: level, id: id)
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      withLock { $0.levelWaiters.remove(id) }?.resume()
    }
  }

  /// Changes the state and resumes the tasks whose level is reached.
  func update(_ change: (inout Value) -> Void) {
    let reached = withLock { state in
      change(&state)
      return state.levelWaiters.removeAll(upTo: state.level)
    }
    for continuation in reached { continuation.resume() }
  }
}
