// Unsafe: an actor returns its executor as an unowned reference. The actor keeps the executor alive.

internal import Plexus

/// The on-disk part of ``JSONFileCacher``: a folder with a file for each entry.
///
/// Files are written under temporary names and renamed. Several instances and processes can use one folder:
/// a writer without a size limit holds a shared lock on it. A writer that may evict files, and an operation
/// that removes leftover files, hold an exclusive lock, so that no other instance writes meanwhile.
final actor EntryFolder {
  /// An encoded entry to be written.
  struct File: Sendable {
    let key: String
    let bytes: [UInt8]
    let storedAt: Duration
    var generation: CacheGeneration?
    var tags: [CacheTag] = []
  }

  private let path: String
  private let names: FileNames
  private let byteLimit: Int?
  private let fileSystem: any FileSystem
  private nonisolated let history: RemovalHistory
  private let executor = BlockingExecutor()
  private var isSwept = false

  init(path: String, names: FileNames, byteLimit: Int?, fileSystem: any FileSystem) {
    self.path = path
    self.names = names
    self.byteLimit = byteLimit
    self.fileSystem = fileSystem
    history = RemovalHistory(
      path: "\(path)/\(names.removals)",
      folder: path,
      fileSystem: fileSystem
    )
  }

  /// The number of removals so far.
  nonisolated var generation: CacheGeneration { history.generation }

  /// An identifier shared by all instances that use the same files.
  nonisolated var id: String { "\(path)/\(names.tag)" }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Returns the content of a key's file, and the marks by which it is judged.
  func read(_ key: String) throws -> (bytes: [UInt8], marks: StoredMarks)? {
    sweepOnce()
    guard let bytes = try fileSystem.contents(ofFile: path(ofKey: key)) else { return nil }
    return (bytes, try history.marks())
  }

  /// Records marks.
  func note(_ marks: [CacheMark], isDurable: Bool) async throws -> CacheGeneration {
    try await history.note(marks, isDurable: isDurable)
  }

  /// Returns the contents of the files of several keys, without unreadable ones, and the marks by which they are judged.
  func read(
    _ keys: Set<String>
  ) throws -> (contents: [String: [UInt8]], marks: StoredMarks) {
    sweepOnce()
    var contents: [String: [UInt8]] = [:]
    var firstError: (any Error)?
    for key in keys {
      do {
        contents[key] = try fileSystem.contents(ofFile: path(ofKey: key))
      } catch {
        firstError = firstError ?? error
      }
    }
    if contents.isEmpty, let firstError { throw firstError }
    return (contents, try contents.isEmpty ? StoredMarks() : history.marks())
  }

  /// Writes files in order.
  ///
  /// - Returns: The errors of the keys that were not stored.
  func write(_ files: [File]) async -> [String: any Error] {
    var failures: [String: any Error] = [:]
    // A large batch is written in parts, so other instances get the lock in between.
    let length = 64
    for start in stride(from: 0, to: files.count, by: length) {
      let part = files[start..<min(start + length, files.count)]
      do {
        if Task.isCancelled { throw CancellationError() }
        sweepOnce()
        failures.merge(try await writeAgain(part)) { first, _ in first }
      } catch {
        for file in part { failures[file.key] = error }
      }
    }
    return failures
  }

  /// Writes files, again if the folder has vanished during the write.
  private func writeAgain(_ files: ArraySlice<File>) async throws -> [String: any Error] {
    for _ in 0..<3 {
      var (failures, hasVanished): ([String: any Error], Bool) = ([:], false)
      do {
        (failures, hasVanished) = try await writePart(files)
      } catch let error as StorageError where error.isMissing {
        hasVanished = true
      }
      if !hasVanished { return failures }
    }
    throw vanished(path)
  }

  /// Removes the files of several keys.
  ///
  /// - Returns: The errors of the keys that were not removed.
  func remove(_ keys: Set<String>) async -> [String: any Error] {
    var failures: [String: any Error] = [:]
    do {
      try await history.noting(keys.map { .key($0) }) { removeFiles(of: keys, &failures) }
    } catch {
      for key in keys where failures[key] == nil { failures[key] = error }
    }
    return failures
  }

  private func removeFiles(of keys: Set<String>, _ failures: inout [String: any Error]) {
    for key in keys {
      do {
        _ = try fileSystem.remove(path(ofKey: key))
      } catch {
        failures[key] = error
      }
    }
    // An earlier call may have removed a file and then failed to make that durable.
    do {
      guard let folder = try fileSystem.open(path, .folder) else { return }
      defer { fileSystem.close(folder) }
      try fileSystem.synchronize(folder)
    } catch {
      for key in keys where failures[key] == nil { failures[key] = error }
    }
  }

  /// Removes the files of all keys, or the files that a predicate accepts, and all temporary files.
  ///
  /// - Parameters:
  ///   - prefix: The prefix to record in the removal history, or `nil` to record the removal of everything.
  ///   - accepts: A predicate on the content of an entry's file, or `nil` to remove all files.
  /// - Throws: The error of the file system if files may remain.
  func removeAll(
    withPrefix prefix: String? = nil,
    where accepts: (@Sendable ([UInt8]) -> Bool)? = nil
  ) async throws {
    let removal = prefix.map { RemovalHistory.Removal.prefix($0) } ?? .everything
    try await history.noting([removal]) { try await removeFiles(where: accepts) }
  }

  private func removeFiles(where accepts: (@Sendable ([UInt8]) -> Bool)?) async throws {
    guard let folder = try fileSystem.open(path, .folder) else { return }
    defer { fileSystem.close(folder) }
    // If a stalled writer keeps the lock, remove the files anyway.
    var firstError: (any Error)?
    do {
      try await fileSystem.lock(folder, .exclusive)
    } catch StorageError.locked {
    }
    for name in try fileSystem.names(inFolder: path) where isOurs(name) {
      do {
        if let accepts, names.isEntry(name),
          try fileSystem.status(atPath: path(of: name))?.isRegular == true,
          let bytes = try fileSystem.contents(ofFile: path(of: name)),
          !accepts(bytes)
        {
          continue
        }
        _ = try fileSystem.remove(path(of: name))
      } catch {
        firstError = firstError ?? error
      }
    }
    try fileSystem.synchronize(folder)
    if let firstError { throw firstError }
  }

  // MARK: - Writing

  /// Writes files.
  ///
  /// - Returns: The errors of the keys that were not stored, and whether the folder has vanished meanwhile.
  private func writePart(
    _ files: ArraySlice<File>
  ) async throws -> (failures: [String: any Error], hasVanished: Bool) {
    let folder = try fileSystem.openOrMakeFolder(path)
    defer { fileSystem.close(folder) }
    try await fileSystem.lock(folder, byteLimit == nil ? .shared : .exclusive)
    let identity = try fileSystem.status(atPath: path)?.identity
    var limit = try byteLimit.map {
      try SizeLimit(limit: $0, files: survey(), now: fileSystem.now())
    }
    var failures: [String: any Error] = [:]
    for file in files {
      do {
        try await write(file, limit: &limit)
      } catch {
        failures[file.key] = error
      }
    }
    do {
      try fileSystem.synchronize(folder)
    } catch {
      for file in files where failures[file.key] == nil { failures[file.key] = error }
    }
    let present = try fileSystem.status(atPath: path)?.identity
    return (failures, present == nil || present != identity)
  }

  private func write(_ file: File, limit: inout SizeLimit?) async throws {
    let name = names.file(forKey: file.key)
    if let limit = byteLimit, file.bytes.count > limit {
      throw StorageError.entryTooLarge(byteCount: file.bytes.count, limit: limit)
    }
    let temporary = path(of: names.temporary(.random(in: 0 ... .max)))
    do {
      try writeDurably(file, to: temporary)
      if let generation = file.generation {
        let candidate = RemovalHistory.Candidate(
          key: file.key,
          generation: generation,
          tags: file.tags
        )
        let isWritten = try await history.write(candidate) {
          try fileSystem.rename(temporary, to: path(of: name))
        }
        guard isWritten else {
          _ = try fileSystem.remove(temporary)
          return
        }
      } else {
        try fileSystem.rename(temporary, to: path(of: name))
      }
    } catch {
      _ = try? fileSystem.remove(temporary)
      throw error
    }
    // Evict only after the new file is in its place.
    for victim in limit?.victims(for: file.bytes.count, replacing: name) ?? [] {
      _ = try fileSystem.remove(path(of: victim))
      limit?.remove(victim)
    }
    limit?.insert(name, size: file.bytes.count, storedAt: file.storedAt)
  }

  private func writeDurably(_ file: File, to temporary: String) throws {
    guard let descriptor = try fileSystem.open(temporary, .creating) else {
      throw vanished(temporary)
    }
    defer { fileSystem.close(descriptor) }
    try fileSystem.write(file.bytes, to: descriptor, at: 0)
    // The modification time shows which entries are oldest without opening the files. File systems have a
    // limited range of times; two hundred years from 1970 are enough.
    let latest = Duration.seconds(200 * 365 * 86_400 as Int64)
    let time = min(max(file.storedAt, .zero), latest)
    try fileSystem.setModificationTime(of: descriptor, to: time)
    try fileSystem.synchronize(descriptor)
  }

  private func survey() throws -> [SizeLimit.File] {
    try fileSystem.names(inFolder: path).filter(names.isEntry).compactMap { name in
      guard let status = try fileSystem.status(atPath: path(of: name)) else { return nil }
      return SizeLimit.File(
        name: name,
        size: status.size,
        storedAt: status.modified,
        changed: status.changed
      )
    }
  }

  // MARK: - Names

  /// Removes the temporary files of killed processes, as far as no other instance is writing.
  func erase() throws {
    _ = try sweep()
  }

  /// Removes the temporary files of killed processes unless another instance holds the lock.
  ///
  /// A failure does not affect the current operation; the next one tries again.
  private func sweepOnce() {
    guard !isSwept else { return }
    isSwept = (try? sweep()) ?? false
  }

  private func sweep() throws -> Bool {
    guard let folder = try fileSystem.open(path, .folder) else { return false }
    defer { fileSystem.close(folder) }
    guard try fileSystem.tryLock(folder, .exclusive) else { return false }
    for name in try fileSystem.names(inFolder: path) where names.isTemporary(name) {
      _ = try fileSystem.remove(path(of: name))
    }
    return true
  }

  private func isOurs(_ name: String) -> Bool {
    names.isEntry(name) || names.isTemporary(name)
  }

  private func path(ofKey key: String) -> String { path(of: names.file(forKey: key)) }

  private func path(of name: String) -> String { "\(path)/\(name)" }
}
