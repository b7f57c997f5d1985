// @unchecked Sendable because Swift requires it of a class with subclasses: the flags are atomic, and the
// subclasses guard their mutable fields with a lock.

internal import Synchronization

/// A registration that a token cancels.
@usableFromInline
class Registration: @unchecked Sendable {
  private static let cancelled: UInt8 = 1
  private static let over: UInt8 = 2

  private let flags = Atomic<UInt8>(0)

  /// Whether the registration was cancelled.
  final var isCancelled: Bool {
    flags.load(ordering: .acquiring) & Self.cancelled != 0
  }

  /// Whether the registration was cancelled, or its source has ended.
  final var isOver: Bool {
    flags.load(ordering: .acquiring) != 0
  }

  /// Cancels the registration.
  ///
  /// Every call marks the registration before it returns; the first one removes it.
  final func cancel() {
    if mark() { remove() }
  }

  /// Marks the registration as cancelled without removing it.
  ///
  /// - Returns: Whether this is the first call.
  final func mark() -> Bool {
    let (old, _) = flags.bitwiseOr(Self.cancelled, ordering: .acquiringAndReleasing)
    return old & Self.cancelled == 0
  }

  /// Marks the source as ended.
  final func end() {
    flags.bitwiseOr(Self.over, ordering: .releasing)
  }

  /// Removes the registration; called once, with no lock held.
  func remove() {}
}

extension Registration {
  /// A registration that is removed by a closure.
  final class Closure: Registration, @unchecked Sendable {
    /// The closure in a structure of its own.
    ///
    /// Where generic code is not specialized, a bare closure is wrapped once more each time that it is
    /// read; with enough of them the call overflows the stack.
    private struct Action: Sendable {
      let run: @Sendable () -> Void
    }

    private let action: Locked<Action?>

    init(_ run: @escaping @Sendable () -> Void) {
      action = Locked(Action(run: run))
    }

    override func remove() {
      action.withLock { $0.take() }?.run()
    }
  }
}
