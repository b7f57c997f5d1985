// @unchecked Sendable because all fields are guarded by the lock of the hub or queue that parks the
// waiter, until it leaves the list of parked waiters: the thread that removes it from there owns the
// task alone and resumes it once, after unlocking. Unsafe because the library itself guarantees that;
// a checked continuation would allocate for it. Fields under a lock need no run-time check for
// exclusive access.

public import Synchronization

/// A task that can be parked until there is something to do.
@usableFromInline
@safe
class Waiter: @unchecked Sendable {
  /// The place in subscription order.
  @usableFromInline let id: Int
  /// The index in the list of parked waiters, or -1.
  @exclusivity(unchecked) @safe
  @usableFromInline var slot = -1
  /// Whether the waiter must never be parked again.
  @usableFromInline let isCancelled = Atomic<Bool>(false)
  /// The parked task.
  @exclusivity(unchecked) @safe
  @usableFromInline var task: SuspendedTask?

  @inlinable
  init(id: Int) {
    self.id = id
  }

  /// Takes the parked task out; called once, by the thread that removed the waiter from the list.
  @inlinable
  final func takeTask() -> Waiter.ParkedTask? {
    guard let parked = task else { return nil }
    task = nil
    return Waiter.ParkedTask(id: id, task: parked)
  }
}

extension Waiter {
  /// A task that was taken out of its waiter, to be resumed once.
  ///
  /// It does not retain its waiter: a subscription that is dropped while another thread resumes many tasks
  /// ends at once, not after the last of them.
  @usableFromInline
  struct ParkedTask: Sendable {
    /// The place in subscription order.
    @usableFromInline let id: Int
    @usableFromInline let task: SuspendedTask

    @inlinable
    init(id: Int, task: SuspendedTask) {
      self.id = id
      self.task = task
    }
  }
}

extension Waiter {
  /// The waiters that are parked in one place, with removal in constant time.
  @usableFromInline
  struct List: Sendable {
    @usableFromInline var waiters: ContiguousArray<Waiter> = []

    @inlinable
    init() {}

    @inlinable var isEmpty: Bool { waiters.isEmpty }

    /// Adds a waiter whose task has just been suspended.
    ///
    /// - Parameters:
    ///   - waiter: The waiter, not parked yet.
    ///   - task: Its task.
    @inlinable
    mutating func park(_ waiter: Waiter, task: SuspendedTask) {
      waiter.task = task
      waiter.slot = waiters.count
      waiters.append(waiter)
    }

    /// Removes a waiter, for the caller to resume.
    ///
    /// - Parameter waiter: The waiter, parked or not.
    /// - Returns: Whether it was parked.
    @inlinable
    mutating func remove(_ waiter: Waiter) -> Bool {
      let slot = waiter.slot
      guard slot >= 0 else { return false }
      waiter.slot = -1
      let last = waiters.removeLast()
      if last !== waiter {
        waiters[slot] = last
        last.slot = slot
      }
      return true
    }

    /// Removes and returns all tasks, in order of arrival, for the caller to resume.
    ///
    /// A parked task keeps its waiter alive, so no waiter is released here.
    @inlinable
    mutating func removeAll() -> ContiguousArray<Waiter.ParkedTask> {
      var taken: ContiguousArray<Waiter.ParkedTask> = []
      taken.reserveCapacity(waiters.count)
      var isSorted = true
      var last = Int.min
      for waiter in waiters {
        waiter.slot = -1
        guard let task = waiter.takeTask() else { continue }
        if task.id < last { isSorted = false }
        last = task.id
        taken.append(task)
      }
      waiters.removeAll(keepingCapacity: true)
      if !isSorted { taken.sort { $0.id < $1.id } }
      return taken
    }
  }
}
