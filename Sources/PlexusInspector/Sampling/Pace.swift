internal import PlexusSupport

/// The pace at which logs are read: a beat at a time, while a page is open.
final class Pace: Sendable {
  private struct State: Sendable {
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    var lastWaiter = 0
    /// The number of beats since a page was opened after there was none.
    var beatCount = 0
    var isEnded = false
  }

  private let state = Locked(State())

  /// Waits for the next beat, until the pace has ended, or until the task is cancelled.
  func nextBeat() async {
    let id = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          guard !state.isEnded, !Task.isCancelled else { return false }
          state.waiters[id] = continuation
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }

  /// Resumes the tasks that wait for a beat.
  ///
  /// - Parameter isFirst: Whether there was no open page before.
  func beat(isFirst: Bool) {
    resume { $0.beatCount = isFirst ? 1 : $0.beatCount + 1 }
  }

  /// Whether the records that are read have been made recently: not at the first two beats, at which the records are read
  /// that have waited for a page.
  var isSettled: Bool { state.withLock { $0.beatCount > 2 } }

  /// Ends the pace: no task waits any longer.
  func end() {
    resume { $0.isEnded = true }
  }

  private func resume(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }
}
