internal import Synchronization

extension EffectPool {
  /// A dispatched action with its effects, and the actions that these dispatch.
  @usableFromInline
  final class Dispatch: Sendable {
    /// The work that the caller belongs to, with which its effects continue, so that an effect that waits for itself
    /// fails instead of deadlocking.
    let flight = WaitScope.current

    private let running = Atomic<Int>(1)
    private let waiters = WaitList()

    init() {}

    /// Counts one more action or effect.
    @usableFromInline
    func enter() {
      running.add(1, ordering: .relaxed)
    }

    /// Counts the end of an action or effect.
    @usableFromInline
    func leave() {
      guard running.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
      waiters.finish()
    }

    /// Waits until everything has ended, or the calling task is cancelled.
    func wait() async {
      await waiters.wait()
    }
  }
}
