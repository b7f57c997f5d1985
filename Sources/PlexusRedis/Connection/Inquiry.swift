internal import PlexusSupport

/// The wait of a thread for the result of an asynchronous function, which has no time limit.
///
/// An attempt whose time is over leaves the function running, and the next one takes its result.
final class Inquiry<Value: Sendable>: Sendable {
  /// The reason why there is no value.
  struct Failure: Error {
    let reason: String
  }

  private struct State: Sendable {
    var isRunning = false
    var result: Result<Value, any Error>?
  }

  /// Wakes the thread.
  private let wake: WakePipe
  private let state = Locked(State())

  init(_ wake: WakePipe) {
    self.wake = wake
  }

  /// Returns the result of a function, which is the same at each call.
  ///
  /// - Parameters:
  ///   - deadline: The time at which to give up.
  ///   - function: The function.
  ///   - isStopped: Called between waits of at most 50 milliseconds.
  /// - Returns: The result.
  /// - Throws: The reason why there is none.
  func value(
    until deadline: Nanoseconds,
    of function: @escaping @concurrent @Sendable () async throws -> Value,
    isStopped: () -> Bool
  ) throws(Failure) -> Value {
    let begins = state.withLock { state in
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if begins {
      Task.detached { [state, wake] in
        let result: Result<Value, any Error>
        do { result = .success(try await function()) } catch { result = .failure(error) }
        state.withLock { $0.result = result }
        wake.wake()
      }
    }
    while !isStopped() {
      let result = state.withLock { state in
        if state.result != nil { state.isRunning = false }
        return state.result.take()
      }
      switch result {
      case .success(let value)?: return value
      case .failure(let error)?: throw Failure(reason: "they failed with \(error)")
      case nil: break
      }
      let remaining = deadline - .now
      guard remaining > 0 else { throw Failure(reason: "they did not come in time") }
      wake.wait(atMost: remaining)
    }
    throw Failure(reason: "the connection is closed")
  }
}
