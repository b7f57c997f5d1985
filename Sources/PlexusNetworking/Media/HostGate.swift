internal import PlexusSupport

/// A limit of concurrent transfers for each host.
///
/// Transfers with callers precede prefetched ones, and have the priority of the most urgent caller.
final class HostGate<Key: Hashable & Sendable>: Sendable {
  /// A closure that changes the priority of a transfer.
  typealias Change = @Sendable (TaskPriority) -> Void

  private struct Shared: Sendable {
    var state: HostGateState<Key>
    var continuations: [Int: CheckedContinuation<Void, any Error>] = [:]
    var changes: [Key: [Int: Change]] = [:]
    var nextID = 0
  }

  private let shared: Locked<Shared>

  init(limit: Int) {
    shared = Locked(Shared(state: HostGateState(limit: limit)))
  }

  /// Adds a caller of a key; prefetching does not count.
  func want(_ key: Key, _ priority: TaskPriority) {
    let isMore = shared.withLock { $0.state.want(key, urgency: Int(priority.rawValue)) }
    if isMore { prioritize(key) }
  }

  /// Removes a caller of a key.
  func unwant(_ key: Key, _ priority: TaskPriority) {
    let isLess = shared.withLock { $0.state.unwant(key, urgency: Int(priority.rawValue)) }
    if isLess { prioritize(key) }
  }

  /// Adds a closure that is called with the priority of a key, at once and whenever that changes.
  ///
  /// - Returns: The identifier for ``removeChange(_:of:)``.
  func addChange(of key: Key, _ change: @escaping Change) -> Int {
    let id = shared.withLock { shared in
      shared.nextID += 1
      shared.changes[key, default: [:]][shared.nextID] = change
      return shared.nextID
    }
    prioritize(key)
    return id
  }

  /// Removes a closure.
  func removeChange(_ id: Int, of key: Key) {
    let removed = shared.withLock { shared in
      let removed = shared.changes[key]?.removeValue(forKey: id)
      if shared.changes[key]?.isEmpty == true { shared.changes[key] = nil }
      return removed
    }
    withExtendedLifetime(removed) {}
  }

  /// Waits for a turn, which ``leave(_:)`` ends.
  func enter(_ host: String, for key: Key) async throws {
    let id = shared.withLock { shared in
      shared.nextID += 1
      return shared.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        let result = shared.withLock { shared -> Result<Void, any Error>? in
          // A task that is cancelled from here on is found in the line: that needs the lock.
          if Task.isCancelled { return .failure(CancellationError()) }
          if shared.state.enter(host, id: id, for: key) { return .success(()) }
          shared.continuations[id] = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let continuation = shared.withLock { shared in
        shared.state.cancel(id)
        return shared.continuations.removeValue(forKey: id)
      }
      continuation?.resume(throwing: CancellationError())
    }
  }

  /// Ends a turn and begins the next one.
  func leave(_ host: String) {
    let next = shared.withLock { shared in
      shared.state.leave(host).flatMap { shared.continuations.removeValue(forKey: $0) }
    }
    next?.resume()
  }

  /// The highest urgency of a key among its callers; `nil` if it has none.
  func urgency(of key: Key) -> Int? { shared.withLock { $0.state.urgency(of: key) } }

  /// The number of transfers that wait for a turn.
  var waitingCount: Int { shared.withLock { $0.state.waitingCount } }

  /// Whether there are neither callers nor transfers.
  var isEmpty: Bool { shared.withLock { $0.state.isEmpty && $0.changes.isEmpty } }

  /// Passes the priority of a key to its transfers.
  ///
  /// Several threads can do that at once, each with the priority that it has read: the last one reads again.
  private func prioritize(_ key: Key) {
    var told: TaskPriority?
    while true {
      let (changes, urgency) = shared.withLock { shared in
        (shared.changes[key], shared.state.urgency(of: key))
      }
      // A key without callers is prefetched.
      let priority = urgency.map { TaskPriority(rawValue: UInt8($0)) } ?? .utility
      guard let changes, priority != told else { return }
      for change in changes.values { change(priority) }
      told = priority
    }
  }
}
