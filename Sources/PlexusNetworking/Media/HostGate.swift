internal import PlexusSupport

/// Lets so many transfers a host go on at once; those that somebody asks for go first, and are told how
/// urgent they are.
final class HostGate<Key: Hashable & Sendable>: Sendable {
  /// What changes the priority of a transfer.
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

  /// Somebody asks for a key from now on, prefetching left out.
  func want(_ key: Key, _ priority: TaskPriority) {
    let isMore = shared.withLock { $0.state.want(key, urgency: Int(priority.rawValue)) }
    if isMore { prioritize(key) }
  }

  /// Somebody no longer asks for a key.
  func unwant(_ key: Key, _ priority: TaskPriority) {
    let isLess = shared.withLock { $0.state.unwant(key, urgency: Int(priority.rawValue)) }
    if isLess { prioritize(key) }
  }

  /// Tells how urgent a key is, now and whenever that changes.
  ///
  /// - Returns: The name for ``removeChange(_:of:)``.
  func addChange(of key: Key, _ change: @escaping Change) -> Int {
    let id = shared.withLock { shared in
      shared.nextID += 1
      shared.changes[key, default: [:]][shared.nextID] = change
      return shared.nextID
    }
    prioritize(key)
    return id
  }

  /// Tells no more.
  func removeChange(_ id: Int, of key: Key) {
    let removed = shared.withLock { shared in
      let removed = shared.changes[key]?.removeValue(forKey: id)
      if shared.changes[key]?.isEmpty == true { shared.changes[key] = nil }
      return removed
    }
    withExtendedLifetime(removed) {}
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
        shared.state.cancel(id)
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

  /// How urgent a key is to those who ask for it; `nil` if nobody does.
  func urgency(of key: Key) -> Int? { shared.withLock { $0.state.urgency(of: key) } }

  /// How many wait for their turn.
  var waitingCount: Int { shared.withLock { $0.state.waitingCount } }

  /// Whether nobody is known.
  var isEmpty: Bool { shared.withLock { $0.state.isEmpty && $0.changes.isEmpty } }

  /// Tells the transfers of a key how urgent it is.
  ///
  /// Several threads may come here at once, each with what it has found: the last one to tell looks again.
  private func prioritize(_ key: Key) {
    var told: TaskPriority?
    while true {
      let (changes, urgency) = shared.withLock { shared in
        (shared.changes[key], shared.state.urgency(of: key))
      }
      // What nobody has requested is prefetched.
      let priority = urgency.map { TaskPriority(rawValue: UInt8($0)) } ?? .utility
      guard let changes, priority != told else { return }
      for change in changes.values { change(priority) }
      told = priority
    }
  }
}
