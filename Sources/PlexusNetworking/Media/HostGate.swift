/// Lets so many transfers a host go on at once; those that somebody asks for go first.
final class HostGate<Key: Hashable & Sendable>: Sendable {
  private struct Waiter: Sendable {
    let id: Int
    let key: Key
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var running: [String: Int] = [:]
    var waiters: [String: [Waiter]] = [:]
    /// The priorities of those who ask for a key, prefetching left out.
    var demand: [Key: [TaskPriority]] = [:]
    var nextID = 0
  }

  private let limit: Int
  private let state = Locked(State())

  init(limit: Int) {
    self.limit = limit
  }

  /// Somebody asks for a key from now on.
  func want(_ key: Key, _ priority: TaskPriority) {
    state.withLock { $0.demand[key, default: []].append(priority) }
  }

  /// Somebody no longer asks for a key.
  func unwant(_ key: Key, _ priority: TaskPriority) {
    state.withLock { state in
      guard let index = state.demand[key]?.firstIndex(of: priority) else { return }
      state.demand[key]?.remove(at: index)
      if state.demand[key]?.isEmpty == true { state.demand[key] = nil }
    }
  }

  /// Waits for its turn; ``leave(_:)`` ends it.
  func enter(_ host: String, for key: Key) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        let result = state.withLock { state -> Result<Void, any Error>? in
          if Task.isCancelled { return .failure(CancellationError()) }
          if state.running[host, default: 0] < limit {
            state.running[host, default: 0] += 1
            return .success(())
          }
          state.waiters[host, default: []]
            .append(Waiter(id: id, key: key, continuation: continuation))
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let waiter = state.withLock { state -> Waiter? in
        guard let index = state.waiters[host]?.firstIndex(where: { $0.id == id }) else {
          return nil
        }
        return state.waiters[host]?.remove(at: index)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }

  /// The turn has ended: the next one is that of the highest demand, the first of these.
  func leave(_ host: String) {
    let next = state.withLock { state -> Waiter? in
      guard let waiters = state.waiters[host], !waiters.isEmpty else {
        state.running[host, default: 1] -= 1
        if state.running[host] == 0 { state.running[host] = nil }
        state.waiters[host] = nil
        return nil
      }
      var best = 0
      for index in waiters.indices where rank(waiters[index], state) > rank(waiters[best], state) {
        best = index
      }
      return state.waiters[host]?.remove(at: best)
    }
    next?.continuation.resume()
  }

  private func rank(_ waiter: Waiter, _ state: State) -> Int {
    state.demand[waiter.key]?.max().map { Int($0.rawValue) + 1 } ?? 0
  }
}
