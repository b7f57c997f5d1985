/// A value that can be set once and that one task can wait for.
final class OneShot<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiting: CheckedContinuation<Value, Never>?
  }

  private let state = Locked(State())

  /// Sets the value unless it has been set before.
  ///
  /// - Returns: Whether it was set by this call.
  @discardableResult
  func set(_ value: Value) -> Bool {
    let (isFirst, waiting) = state.withLock {
      state -> (Bool, CheckedContinuation<Value, Never>?) in
      guard state.value == nil else { return (false, nil) }
      state.value = value
      return (true, state.waiting.take())
    }
    waiting?.resume(returning: value)
    return isFirst
  }

  /// Waits until the value is set; must be called at most once.
  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let value = state.withLock { state in
        if state.value == nil { state.waiting = continuation }
        return state.value
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
