/// What has happened in a test, in order, written from anywhere and awaited by count.
final class Log<Entry: Sendable>: Sendable {
  private struct State {
    var entries: [Entry] = []
    var waiting: [Int: (count: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
    var lastID = 0
  }

  private let state = Guarded(State())

  var entries: [Entry] { state.withLock { $0.entries } }

  var count: Int { entries.count }

  func append(_ entry: Entry) {
    let ready = state.withLock { state in
      state.entries.append(entry)
      let ready = state.waiting.filter { $0.value.count <= state.entries.count }
      for id in ready.keys { state.waiting[id] = nil }
      return ready
    }
    for waiter in ready.values { waiter.continuation.resume() }
  }

  /// Waits until there are as many entries, or the waiting task is cancelled.
  @discardableResult
  func first(_ count: Int) async -> [Entry] {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard state.entries.count < count, !Task.isCancelled else { return false }
          state.waiting[id] = (count, continuation)
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.continuation.resume()
    }
    return Array(entries.prefix(count))
  }
}
