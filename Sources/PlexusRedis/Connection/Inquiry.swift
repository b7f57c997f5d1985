internal import PlexusSupport

/// The wait of a thread for the result of an asynchronous function, which has no time limit.
///
/// An attempt whose time is over leaves the function running, and the next one takes its result. A call that does not end
/// is cancelled after some time, and the next attempt makes another one.
final class Inquiry<Value: Sendable>: Sendable {
  /// The reason why there is no value.
  struct Failure: Error {
    let reason: String
  }

  private struct State: Sendable {
    /// The call that is not over, or whose result was not taken.
    var task: Task<Void, Never>?
    /// The number of the last call, and the time of its begin.
    var number = 0
    var begin: Nanoseconds = 0
    var result: Result<Value, any Error>?
  }

  /// Wakes the thread.
  private let wake: WakePipe
  /// The time after which a call is given up.
  private let patience: Nanoseconds
  private let state = Locked(State())

  init(_ wake: WakePipe, patience: Duration = .seconds(30)) {
    self.wake = wake
    self.patience = Nanoseconds(patience)
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
    begin(function)
    while !isStopped() {
      let result = state.withLock { state in
        if state.result != nil { state.task = nil }
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

  /// Calls the function, unless there is a call that can still end.
  private func begin(_ function: @escaping @concurrent @Sendable () async throws -> Value) {
    let lost = state.withLock { state -> Task<Void, Never>? in
      let now = Nanoseconds.now
      let isOver = state.result == nil && now - state.begin >= patience
      guard state.task == nil || isOver else { return nil }
      defer {
        state.number += 1
        state.begin = now
        state.task = Task.detached { [self, number = state.number] in
          let result: Result<Value, any Error>
          do { result = .success(try await function()) } catch { result = .failure(error) }
          end(number, with: result)
        }
      }
      return state.task
    }
    lost?.cancel()
  }

  private func end(_ number: Int, with result: Result<Value, any Error>) {
    state.withLock { state in
      if number == state.number { state.result = result }
    }
    wake.wake()
  }
}
