internal import PlexusSupport

extension Task where Failure == Never {
  /// Waits for the value for some time, or until the calling task is cancelled; this task continues.
  ///
  /// - Parameter limit: The time; `nil` for no limit.
  /// - Returns: `nil` if there is none yet.
  func value(within limit: Duration?) async -> Success? {
    let (end, result) = (Bell(), Locked<Success?>(nil))
    Task<Void, Never>.detached {
      let value = await value
      result.withLock { $0 = value }
      end.ring()
    }
    await end.wait(atMost: limit)
    return result.withLock { $0 }
  }
}

/// A signal that tasks wait for, optionally for a limited time.
final class Bell: Sendable {
  private struct State: Sendable {
    var isRung = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  /// Whether tasks wait.
  var isAwaited: Bool { state.withLock { !$0.waiting.isEmpty } }

  /// Resumes all waiting tasks, or the next task that waits if there is none.
  func ring() {
    let waiting = state.withLock { state in
      state.isRung = state.waiting.isEmpty
      defer { state.waiting = [] }
      return state.waiting
    }
    for task in waiting { task.resume() }
  }

  /// Waits until the bell rings, the time is over, or the task is cancelled.
  func wait(atMost limit: Duration?) async {
    let timer = limit.map { limit in
      Task.detached { [self] in
        if (try? await Task.sleep(for: limit)) != nil { ring() }
      }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          let isOver = state.isRung
          state.isRung = false
          if !isOver { state.waiting.append(continuation) }
          return isOver
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      ring()
    }
    timer?.cancel()
  }
}
