// Unsafe code: an actor names its executor by an unowned reference; the actor keeps the executor.

internal import PlexusHashing

/// A file of records that is only ever appended to or replaced: what ``JSONLogCacher`` does on disk.
///
/// Any number of instances and processes may use one file. Each operation that writes, or finds that
/// others have written, holds an exclusive lock on the file, and first takes up what others have
/// appended; if they have replaced the file, it goes over to the new one. Reading an entry takes no lock
/// while nothing has changed.
final actor LogStore {
  /// An entry on its way to disk.
  struct Entry: Sendable {
    let key: String
    let storedAt: Duration
    let record: [UInt8]
  }

  let folder: String
  let path: String
  let header: [UInt8]
  let byteLimit: Int?
  let fileSystem: any FileSystem
  private let lane = StorageLane()

  var file: OpenLog
  var index = LogIndex()
  /// Where the last record that the index knows ends; 0 if the header was not looked at yet.
  var end = 0
  /// Whether the file's name is durable.
  var isNamed = false
  /// Whether all that the index knows is durable.
  var isSynchronized = false

  /// Opens a log, or creates one; what it holds is looked at by the first operation.
  init(
    folder: String,
    name: String,
    schema: String,
    byteLimit: Int?,
    fileSystem: any FileSystem
  ) throws {
    self.folder = folder
    path = "\(folder)/\(name)"
    header = Array("plexus log 1 \(SHA256.hexadecimalDigest(schema.utf8))\n".utf8)
    self.byteLimit = byteLimit
    self.fileSystem = fileSystem
    file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe lane.asUnownedSerialExecutor()
  }

  // MARK: - Operations

  /// Returns the record of a key's entry.
  func read(_ key: String) throws -> LogRecord? {
    let status = try fileSystem.status(atPath: path)
    if end == 0 || status?.identity != file.identity || status?.size != end {
      try withLock { try catchUp() }
    }
    guard let place = index.places[key] else { return nil }
    let bytes = try fileSystem.read(file.descriptor, at: place.offset, count: place.byteCount)
    guard let record = LogRecord.decode(bytes), record.label.key == key else { return nil }
    return record
  }

  /// Stores entries, the first ones first.
  ///
  /// - Returns: Why which keys could not be stored.
  func store(_ entries: [Entry]) -> [String: any Error] {
    var failures: [String: any Error] = [:]
    var part: [Entry] = []
    var byteCount = 0
    // A lock is held for a part of a large batch only, so that others get their turn; and under a
    // limit the first parts of a batch that exceeds it can make room for the last ones.
    let partLimit = min(1 << 20, (byteLimit ?? .max) / 4)
    for entry in entries {
      if let limit = byteLimit, header.count + entry.record.count > limit {
        failures[entry.key] = StorageError.entryTooLarge(
          byteCount: header.count + entry.record.count,
          limit: limit
        )
        continue
      }
      if byteCount + entry.record.count > partLimit {
        failures.merge(store(part: part)) { first, _ in first }
        part = []
        byteCount = 0
      }
      part.append(entry)
      byteCount += entry.record.count
    }
    return failures.merging(store(part: part)) { first, _ in first }
  }

  /// Removes the entries of some keys.
  func remove(_ keys: Set<String>) throws {
    try withLock {
      try catchUp()
      let present = keys.filter { index.places[$0] != nil }
      guard !present.isEmpty else {
        // Somebody may have removed them and been killed before that was durable.
        return try synchronize()
      }
      var bytes: [UInt8] = []
      for key in present { bytes += LogRecord.encode(.removal, key: key) }
      bytes += LogRecord.encode(.seal, key: "")
      if let limit = byteLimit, end + bytes.count > limit {
        return try rewrite(dropping: present, adding: [])
      }
      try append(bytes)
      for key in present { index.remove(key) }
      compactIfWorthwhile()
    }
  }

  /// Removes all entries, whatever state the file is in.
  func removeAll() throws {
    try withLock {
      forget()
      try rewrite(dropping: [], adding: [])
    }
  }

  // MARK: - Appending

  private func store(part: [Entry]) -> [String: any Error] {
    guard !part.isEmpty else { return [:] }
    do {
      if Task.isCancelled { throw CancellationError() }
      try withLock {
        try catchUp()
        try append(part)
      }
      return [:]
    } catch {
      return Dictionary(part.map { ($0.key, error) }) { first, _ in first }
    }
  }

  private func append(_ entries: [Entry]) throws {
    let count = entries.reduce(0) { $0 + $1.record.count }
    if let limit = byteLimit, end + count > limit {
      let victims = victims(for: entries, count: count, limit: limit)
      return try rewrite(dropping: victims, adding: entries)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for entry in entries { bytes += entry.record }
    var offset = end
    try append(bytes)
    for entry in entries {
      index.put(entry, at: offset)
      offset += entry.record.count
    }
    compactIfWorthwhile()
  }

  /// What must go before a batch is written, the entries that it replaces included.
  private func victims(for entries: [Entry], count: Int, limit: Int) -> Set<String> {
    let replaced = Set(entries.map(\.key))
    let replacedCount = replaced.reduce(0) { $0 + (index.places[$1]?.byteCount ?? 0) }
    // A large file is not rewritten for each entry: an eighth becomes free at once.
    let target = max(limit > 1 << 20 ? limit - limit / 8 : limit, header.count + count)
    let excess = header.count + index.liveByteCount - replacedCount + count - target
    let victims = index.victims(freeing: excess, besides: replaced, now: fileSystem.now())
    return replaced.union(victims)
  }

  private func append(_ bytes: [UInt8]) throws {
    do {
      try fileSystem.write(bytes, to: file.descriptor, at: end)
      isSynchronized = false
      try synchronize()
    } catch {
      // If this fails, too, what was written is a torn tail or, if whole, will be taken up as stored.
      try? fileSystem.setLength(of: file.descriptor, to: end)
      throw error
    }
    end += bytes.count
  }

  /// Returns when everything in the file, and its name, is durable.
  private func synchronize() throws {
    if !isSynchronized {
      try fileSystem.synchronize(file.descriptor)
      isSynchronized = true
    }
    if !isNamed {
      try fileSystem.synchronizeFolder(folder)
      isNamed = true
    }
  }

  // MARK: - Sharing the file

  /// Calls the body with the file locked that has the name at present.
  private func withLock(_ body: () throws -> Void) throws {
    for _ in 0..<100 {
      try fileSystem.lock(file.descriptor, .exclusive)
      if try isCurrent() {
        defer { fileSystem.unlock(file.descriptor) }
        return try body()
      }
      fileSystem.unlock(file.descriptor)
      forget()
      file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
    }
    throw StorageError.locked(path: path)
  }

  private func isCurrent() throws -> Bool {
    do {
      return try fileSystem.status(atPath: path)?.identity == file.identity
    } catch {
      fileSystem.unlock(file.descriptor)
      throw error
    }
  }

  /// Takes up what others have written, and cuts off what somebody could not write to its end.
  private func catchUp() throws {
    let size = try fileSystem.status(of: file.descriptor).size
    if size < end { forget() }
    if end == 0 {
      _ = try fileSystem.remove(temporaryPath)
      let found = try fileSystem.read(file.descriptor, at: 0, count: header.count)
      // New, foreign or damaged.
      guard found == header else { return try rewrite(dropping: [], adding: []) }
      end = header.count
    }
    guard size > end else { return }
    isSynchronized = false
    do {
      let (fileSystem, descriptor) = (fileSystem, file.descriptor)
      var window = LogWindow(size: size) { offset, count in
        try fileSystem.read(descriptor, at: offset, count: count)
      }
      end = try index.scan(&window, from: end)
    } catch {
      forget()
      throw error
    }
    if end < size { try fileSystem.setLength(of: file.descriptor, to: end) }
  }

  private func forget() {
    index = LogIndex()
    end = 0
    isNamed = false
    isSynchronized = false
  }
}
