internal import PlexusSupport

/// A limit for the bytes of values that are sent at the same time: further values wait, in order.
///
/// A value waits here instead of in the outbox, so that its time begins when it is sent. If the values that wait have
/// too many bytes, further ones are refused at once.
final class ByteGate: Sendable {
  private struct State: Sendable {
    var free: Int
    var waiting: [(room: Int, bytes: Int, caller: CheckedContinuation<Void, any Error>)] = []
    var waitingBytes = 0

    /// Takes the bytes of the callers for which there is room.
    mutating func admit() -> [CheckedContinuation<Void, any Error>] {
      var count = 0
      for (room, bytes, _) in waiting {
        guard room <= free else { break }
        free -= room
        waitingBytes -= bytes
        count += 1
      }
      defer { waiting.removeFirst(count) }
      return waiting.prefix(count).map(\.caller)
    }
  }

  private let capacity: Int
  private let waitingLimit: Int
  private let state: Locked<State>

  /// - Parameters:
  ///   - capacity: The number of bytes; a larger value goes alone.
  ///   - waitingLimit: The largest number of bytes that wait; a single larger value waits, too.
  init(capacity: Int, waitingLimit: Int = .max) {
    self.capacity = capacity
    self.waitingLimit = waitingLimit
    state = Locked(State(free: capacity))
  }

  /// Performs an operation once there is room for its bytes.
  ///
  /// - Throws: The error of the operation; ``RedisConnectionError/outboxFull(bytes:waiting:limit:)`` if too many bytes wait.
  func run<Result: Sendable>(
    _ bytes: Int,
    _ operation: () async throws -> Result
  ) async throws -> Result {
    let room = min(bytes, capacity)
    try await withCheckedThrowingContinuation { caller in
      var refusal: RedisConnectionError?
      let admitted = state.withLock { state -> [CheckedContinuation<Void, any Error>] in
        guard state.waiting.isEmpty || bytes <= waitingLimit - state.waitingBytes else {
          refusal = .outboxFull(bytes: bytes, waiting: state.waitingBytes, limit: waitingLimit)
          return []
        }
        state.waiting.append((room, bytes, caller))
        state.waitingBytes += bytes
        return state.admit()
      }
      if let refusal { caller.resume(throwing: refusal) }
      for caller in admitted { caller.resume() }
    }
    defer {
      let admitted = state.withLock { state in
        state.free += room
        return state.admit()
      }
      for caller in admitted { caller.resume() }
    }
    return try await operation()
  }
}
