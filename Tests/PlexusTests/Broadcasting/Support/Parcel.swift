import TestSupport

/// A numbered element that reports its release.
final class Parcel: Sendable {
  let number: Int
  private let onRelease: @Sendable () -> Void

  init(_ number: Int, onRelease: @escaping @Sendable () -> Void = {}) {
    self.number = number
    self.onRelease = onRelease
  }

  deinit {
    onRelease()
  }
}

/// Counts the living objects of a test.
final class Census: Sendable {
  private struct State {
    var living = 0
    var most = 0
    var waiting: [Int: (count: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
    var lastID = 0
  }

  private let state = Guarded(State())

  /// The number of living objects.
  var living: Int { state.withLock { $0.living } }

  /// The maximum number of objects that were alive at once.
  var most: Int { state.withLock { $0.most } }

  /// Creates an object that is counted until it is released.
  func parcel(_ number: Int = 0, onRelease: @escaping @Sendable () -> Void = {}) -> Parcel {
    state.withLock { state in
      state.living += 1
      state.most = max(state.most, state.living)
    }
    return Parcel(number) {
      onRelease()
      self.lose()
    }
  }

  /// Waits until at most a number of objects are left, or the waiting task is cancelled.
  func falls(to count: Int) async {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard state.living > count, !Task.isCancelled else { return false }
          state.waiting[id] = (count, continuation)
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.continuation.resume()
    }
  }

  private func lose() {
    let ready = state.withLock { state in
      state.living -= 1
      let ready = state.waiting.filter { $0.value.count >= state.living }
      for id in ready.keys { state.waiting[id] = nil }
      return ready
    }
    for waiter in ready.values { waiter.continuation.resume() }
  }
}
