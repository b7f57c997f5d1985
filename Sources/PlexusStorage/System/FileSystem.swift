/// The file system operations that storage needs; tests substitute implementations that fail or crash.
///
/// Every call that fails throws a ``StorageError``. Paths are absolute.
protocol FileSystem: Sendable {
  /// Creates a folder with access for its owner only; leaves an existing one unchanged.
  ///
  /// - Returns: Whether it was created.
  func makeFolder(_ path: String) throws -> Bool
  /// Opens a file or folder.
  ///
  /// - Returns: The descriptor, or `nil` if nothing exists at the path and the mode does not create it.
  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor?
  /// Closes a file or folder and releases its lock.
  func close(_ descriptor: Descriptor)
  /// Returns the status of an open file or folder.
  func status(of descriptor: Descriptor) throws -> FileStatus
  /// Returns the status of a file without following a symbolic link, or `nil` if there is none.
  func status(atPath path: String) throws -> FileStatus?
  /// Reads bytes; returns fewer than requested only at the end of the file.
  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8]
  /// Writes all bytes; if it throws, some of them may have been written.
  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws
  /// Truncates a file.
  func setLength(of descriptor: Descriptor, to length: Int) throws
  /// Sets the modification time, given as the time since 1970-01-01T00:00Z and not negative.
  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws
  /// Makes the content of a file, or the names in a folder, durable.
  func synchronize(_ descriptor: Descriptor) throws
  /// Renames a file within its folder and atomically replaces an existing file of that name.
  func rename(_ path: String, to newPath: String) throws
  /// Removes a file; a folder in its place stays.
  ///
  /// - Returns: Whether it existed.
  func remove(_ path: String) throws -> Bool
  /// Returns the names in a folder.
  func names(inFolder path: String) throws -> [String]
  /// Locks an open file or folder against other descriptors for it, in this and other processes.
  ///
  /// - Returns: `true` on success; `false` if the lock is held elsewhere.
  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool
  /// Releases a lock.
  func unlock(_ descriptor: Descriptor)
  /// Suspends for about a millisecond, even if the task is cancelled.
  func pause() async
  /// Returns the wall-clock time since 1970-01-01T00:00Z.
  func now() -> Duration
}

/// The access mode of a file or folder.
enum OpenMode: Sendable {
  /// Read-only.
  case reading
  /// Read and write; creates the file if necessary.
  case updating
  /// Read and write; fails if the file exists.
  case creating
  /// A folder.
  case folder
}

/// The kind of a lock.
enum LockKind: Sendable {
  case shared
  case exclusive
}

/// An open file or folder.
struct Descriptor: Hashable, Sendable {
  let number: Int32
  /// The path that was opened, for error messages.
  let path: String
}

/// The status of a file or folder.
struct FileStatus: Hashable, Sendable {
  /// The identity of a file, independent of its name.
  struct Identity: Hashable, Sendable {
    let device: UInt64
    let number: UInt64
  }

  var identity: Identity
  var isRegular: Bool
  var size: Int
  /// The modification time, which storage sets to the time of the entry.
  var modified: Duration
  /// The time of the last status change, which the system sets.
  var changed: Duration
}

extension FileSystem {
  /// Locks an open file or folder; waits about ten seconds for other holders.
  ///
  /// Other operations of the calling actor can run during the wait.
  ///
  /// - Throws: ``StorageError/locked(path:)`` if the lock is not released in time.
  func lock(_ descriptor: Descriptor, _ kind: LockKind) async throws {
    for _ in 0..<10_000 {
      if try tryLock(descriptor, kind) { return }
      await pause()
    }
    throw StorageError.locked(path: descriptor.path)
  }

  /// Creates a folder and its parents durably.
  func makeFolders(_ path: String) throws {
    guard try status(atPath: path) == nil else { return }
    let parent = parentPath(of: path)
    if parent != path { try makeFolders(parent) }
    if try makeFolder(path) { try synchronizeFolder(parent) }
  }

  /// Opens a folder; creates it if necessary.
  func openOrMakeFolder(_ path: String) throws -> Descriptor {
    if let descriptor = try open(path, .folder) { return descriptor }
    try makeFolders(path)
    guard let descriptor = try open(path, .folder) else { throw vanished(path) }
    return descriptor
  }

  /// Makes the names in a folder durable.
  func synchronizeFolder(_ path: String) throws {
    guard let descriptor = try open(path, .folder) else { throw vanished(path) }
    defer { close(descriptor) }
    try synchronize(descriptor)
  }

  /// Reads a regular file.
  ///
  /// - Returns: The content, or `nil` if there is no regular file at the path.
  func contents(ofFile path: String) throws -> [UInt8]? {
    guard let descriptor = try open(path, .reading) else { return nil }
    defer { close(descriptor) }
    let status = try status(of: descriptor)
    guard status.isRegular else { return nil }
    return try read(descriptor, at: 0, count: status.size)
  }

  private func parentPath(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return path }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
