extension KeyedCache {
  /// Performs the pending removals, and writes the values that the cacher does not have.
  ///
  /// - Throws: A ``CacherError`` with the names of failed writes and removals, or the error of a complete removal, of a mark or
  ///   of erasing.
  @usableFromInline
  func flush() async throws {
    guard let storage else { return }
    let report = await synchronizeInOrder(flushing: true, erases: true)
    if !report.failedWrites.isEmpty { retryWriting() }
    var failures = storage.takeLosses()
    failures.merge(report.failedRemovals) { _, newer in newer }
    failures.merge(report.failedWrites) { _, newer in newer }
    if !failures.isEmpty { throw CacherError(failures: failures) }
    if let error = report.completeRemovalError ?? report.recordError { throw error }
  }

  /// Returns the closure that writes the changes when `WriteBehindTimer` calls it, and returns whether that succeeded; `nil`
  /// if the cache was released.
  ///
  /// Values that have left memory and could not be written are reported by the next flush.
  func makeWriting() -> @concurrent @Sendable () async -> Bool? {
    { [weak self] in
      guard let self else { return nil }
      let report = await synchronizeInOrder(flushing: true)
      let isComplete = report.failedWrites.isEmpty && report.hasRemoved && report.recordError == nil
      if !isComplete { retryWriting() }
      return isComplete
    }
  }

  private func retryWriting() {
    storage?.writeBehind?.noteFailure(in: self) { makeWriting() }
  }

  /// Removes the stored copies that are to be removed.
  ///
  /// - Parameters:
  ///   - names: The names whose failures are thrown; `nil` for all.
  ///   - tags: Whether values were cleared by tag, which other instances have to see.
  /// - Throws: The error because of which some copies can remain.
  @usableFromInline
  func removeStored(named names: Set<String>?, byTag tags: Bool = false) async throws {
    try await storage?.clearing { try await removePending(named: names, byTag: tags) }
  }

  private func removePending(named names: Set<String>?, byTag tags: Bool) async throws {
    let report = await synchronizeInOrder(flushing: false)
    if let error = report.completeRemovalError { throw error }
    if tags, let error = report.recordError { throw error }
    let failures =
      names.map { names in report.failedRemovals.filter { names.contains($0.key) } }
      ?? report.failedRemovals
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes copies and writes values in the queue of the storage, and waits for that.
  private func synchronizeInOrder(flushing: Bool, erases: Bool = false) async -> StorageReport {
    guard let storage else { return StorageReport() }
    let report = Locked(StorageReport())
    // Work that the cacher itself requests is not waited for.
    await storage.queue.perform { [self] in
      var new = await synchronize(flushing: flushing)
      if erases {
        do {
          try await storage.erase(isComplete: false)
        } catch {
          new.recordError = error
          reportCacherFailures([:], error)
        }
      }
      report.withLock { $0 = new }
    }
    return report.withLock { $0 }
  }

  /// Writes the marks, performs the pending removals, and then writes the values that have left memory.
  ///
  /// When flushing, the values in memory that the cacher does not have are written, too. Called in the queue of
  /// the storage.
  func synchronize(flushing: Bool) async -> StorageReport {
    guard let storage else { return StorageReport() }
    var synchronization = StorageSynchronization(cache: self, storage: storage)
    await synchronization.run(flushing: flushing)
    return synchronization.report
  }

  // MARK: - Marks

  /// Notes marks by which stored copies are judged.
  ///
  /// - Returns: The time up to which the copies are affected, of the last one.
  @discardableResult
  func note(_ marks: [CacheMark]) -> Duration? {
    guard let storage else { return nil }
    var isToBeWritten = false
    var time: Duration?
    for mark in marks {
      let noted = storage.note(mark)
      time = noted.time
      if noted.isToBeWritten { isToBeWritten = true }
    }
    if isToBeWritten { scheduleWriting() }
    return time
  }

  // MARK: - Failures

  /// Returns the errors of a cacher by name.
  func failures(in error: any Error, of names: [String]) -> [String: any Error] {
    var failures: [String: any Error] = [:]
    if let error = error as? CacherError {
      for name in names { failures[name] = error.failures[name] }
    }
    // An error that names none of them is about all of them.
    if failures.isEmpty { for name in names { failures[name] = error } }
    return failures
  }

  /// Counts the failures of a cacher, and sends them to the listeners.
  func reportCacherFailures(_ failures: [String: any Error], _ error: (any Error)? = nil) {
    shards.withLock(hash: 0) {
      $0.statistics.cacherErrors += failures.count + (error == nil ? 0 : 1)
    }
    for (name, error) in failures { tell(.cacherFailed(key: name, error: error)) }
    if let error { tell(.cacherFailed(key: nil, error: error)) }
  }
}
