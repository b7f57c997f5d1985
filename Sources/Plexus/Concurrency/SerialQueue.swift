internal import Synchronization

/// A queue that runs asynchronous operations one at a time, in the order in which they were added.
///
/// An actor is not sufficient, because it is reentrant: it can begin the next operation while one is suspended.
final class SerialQueue: Sendable {
  /// An operation, carried as a task-local value by the tasks that belong to it.
  private final class Turn: Sendable {
    let queue: ObjectIdentifier
    /// Whether the operation has ended, so that a task that outlives it can wait for later operations.
    let isOver = Atomic<Bool>(false)

    init(of queue: SerialQueue) {
      self.queue = ObjectIdentifier(queue)
    }
  }

  /// The operations that the current task belongs to.
  @TaskLocal private static var current: [Turn] = []

  private let last = Locked<Task<Void, Never>?>(nil)

  init() {}

  /// Whether the current task belongs to a running operation of this queue, for which a wait would be a deadlock.
  var isCurrent: Bool {
    let queue = ObjectIdentifier(self)
    return Self.current.contains { $0.queue == queue && !$0.isOver.load(ordering: .acquiring) }
  }

  /// Runs an operation that belongs to no operation of any queue, even if the current task does.
  static func outside(_ work: @concurrent @Sendable () async -> Void) async {
    await $current.withValue([]) { await work() }
  }

  /// Adds an operation, which runs to its end even if the tasks that wait for it are cancelled.
  ///
  /// - Returns: The task that runs it.
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

  /// Adds an operation, and waits for its end.
  ///
  /// It keeps its own result: with optimization, Swift 6.3 compiles a generic operation that returns one wrongly, and callers
  /// got a structure of four words with other fields.
  ///
  /// If an operation of this queue asks, it is not waited for, because it begins after that one.
  func perform(_ work: @escaping @concurrent @Sendable () async -> Void) async {
    let task = add(work)
    if !isCurrent { await task.value }
  }
}
