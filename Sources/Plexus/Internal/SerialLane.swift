internal import Synchronization

/// Runs asynchronous work one piece after the other, in the order in which it was given.
///
/// An actor would not do: it lets the next piece begin whenever one suspends.
final class SerialLane: Sendable {
  /// The lanes whose work the current task belongs to.
  @TaskLocal private static var current: [ObjectIdentifier] = []

  private let last = Locked<Task<Void, Never>?>(nil)

  init() {}

  /// Whether the current task is part of a piece of work of this lane, which would wait for itself.
  var isCurrent: Bool { Self.current.contains(ObjectIdentifier(self)) }

  /// Adds a piece of work, which runs to its end whether those who wait for it are cancelled or not.
  ///
  /// - Returns: The task that does it.
  @discardableResult
  func add(_ work: @escaping @concurrent @Sendable () async -> Void) -> Task<Void, Never> {
    let lanes = Self.current + [ObjectIdentifier(self)]
    let (task, previous) = last.withLock { last in
      let previous = last
      let task = Task.detached {
        await previous?.value
        await Self.$current.withValue(lanes, operation: work)
      }
      last = task
      return (task, previous)
    }
    withExtendedLifetime(previous) {}
    return task
  }
}
