// Unsafe code: an actor names its executor by an unowned reference; the actor keeps the executor.

internal import Plexus
internal import PlexusSupport

/// A file of records that is only ever appended to or replaced: what ``JSONLogCacher`` does on disk.
///
/// Any number of instances and processes may use one file. Each operation that writes holds an exclusive lock on the file, and first takes up what others have
/// appended; if they have replaced the file, it goes over to the new one. Reading an entry waits for no lock:
/// while another instance writes, it takes up the records that are whole.
final actor LogStore {
  /// An entry on its way to disk.
  struct Entry: Sendable {
    let key: String
    let storedAt: Duration
    let record: [UInt8]
    var generation: CacheGeneration?
  }

  let folder: String
  let path: String
  let header: [UInt8]
  let byteLimit: Int?
  let fileSystem: any FileSystem
  private nonisolated let history: RemovalHistory
  private let executor = BlockingExecutor()

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
    history = RemovalHistory(path: path + ".removals", folder: folder, fileSystem: fileSystem)
    file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// How much has been removed so far.
  nonisolated var generation: CacheGeneration { history.generation }

  // MARK: - Operations

  /// Returns the record of a key's entry.
  func read(_ key: String) throws -> LogRecord? {
    try catchUpForReading()
    return try record(of: key)
  }

  /// Returns the records of the entries of some keys.
  func read(_ keys: Set<String>) throws -> [String: LogRecord] {
    try catchUpForReading()
    var records: [String: LogRecord] = [:]
    for key in keys { records[key] = try record(of: key) }
    return records
  }

  private func record(of key: String) throws -> LogRecord? {
    guard let place = index.places[key] else { return nil }
    let bytes = try fileSystem.read(file.descriptor, at: place.offset, count: place.byteCount)
    guard let record = LogRecord.decode(bytes), record.label.kind == .entry,
      record.label.key == key
    else { return nil }
    return record
  }

  /// Stores entries, the first ones first.
  ///
  /// - Returns: Why which keys could not be stored.
  func store(_ entries: [Entry]) async -> [String: any Error] {
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
        failures.merge(await store(part: part)) { first, _ in first }
        part = []
        byteCount = 0
      }
      part.append(entry)
      byteCount += entry.record.count
    }
    return failures.merging(await store(part: part)) { first, _ in first }
  }

  /// Removes the entries of some keys.
  ///
  /// A writer has locked the log while it looks for removals: one that is noted too late for that removes the entry.
  func remove(_ keys: Set<String>) async throws {
    try await history.noting(keys.map { .key($0) }) {
      try await withLock {
        try catchUp()
        try removePresent(keys)
      }
    }
  }

  /// Removes the entries whose keys begin with some characters.
  func remove(withPrefix prefix: String) async throws {
    try await history.noting([.prefix(prefix)]) {
      try await withLock {
        try catchUp()
        // Byte by byte: a mark at the beginning of a key would join the last character of the prefix.
        try removePresent(index.places.keys.filter { $0.utf8.starts(with: prefix.utf8) })
      }
    }
  }

  private func removePresent(_ keys: some Sequence<String>) throws {
    let present = Set(keys.filter { index.places[$0] != nil })
    guard !present.isEmpty else {
      // Another process may have removed them and been killed before that was durable.
      return try synchronize()
    }
    var bytes: [UInt8] = []
    for key in present { bytes += LogRecord.encode(.removal, key: key) }
    bytes += LogRecord.encode(.seal, key: "")
    do {
      if let limit = byteLimit, end + bytes.count > limit {
        return try rewrite(dropping: present, adding: [])
      }
      try append(bytes)
    } catch let error as StorageError where error.isLackOfSpace {
      try removeInPlace(present)
    }
    for key in present { index.remove(key) }
    compactIfWorthwhile()
  }

  /// Removes entries without taking any space: their records become removals of the same length.
  private func removeInPlace(_ keys: Set<String>) throws {
    for key in keys {
      guard let place = index.places[key], let record = try record(of: key) else { continue }
      let removal = LogRecord.encode(removalInPlaceOf: record)
      try fileSystem.write(removal, to: file.descriptor, at: place.offset)
      isSynchronized = false
    }
    try synchronize()
  }

  /// Removes all entries, whatever state the file is in.
  func removeAll() async throws {
    try await history.noting([.everything]) {
      try await withLock {
        forget()
        do {
          try rewrite(dropping: [], adding: [])
        } catch let error as StorageError where error.isLackOfSpace {
          // What is cut off makes room.
          try fileSystem.setLength(of: file.descriptor, to: 0)
          try fileSystem.synchronize(file.descriptor)
          try rewrite(dropping: [], adding: [])
        }
      }
    }
  }

  // MARK: - Appending

  private func store(part: [Entry]) async -> [String: any Error] {
    guard !part.isEmpty else { return [:] }
    do {
      if Task.isCancelled { throw CancellationError() }
      try await withLock {
        try catchUp()
        let outdated = try history.outdated(
          part.compactMap { entry in
            entry.generation.map { RemovalHistory.Candidate(key: entry.key, generation: $0) }
          }
        )
        let rest = outdated.isEmpty ? part : part.filter { !outdated.contains($0.key) }
        if !rest.isEmpty { try append(rest) }
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
  ///
  /// Other operations of this instance run while it waits for the lock. They may open a new file.
  private func withLock(_ body: () throws -> Void) async throws {
    var pauses = 0
    for _ in 0..<100 {
      while try !fileSystem.tryLock(file.descriptor, .exclusive) {
        guard pauses < 10_000 else { throw StorageError.locked(path: path) }
        pauses += 1
        await fileSystem.pause()
      }
      if try isCurrent() {
        defer { fileSystem.unlock(file.descriptor) }
        return try body()
      }
      fileSystem.unlock(file.descriptor)
      try reopen()
    }
    throw StorageError.locked(path: path)
  }

  private func reopen() throws {
    forget()
    file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
  }

  /// Takes up what others have written, without waiting for one that is writing.
  private func catchUpForReading() throws {
    let status = try fileSystem.status(atPath: path)
    if end != 0, status?.identity == file.identity, status?.size == end { return }
    if status?.identity != file.identity { try reopen() }
    guard try fileSystem.tryLock(file.descriptor, .exclusive) else { return try catchUpUnlocked() }
    // It may have been replaced a moment ago: then this is what was there until then.
    guard try isCurrent() else {
      fileSystem.unlock(file.descriptor)
      try reopen()
      return try catchUpUnlocked()
    }
    defer { fileSystem.unlock(file.descriptor) }
    try catchUp()
  }

  /// Takes up the whole records of a file that another instance has locked.
  private func catchUpUnlocked() throws {
    let size = try fileSystem.status(of: file.descriptor).size
    if size < end { forget() }
    if end == 0 {
      let found = try fileSystem.read(file.descriptor, at: 0, count: header.count)
      guard found == header else { return }
      end = header.count
    }
    try scan(to: size, stopsAtDamage: true)
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
    try scan(to: size, stopsAtDamage: false)
    if end < size { try fileSystem.setLength(of: file.descriptor, to: end) }
  }

  private func scan(to size: Int, stopsAtDamage: Bool) throws {
    guard size > end else { return }
    isSynchronized = false
    do {
      let (fileSystem, descriptor) = (fileSystem, file.descriptor)
      var window = LogWindow(size: size) { offset, count in
        try fileSystem.read(descriptor, at: offset, count: count)
      }
      end = try index.scan(&window, from: end, stopsAtDamage: stopsAtDamage)
    } catch {
      forget()
      throw error
    }
  }

  private func forget() {
    index = LogIndex()
    end = 0
    isNamed = false
    isSynchronized = false
  }
}
