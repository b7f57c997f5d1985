// @unchecked Sendable because effects belong to one thread: the one whose change created them.

/// The work that a change leaves, to be done once, with no lock held.
///
/// Resuming tasks, ending reports and releasing objects can run user code. Most changes leave one task or nothing,
/// which needs no allocation.
@usableFromInline
struct HubEffects: Sendable {
  /// A parked task to resume; further ones are in ``woken``.
  @usableFromInline var first: Waiter.ParkedTask?
  /// The parked tasks to resume, apart from ``first``, if there are any.
  @usableFromInline var woken: ContiguousArray<Waiter.ParkedTask>?
  /// The first object to release, mostly a chunk of a log or an element.
  @usableFromInline var released: (any AnyObject & Sendable)?
  /// The work that few changes leave.
  @usableFromInline var more: More?

  @inlinable
  init() {}

  /// The work that few changes leave.
  struct Work: Sendable {
    /// The queues whose task this thread starts, or whose handlers it calls.
    var queues: ContiguousArray<HandlerQueue> = []
    /// The elements that no handler gets anymore.
    var discarded: ContiguousArray<HandlerQueue.Item> = []
    /// Whether elements that were not handled have been taken back.
    var takesBack = false
    /// Elements that every reader has read.
    var read: ContiguousArray<any LogBase.Retired> = []
    /// Values to release.
    var garbage: ContiguousArray<any Sendable> = []
    /// Closures that are called after that, in order.
    var steps: ContiguousArray<@Sendable () -> Void> = []
  }

  @usableFromInline
  final class More: @unchecked Sendable {
    @exclusivity(unchecked) @safe
    var work = Work()
  }

  /// Changes the work that few changes leave.
  mutating func add(_ body: (inout Work) -> Void) {
    let more = more ?? More()
    body(&more.work)
    self.more = more
  }

  /// Adds a task to resume.
  @inlinable
  mutating func wake(_ task: Waiter.ParkedTask?) {
    guard let task else { return }
    if woken != nil {
      woken?.append(task)
    } else if first == nil {
      first = task
    } else {
      woken = [task]
    }
  }

  /// Adds tasks to resume.
  @inlinable
  mutating func wake(_ tasks: ContiguousArray<Waiter.ParkedTask>) {
    guard !tasks.isEmpty else { return }
    if tasks.count == 1, first == nil, woken == nil {
      first = tasks[0]
    } else if woken == nil {
      woken = tasks
    } else {
      woken? += tasks
    }
  }

  /// Releases an object once the work is done.
  @inlinable
  mutating func release(_ object: (any AnyObject & Sendable)?) {
    guard let object else { return }
    if released == nil { released = object } else { release(value: object) }
  }

  /// Releases a value once the work is done.
  @usableFromInline
  mutating func release(value: some Sendable) {
    add { $0.garbage.append(value) }
  }

  /// Releases elements once the work is done.
  @usableFromInline
  mutating func release(elements: ContiguousArray<AnyBox>) {
    guard let first = elements.first else { return }
    if elements.count == 1 { release(first) } else { release(value: elements) }
  }

  /// Calls a closure after the tasks have been resumed and the reports ended.
  mutating func then(_ step: @escaping @Sendable () -> Void) {
    add { $0.steps.append(step) }
  }

  /// Adds the work that another change has left.
  @usableFromInline
  mutating func add(_ other: HubEffects) {
    wake(other.first)
    if let woken = other.woken { wake(woken) }
    release(other.released)
    guard let work = other.more?.work else { return }
    add { all in
      all.queues += work.queues
      all.discarded += work.discarded
      all.takesBack = all.takesBack || work.takesBack
      all.read += work.read
      all.garbage += work.garbage
      all.steps += work.steps
    }
  }

  /// The tasks to resume, in subscription order.
  @usableFromInline var tasks: ContiguousArray<Waiter.ParkedTask> {
    var tasks = woken ?? []
    if let first { tasks.append(first) }
    let isSorted = zip(tasks, tasks.dropFirst()).allSatisfy { $0.id <= $1.id }
    if !isSorted { tasks.sort { $0.id < $1.id } }
    return tasks
  }

  /// Does the work.
  @inlinable
  func perform() {
    if more != nil || woken != nil { performAll() } else { first?.task.resume() }
    withExtendedLifetime(released) {}
  }

  @usableFromInline
  func performAll() {
    let tasks = tasks
    guard let work = more?.work else {
      for task in tasks { task.task.resume() }
      return
    }
    // Tasks before a queue in subscription order are resumed before its task.
    var next = 0
    for queue in work.queues where queue.direct == nil {
      while next < tasks.count, tasks[next].id < queue.id {
        tasks[next].task.resume()
        next += 1
      }
      queue.attend()
    }
    for task in tasks[next...] { task.task.resume() }
    for item in work.discarded { item.report?.end(notified: 0, handled: 0) }
    for queue in work.queues where queue.direct != nil {
      if work.takesBack { queue.direct?.takeBack(in: queue) }
      queue.attend()
    }
    for part in work.read { part.release() }
    for step in work.steps { step() }
  }
}
