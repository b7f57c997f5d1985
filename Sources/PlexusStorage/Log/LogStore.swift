// Unsafe: an actor returns its executor as an unowned reference. The actor keeps the executor alive.

internal import Plexus
internal import PlexusSupport

/// The on-disk part of ``JSONLogCacher``: a file of records that is only appended to or replaced.
///
/// Any number of instances and processes can use one file. Each write takes an exclusive lock on the file and
/// first reads the records that other instances have appended; if the file has been replaced, it opens the new
/// one. Reads do not wait for the lock: while another instance writes, they use the complete records.
final actor LogStore {
  /// An encoded entry to be written.
  struct Entry: Sendable {
    let key: String
    let storedAt: Duration
    let record: [UInt8]
    var generation: CacheGeneration?
    var tags: [CacheTag] = []
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
  /// The end of the last indexed record; 0 until the header has been read.
  var end = 0
  /// Whether the file's directory entry is durable.
  var isNamed = false
  /// Whether all indexed records are durable.
  var isSynchronized = false

  /// Opens a log or creates one; the first operation reads its content.
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

  /// The number of removals so far.
  nonisolated var generation: CacheGeneration { history.generation }

  // MARK: - Operations

  /// Returns the records of several keys, and the marks by which they are judged.
  func read(_ keys: Set<String>) throws -> (records: [String: LogRecord], marks: StoredMarks) {
    try catchUpForReading()
    var records: [String: LogRecord] = [:]
    for key in keys { records[key] = try record(of: key) }
    return (records, try records.isEmpty ? StoredMarks() : history.marks())
  }

  /// Records marks.
  func note(_ marks: [CacheMark], isDurable: Bool) async throws -> CacheGeneration {
    try await history.note(marks, isDurable: isDurable)
  }

  private func record(of key: String) throws -> LogRecord? {
    guard let place = index.places[key] else { return nil }
    let bytes = try fileSystem.read(file.descriptor, at: place.offset, count: place.byteCount)
    guard let record = LogRecord.decode(bytes), record.label.kind == .entry,
      record.label.key == key
    else { return nil }
    return record
  }

  /// Stores entries in order.
  ///
  /// - Returns: The errors of the keys that were not stored.
  func store(_ entries: [Entry]) async -> [String: any Error] {
    var failures: [String: any Error] = [:]
    var part: [Entry] = []
    var byteCount = 0
    // A large batch is written in parts, so other instances get the lock in between. Under a limit, the
    // first parts of a batch that exceeds it can be evicted to make room for the last ones.
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

  /// Removes the entries of several keys.
  ///
  /// A writer checks for removals while it holds the lock. A removal that is recorded after that check
  /// removes the written entry.
  func remove(_ keys: Set<String>) async throws {
    try await history.noting(keys.map { .key($0) }) {
      try await withLock {
        try catchUp()
        try removePresent(keys)
      }
    }
  }

  /// Removes the entries whose keys have a prefix.
  func remove(withPrefix prefix: String) async throws {
    try await history.noting([.prefix(prefix)]) {
      try await withLock {
        try catchUp()
        // Byte by byte: a mark at the beginning of a key would join the last character of the prefix.
        try removePresent(index.places.keys.filter { $0.utf8.starts(with: prefix.utf8) })
        try eraseRemains(isComplete: true)
      }
    }
  }

  /// Removes the bytes of removed entries from the file.
  ///
  /// - Parameter isComplete: Whether the bytes of replaced entries are removed, too.
  /// - Throws: The error because of which bytes may remain.
  func erase(isComplete: Bool) async throws {
    guard try fileSystem.status(atPath: path) != nil else { return }
    try await withLock {
      try catchUp()
      try eraseRemains(isComplete: isComplete)
    }
  }

  private func eraseRemains(isComplete: Bool) throws {
    // A process that was killed while it replaced the file has left a copy.
    _ = try fileSystem.remove(temporaryPath)
    let dead = end - header.count - index.liveByteCount
    guard index.hasRemovals || isComplete && dead > 0 else { return }
    do {
      try compact()
    } catch let error as StorageError where error.isLackOfSpace {
      // The file was compacted in place.
    }
  }

  private func removePresent(_ keys: some Sequence<String>) throws {
    let present = Set(keys.filter { index.places[$0] != nil })
    guard !present.isEmpty else {
      // Another process may have removed them without making the removal durable.
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

  /// Removes entries on a full disk: overwrites each record with a removal of the same length.
  private func removeInPlace(_ keys: Set<String>) throws {
    for key in keys {
      guard let place = index.places[key], let record = try record(of: key) else { continue }
      let removal = LogRecord.encode(removalInPlaceOf: record)
      try fileSystem.write(removal, to: file.descriptor, at: place.offset)
      isSynchronized = false
    }
    try synchronize()
  }

  /// Removes all entries, even if the file is damaged.
  func removeAll() async throws {
    try await history.noting([.everything]) {
      try await withLock {
        forget()
        do {
          try rewrite(dropping: [], adding: [])
        } catch let error as StorageError where error.isLackOfSpace {
          // Truncating frees space.
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
      try await withLock(isWriting: true) {
        try catchUp()
        let outdated = try history.outdated(
          part.compactMap { entry in
            entry.generation.map {
              RemovalHistory.Candidate(key: entry.key, generation: $0, tags: entry.tags)
            }
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

  /// Returns the keys to drop before a batch is written, including the keys of the batch.
  private func victims(for entries: [Entry], count: Int, limit: Int) -> Set<String> {
    let replaced = Set(entries.map(\.key))
    let replacedCount = replaced.reduce(0) { $0 + (index.places[$1]?.byteCount ?? 0) }
    // Evicting an eighth of a large file at once avoids a rewrite for each entry.
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
      // If this fails, too, a partial record is truncated later, and complete records count as stored.
      try? fileSystem.setLength(of: file.descriptor, to: end)
      throw error
    }
    end += bytes.count
  }

  /// Makes the content of the file and its directory entry durable.
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

  /// Locks the file that currently has the name and calls the body.
  ///
  /// Waiting for the lock suspends: other operations of this instance can run and open a new file.
  ///
  /// - Parameters:
  ///   - isWriting: Whether the body writes entries, which is done again if the folder vanishes meanwhile.
  ///   - body: The closure.
  /// - Throws: The error of the file system or of the body.
  private func withLock(isWriting: Bool = false, _ body: () throws -> Void) async throws {
    var pauses = 0
    var attempts = isWriting ? 3 : 1
    for _ in 0..<100 {
      while try !fileSystem.tryLock(file.descriptor, .exclusive) {
        guard pauses < 10_000 else { throw StorageError.locked(path: path) }
        pauses += 1
        await fileSystem.pause()
      }
      if try isCurrent() {
        defer { fileSystem.unlock(file.descriptor) }
        attempts -= 1
        do {
          try body()
        } catch let error as StorageError where error.isMissing && attempts > 0 {
          // The folder has vanished.
        }
        if try fileSystem.status(atPath: path)?.identity == file.identity { return }
        guard attempts > 0 else {
          if isWriting { throw vanished(path) }
          return
        }
      } else {
        fileSystem.unlock(file.descriptor)
      }
      try reopen()
    }
    throw StorageError.locked(path: path)
  }

  private func reopen() throws {
    forget()
    file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
  }

  /// Reads the records of other instances without waiting for a writer.
  private func catchUpForReading() throws {
    let status = try fileSystem.status(atPath: path)
    if end != 0, status?.identity == file.identity, status?.size == end { return }
    if status?.identity != file.identity { try reopen() }
    guard try fileSystem.tryLock(file.descriptor, .exclusive) else { return try catchUpUnlocked() }
    // The file has just been replaced. This lookup uses the content from before.
    guard try isCurrent() else {
      fileSystem.unlock(file.descriptor)
      try reopen()
      return try catchUpUnlocked()
    }
    defer { fileSystem.unlock(file.descriptor) }
    try catchUp()
  }

  /// Reads the complete records of a file that another instance has locked.
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

  /// Reads the records of other instances and truncates an incomplete write at the end.
  private func catchUp() throws {
    let size = try fileSystem.status(of: file.descriptor).size
    if size < end { forget() }
    if end == 0 {
      _ = try fileSystem.remove(temporaryPath)
      let found = try fileSystem.read(file.descriptor, at: 0, count: header.count)
      // The file is new, foreign or damaged.
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
