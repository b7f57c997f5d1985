internal import Plexus
internal import PlexusSupport

/// The newest records of a stream, which a task reads at the pace of the open pages.
///
/// While no page is open, nothing runs: records wait in the buffer of the stream, which drops the oldest ones. At a beat,
/// the task reads for a few milliseconds, and then waits for the next beat.
final class Journal<Record: Sendable>: Sendable {
  /// The records to read at a beat, at most.
  private static var burst: Int { 1_000 }
  private static var patience: Duration { .milliseconds(10) }

  private let state: Locked<JournalState<Record>>
  private let number: @Sendable (Record) -> Int?
  private let isOpen: @Sendable (Record) -> Bool
  private let reading = Locked<Task<Void, Never>?>(nil)

  /// Creates an empty journal.
  ///
  /// - Parameters:
  ///   - capacity: The number of records.
  ///   - number: The number of a record in its log, if that counts them.
  ///   - isOpen: Whether a record can still change.
  init(
    capacity: Int,
    number: @escaping @Sendable (Record) -> Int? = { _ in nil },
    isOpen: @escaping @Sendable (Record) -> Bool = { _ in false }
  ) {
    state = Locked(JournalState(capacity: capacity))
    self.number = number
    self.isOpen = isOpen
  }

  deinit {
    stop()
  }

  /// Begins to read a stream.
  func read(_ stream: AsyncStream<Record>, pace: Pace) {
    let task = Task.detached(priority: .utility) { [weak self] in
      await pace.nextBeat()
      var (end, count) = (ContinuousClock.now + Self.patience, 0)
      for await record in stream {
        guard !Task.isCancelled, let self else { return }
        let now = ContinuousClock.now
        // What has waited since an unknown time has none.
        append(record, at: pace.isSettled ? wallClockTime().seconds : nil)
        count += 1
        guard count >= Self.burst || now >= end else { continue }
        await pace.nextBeat()
        (end, count) = (ContinuousClock.now + Self.patience, 0)
      }
    }
    reading.withLock { $0 = task }
  }

  /// Stops reading.
  func stop() {
    reading.withLock { $0.take() }?.cancel()
  }

  /// The number of records so far, and the number of recent ones among them.
  var counts: (all: Int, recent: Int) { state.withLock { ($0.count, $0.recentCount) } }

  /// Returns the records that are new or have changed since a revision, and the present revision.
  func changes(
    since revision: Int,
    limit: Int
  ) -> (items: [JournalState<Record>.Item], revision: Int) {
    let open = state.withLock { $0.items.filter(\.isOpen) }
    let settled = Set(open.lazy.filter { !self.isOpen($0.record) }.map(\.number))
    return state.withLock { state in
      state.settle(settled)
      return (state.changes(since: revision, limit: limit), state.revision)
    }
  }

  /// Returns all records that are kept, oldest first.
  var items: [JournalState<Record>.Item] { state.withLock { $0.items } }

  /// Returns the record with a number, if it is kept.
  func record(_ number: Int) -> Record? {
    state.withLock { $0.item(number)?.record }
  }

  private func append(_ record: Record, at time: Double?) {
    let (isOpen, number) = (isOpen(record), number(record))
    let dropped = state.withLock { $0.append(record, at: time, isOpen: isOpen, number: number) }
    withExtendedLifetime(dropped) {}
  }
}
