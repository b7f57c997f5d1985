internal import Synchronization

/// What one dispatched action has set in motion: itself, its effects, and what they dispatch.
@usableFromInline
final class EffectScope: Sendable {
  /// For which flight the caller works, which its effects go on with: one that waits for itself is told
  /// so instead of hanging.
  let flight = WaitScope.current

  private let running = Atomic<Int>(1)
  private let waiters = WaitList()

  init() {}

  /// Counts one more action or effect.
  @usableFromInline
  func enter() {
    running.add(1, ordering: .relaxed)
  }

  /// An action or effect is over.
  @usableFromInline
  func leave() {
    guard running.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    waiters.finish()
  }

  /// Waits until everything is over, or the calling task is cancelled.
  func wait() async {
    await waiters.wait()
  }
}
