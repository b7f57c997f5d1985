/// Lets so many transfers a host go on at once; those that somebody asks for go first.
final class HostGate<Key: Hashable & Sendable>: Sendable {
  private struct Shared: Sendable {
    var state: HostGateState<Key>
    var continuations: [Int: CheckedContinuation<Void, any Error>] = [:]
    var nextID = 0
  }

  private let shared: Locked<Shared>

  init(limit: Int) {
    shared = Locked(Shared(state: HostGateState(limit: limit)))
  }

  /// Somebody asks for a key from now on, prefetching left out.
  func want(_ key: Key, _ priority: TaskPriority) {
    shared.withLock { $0.state.want(key, urgency: Int(priority.rawValue)) }
  }

  /// Somebody no longer asks for a key.
  func unwant(_ key: Key, _ priority: TaskPriority) {
    shared.withLock { $0.state.unwant(key, urgency: Int(priority.rawValue)) }
  }

  /// Waits for its turn; ``leave(_:)`` ends it.
  func enter(_ host: String, for key: Key) async throws {
    let id = shared.withLock { shared in
      shared.nextID += 1
      return shared.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        let result = shared.withLock { shared -> Result<Void, any Error>? in
          // Who is cancelled from here on is found in line: that needs the lock.
          if Task.isCancelled { return .failure(CancellationError()) }
          if shared.state.enter(host, id: id, for: key) { return .success(()) }
          shared.continuations[id] = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let continuation = shared.withLock { shared in
        shared.state.cancel(id, at: host)
        return shared.continuations.removeValue(forKey: id)
      }
      continuation?.resume(throwing: CancellationError())
    }
  }

  /// The turn has ended; the next one begins.
  func leave(_ host: String) {
    let next = shared.withLock { shared in
      shared.state.leave(host).flatMap { shared.continuations.removeValue(forKey: $0) }
    }
    next?.resume()
  }
}
