import Synchronization

/// The peer of a messenger: the continuations of `AsyncStream`s in a dictionary behind a lock.
final class RawFanOut<Element: Sendable>: Sendable {
  private struct State {
    var last = 0
    var continuations: [Int: AsyncStream<Element>.Continuation] = [:]
  }

  private let state = Mutex(State())

  func subscribe() -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream<Element>.makeStream()
    let id = state.withLock { state in
      state.last += 1
      state.continuations[state.last] = continuation
      return state.last
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.continuations.removeValue(forKey: id) }
    }
    return stream
  }

  func send(_ element: Element) {
    let continuations = state.withLock { $0.continuations }
    for continuation in continuations.values { continuation.yield(element) }
  }

  func finish() {
    let continuations = state.withLock { $0.continuations }
    for continuation in continuations.values { continuation.finish() }
  }
}
