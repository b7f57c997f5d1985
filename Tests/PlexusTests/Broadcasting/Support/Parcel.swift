import TestSupport

/// A numbered element that says when it is released.
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

/// Counts the objects of a test that are still there.
final class Census: Sendable {
  private struct State {
    var living = 0
    var most = 0
    var waiting: [Int: (count: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
    var lastID = 0
  }

  private let state = Guarded(State())

  /// The objects that are there.
  var living: Int { state.withLock { $0.living } }

  /// The most that ever were there at once.
  var most: Int { state.withLock { $0.most } }

  /// Makes an object that is counted until it is released.
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

  /// Waits until no more objects are left than given, or the waiting task is cancelled.
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
