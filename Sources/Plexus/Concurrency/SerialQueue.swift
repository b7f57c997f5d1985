internal import Synchronization

/// Runs asynchronous work one piece after the other, in the order in which it was given.
///
/// An actor would not do: it lets the next piece begin whenever one suspends.
final class SerialQueue: Sendable {
  /// A piece of work, as the tasks know it that belong to it.
  private final class Turn: Sendable {
    let queue: ObjectIdentifier
    /// A task that a piece of work leaves behind may wait for the next one.
    let isOver = Atomic<Bool>(false)

    init(of queue: SerialQueue) {
      self.queue = ObjectIdentifier(queue)
    }
  }

  /// The pieces of work that the current task belongs to.
  @TaskLocal private static var current: [Turn] = []

  private let last = Locked<Task<Void, Never>?>(nil)

  init() {}

  /// Whether the current task is part of a piece of work of this queue, which would wait for itself.
  var isCurrent: Bool {
    let queue = ObjectIdentifier(self)
    return Self.current.contains { $0.queue == queue && !$0.isOver.load(ordering: .acquiring) }
  }

  /// Runs work that belongs to no piece of work of any queue, though the current task may.
  static func outside(_ work: @concurrent @Sendable () async -> Void) async {
    await $current.withValue([]) { await work() }
  }

  /// Adds a piece of work, which runs to its end whether those who wait for it are cancelled or not.
  ///
  /// - Returns: The task that does it.
  @discardableResult
  func add(_ work: @escaping @concurrent @Sendable () async -> Void) -> Task<Void, Never> {
    let turn = Turn(of: self)
    let turns = Self.current.filter { !$0.isOver.load(ordering: .acquiring) } + [turn]
    let (task, previous) = last.withLock { last in
      let previous = last
      let task = Task.detached {
        await previous?.value
        await Self.$current.withValue(turns, operation: work)
        turn.isOver.store(true, ordering: .releasing)
      }
      last = task
      return (task, previous)
    }
    withExtendedLifetime(previous) {}
    return task
  }
}
