internal import Plexus
internal import PlexusSupport

// MARK: - Reading for several callers at once

extension Tier {
  /// The entries that callers wait for, and that are read together.
  struct Readers: Sendable {
    typealias Reader = CheckedContinuation<TierEntry?, any Error>

    /// An entry that is read for one caller.
    struct Read: Sendable {
      let id: UInt64
      let wish: KeyedWish
      /// The priority of the caller.
      let priority: TaskPriority
    }

    /// Returns the priority of the most urgent caller.
    static func priority(of batch: [Read]) -> TaskPriority {
      batch.map(\.priority).max() ?? .medium
    }

    var queue = BatchQueueState<Read>()
    /// The callers that wait and have not left.
    var waiting: [UInt64: Reader] = [:]
    var lastID: UInt64 = 0

    /// Adds a caller, which has to wait unless its entry completes a batch.
    ///
    /// - Returns: The entries to read at once.
    mutating func add(_ read: Read, _ reader: Reader) -> [Read] {
      waiting[read.id] = reader
      if queue.begin() { return [read] }
      return queue.wait(read) { waiting[$0.id] == nil ? .drops : .takes }
    }

    /// Ends a batch.
    ///
    /// - Returns: The next one.
    mutating func next() -> [Read] {
      queue.next { waiting[$0.id] == nil ? .drops : .takes }
    }
  }

  /// Reads an entry, together with those of other callers that wait at the same time.
  ///
  /// It does not run on the actor of the caller, which can be busy while others wait for the end of its read.
  ///
  /// - Returns: The entry; `nil` as in ``read(for:)``.
  /// - Throws: An error of the connection; a `CancellationError` as soon as the task is cancelled.
  @concurrent
  func read(_ key: String, _ wish: SharedCache.Wish) async throws -> TierEntry? {
    let id = readers.withLock { readers -> UInt64? in
      guard !readers.queue.begin() else { return nil }
      readers.lastID += 1
      return readers.lastID
    }
    guard let id else {
      let result = await read(for: [(key, wish)])[0]
      // The next batch does not depend on this task, which can be cancelled.
      let next = endBatch(with: [result])
      if !next.isEmpty { readInTask(next) }
      return try result.get()
    }
    let read = Readers.Read(id: id, wish: (key, wish), priority: Task.currentPriority)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { reader in
        let batch = readers.withLock { $0.add(read, reader) }
        if !batch.isEmpty { readInTask(batch) }
        if Task.isCancelled { leave(id) }
      }
    } onCancel: {
      leave(id)
    }
  }

  private func leave(_ id: UInt64) {
    readers.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: CancellationError())
  }

  /// Reads a batch, and its successors, in a task that no caller can cancel.
  private func readInTask(_ first: [Readers.Read]) {
    let priority = Readers.priority(of: first)
    Task.detached(priority: priority) { [self] in
      var batch = first
      while !batch.isEmpty {
        if Readers.priority(of: batch) > priority { return readInTask(batch) }
        let results = await read(for: batch.map(\.wish))
        let next = endBatch(with: results)
        let callers = readers.withLock { readers in
          batch.map { readers.waiting.removeValue(forKey: $0.id) }
        }
        for (caller, result) in zip(callers, results) { caller?.resume(with: result) }
        batch = next
      }
    }
  }

  /// Ends a batch.
  ///
  /// Callers that wait behind a batch that the server has not answered in time fail with it: no caller waits longer for a
  /// server that hangs than a command does.
  ///
  /// - Returns: The next one.
  private func endBatch(with results: [Result<TierEntry?, any Error>]) -> [Readers.Read] {
    guard case .failure(let error as RedisConnectionError) = results.first, case .timedOut = error
    else { return readers.withLock { $0.next() } }
    let callers = readers.withLock { readers in
      let waiting = readers.queue.removeAll()
      _ = readers.next()
      return waiting.compactMap { readers.waiting.removeValue(forKey: $0.id) }
    }
    for caller in callers { caller.resume(throwing: error) }
    return []
  }
}
