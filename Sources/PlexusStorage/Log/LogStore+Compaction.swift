extension LogStore {
  /// The path of a file that will replace the log.
  var temporaryPath: String { path + ".new" }

  /// Rewrites the file if it has more obsolete than live bytes.
  ///
  /// A failure does not fail the preceding operation; the next operation tries again.
  func compactIfWorthwhile() {
    let dead = end - header.count - index.liveByteCount
    guard dead > index.liveByteCount, end > 4096 else { return }
    // If it fails, the old file is still in place.
    try? compact()
  }

  /// Replaces the file by one with the live entries.
  func compact() throws {
    do {
      try rewrite(dropping: [], adding: [])
    } catch let error as StorageError where error.isLackOfSpace {
      try compactInPlace()
    }
  }

  /// Moves the live records to the beginning of the file and truncates it.
  ///
  /// This needs no disk space. An entry is overwritten before the later record that replaced or removed
  /// it, so a crash can lose entries but not restore removed ones.
  private func compactInPlace() throws {
    let survivors = index.places.sorted { $0.value.offset < $1.value.offset }
    var index = LogIndex()
    var end = header.count
    for (key, place) in survivors {
      let record = try fileSystem.read(file.descriptor, at: place.offset, count: place.byteCount)
      guard LogRecord.decode(record)?.label.key == key else { continue }
      if end != place.offset { try fileSystem.write(record, to: file.descriptor, at: end) }
      index.put(Entry(key: key, storedAt: place.storedAt, record: record), at: end)
      end += record.count
    }
    try fileSystem.synchronize(file.descriptor)
    try fileSystem.setLength(of: file.descriptor, to: end)
    try fileSystem.synchronize(file.descriptor)
    self.index = index
    self.end = end
    isSynchronized = true
    // Now there is room for a new file, which shows other instances that records have moved.
    try rewrite(dropping: [], adding: [])
  }

  /// Atomically replaces the file by one with the live entries and new ones.
  ///
  /// - Parameters:
  ///   - keys: The keys to leave out.
  ///   - entries: The new entries.
  /// - Throws: The error of the file system. The old file is then in place, or the new one is in place
  ///   without a durable name.
  func rewrite(dropping keys: Set<String>, adding entries: [Entry]) throws {
    _ = try fileSystem.remove(temporaryPath)
    guard let temporary = try fileSystem.open(temporaryPath, .creating) else {
      throw vanished(temporaryPath)
    }
    // Errors name the log, not the temporary file.
    let descriptor = Descriptor(number: temporary.number, path: path)
    do {
      let replacement = try OpenLog.adopt(descriptor, fileSystem: fileSystem)
      // Locked before other instances can open it.
      guard try fileSystem.tryLock(descriptor, .exclusive) else {
        throw StorageError.locked(path: path)
      }
      let (newIndex, newEnd) = try fill(replacement, dropping: keys, adding: entries)
      try fileSystem.synchronize(descriptor)
      try fileSystem.rename(temporaryPath, to: path)
      file = replacement
      index = newIndex
      end = newEnd
      isSynchronized = true
      isNamed = false
    } catch {
      _ = try? fileSystem.remove(temporaryPath)
      throw error
    }
    try fileSystem.synchronizeFolder(folder)
    isNamed = true
  }

  private func fill(
    _ replacement: OpenLog,
    dropping keys: Set<String>,
    adding entries: [Entry]
  ) throws -> (LogIndex, end: Int) {
    var index = LogIndex()
    var buffer = header
    var written = 0
    func add(_ entry: Entry) throws {
      index.put(entry, at: written + buffer.count)
      buffer += entry.record
      guard buffer.count >= 1 << 18 else { return }
      try fileSystem.write(buffer, to: replacement.descriptor, at: written)
      written += buffer.count
      buffer = []
    }
    let survivors = self.index.places.filter { !keys.contains($0.key) }
      .sorted { $0.value.offset < $1.value.offset }
    for (key, place) in survivors {
      let record = try fileSystem.read(file.descriptor, at: place.offset, count: place.byteCount)
      // An entry that has been damaged in the meantime is dropped.
      guard LogRecord.decode(record)?.label.key == key else { continue }
      try add(Entry(key: key, storedAt: place.storedAt, record: record))
    }
    for entry in entries { try add(entry) }
    try fileSystem.write(buffer, to: replacement.descriptor, at: written)
    return (index, written + buffer.count)
  }
}

extension LogIndex {
  /// Sets the position of an entry's key.
  mutating func put(_ entry: LogStore.Entry, at offset: Int) {
    put(
      entry.key,
      Place(offset: offset, byteCount: entry.record.count, storedAt: entry.storedAt)
    )
  }
}
