// Unsafe: a checked continuation would allocate for each of many callers. A parked task is resumed exactly once,
// because the pure state returns it once, under the lock.

/// A list of callers that wait for one event and can leave early in constant time.
@usableFromInline
final class WaitList: Sendable {
  private let state = Locked(WaitListState<Parked>())

  init() {}

  /// Waits for the event or until the calling task is cancelled.
  func wait() async {
    let place = state.withLock { $0.join() }
    await withTaskCancellationHandler(
      operation: {
        await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
          let parked = unsafe Parked(continuation: continuation)
          let parking = state.withLock { $0.park(parked, in: place) }
          if parking != .parked { parked.resume() }
        }
      },
      onCancel: { state.withLock({ $0.leave(place).parked })?.resume() },
      isolation: #isolation
    )
  }

  /// Resumes all callers.
  func finish() {
    state.withLock({ $0.finish() }).each { $0.resume() }
  }

  @safe
  private struct Parked: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>

    init(continuation: UnsafeContinuation<Void, Never>) {
      unsafe self.continuation = continuation
    }

    func resume() {
      unsafe continuation.resume()
    }
  }
}
