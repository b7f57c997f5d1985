internal import PlexusSupport

/// A limit for the bytes of values that are sent at the same time: further values wait, in order.
///
/// A value waits here instead of in the outbox, so that its time begins when it is sent.
final class ByteGate: Sendable {
  private struct State: Sendable {
    var free: Int
    var waiting: [(bytes: Int, caller: CheckedContinuation<Void, Never>)] = []

    /// Takes the bytes of the callers for which there is room.
    mutating func admit() -> [CheckedContinuation<Void, Never>] {
      var count = 0
      for (bytes, _) in waiting {
        guard bytes <= free else { break }
        free -= bytes
        count += 1
      }
      defer { waiting.removeFirst(count) }
      return waiting.prefix(count).map(\.caller)
    }
  }

  private let capacity: Int
  private let state: Locked<State>

  /// - Parameter capacity: The number of bytes; a larger value goes alone.
  init(capacity: Int) {
    self.capacity = capacity
    state = Locked(State(free: capacity))
  }

  /// Performs an operation once there is room for its bytes.
  func run<Result: Sendable>(
    _ bytes: Int,
    _ operation: () async throws -> Result
  ) async rethrows -> Result {
    let bytes = min(bytes, capacity)
    await withCheckedContinuation { caller in
      let admitted = state.withLock { state in
        state.waiting.append((bytes, caller))
        return state.admit()
      }
      for caller in admitted { caller.resume() }
    }
    defer {
      let admitted = state.withLock { state in
        state.free += bytes
        return state.admit()
      }
      for caller in admitted { caller.resume() }
    }
    return try await operation()
  }
}
