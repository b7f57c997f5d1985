internal import Plexus
internal import PlexusSupport

/// The timer of all transfers of a client, which sleeps until the first of their deadlines.
///
/// One sleeping task serves any number of transfers: creating and cancelling one for each transfer costs more than
/// the rest of a small transfer. It ends with the last transfer.
final class TransferTimer: Sendable {
  /// Checks a transfer at a deadline.
  ///
  /// - Parameter now: The time of the timer.
  /// - Returns: The next deadline; `nil` if there is none.
  typealias Check = @Sendable (_ now: Duration) -> Duration?

  private struct Entry: Sendable {
    let deadline: Duration
    let check: Check
  }

  private struct Sleeper: Sendable {
    let id: Int
    var deadline: Duration
    let task: Task<Void, Never>
  }

  private struct State: Sendable {
    var entries: [Int: Entry] = [:]
    var sleeper: Sleeper?
    var lastID = 0
  }

  private let clock: any ErasedClock
  private let state = Locked(State())

  init(clock: any Clock<Duration>) {
    self.clock = clock.erased()
  }

  /// The time since a fixed moment.
  var now: Duration { clock.now() }

  /// Adds a transfer.
  ///
  /// - Parameters:
  ///   - deadline: The time of the first check.
  ///   - check: The check, which is called on any thread.
  /// - Returns: The identifier for ``remove(_:)``.
  func add(deadline: Duration, _ check: @escaping Check) -> Int {
    let (id, old) = state.withLock { state in
      state.lastID += 1
      let id = state.lastID
      state.entries[id] = Entry(deadline: deadline, check: check)
      if let sleeper = state.sleeper, sleeper.deadline <= deadline {
        return (id, Task<Void, Never>?.none)
      }
      let old = state.sleeper?.task
      // The task finds itself in the state, so that it has to be there before the task begins.
      let task = Task.detached { [self] in await run(id) }
      state.sleeper = Sleeper(id: id, deadline: deadline, task: task)
      return (id, old)
    }
    old?.cancel()
    return id
  }

  /// Removes a transfer that has ended.
  func remove(_ id: Int) {
    let (entry, task) = state.withLock { state in
      let entry = state.entries.removeValue(forKey: id)
      return (entry, state.entries.isEmpty ? state.sleeper.take()?.task : nil)
    }
    withExtendedLifetime(entry) {}
    task?.cancel()
  }

  private func run(_ sleeper: Int) async {
    while let deadline = checkAll(sleeper) {
      guard await !clock.hasSlept(until: deadline) else { continue }
      // Another task has taken over, or the clock does not sleep: then the next transfer begins another task.
      state.withLock { state in
        if state.sleeper?.id == sleeper { state.sleeper = nil }
      }
      return
    }
  }

  /// Checks the transfers whose deadlines have come.
  ///
  /// - Returns: The next deadline; `nil` if there is none, or another task waits for it.
  private func checkAll(_ sleeper: Int) -> Duration? {
    let now = now
    let due = state.withLock { state in state.entries.filter { $0.value.deadline <= now } }
    for (id, entry) in due {
      let next = entry.check(now)
      state.withLock { state in
        guard state.entries[id] != nil else { return }
        state.entries[id] = next.map { Entry(deadline: $0, check: entry.check) }
      }
    }
    return state.withLock { state in
      guard state.sleeper?.id == sleeper else { return nil }
      guard let first = state.entries.values.lazy.map(\.deadline).min() else {
        state.sleeper = nil
        return nil
      }
      state.sleeper?.deadline = first
      return first
    }
  }
}
