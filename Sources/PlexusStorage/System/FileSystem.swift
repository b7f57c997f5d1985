/// What storage needs of the system: the seam at which tests let calls fail and computers stop.
///
/// Every call that fails throws a ``StorageError``. Paths are absolute.
protocol FileSystem: Sendable {
  /// Creates a folder that only its owner can use; one that exists stays as it is.
  ///
  /// - Returns: Whether it was created.
  func makeFolder(_ path: String) throws -> Bool
  /// Opens a file or folder.
  ///
  /// - Returns: `nil` if there is none and the mode does not create it.
  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor?
  /// Closes a file or folder, which also gives up its lock.
  func close(_ descriptor: Descriptor)
  /// Returns what is known of an open file or folder.
  func status(of descriptor: Descriptor) throws -> FileStatus
  /// Returns what is known of a file, without following a symbolic link; `nil` if there is none.
  func status(atPath path: String) throws -> FileStatus?
  /// Reads bytes; fewer than asked for only at the end of the file.
  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8]
  /// Writes all bytes, or throws and may have written some of them.
  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws
  /// Cuts a file.
  func setLength(of descriptor: Descriptor, to length: Int) throws
  /// Sets the time of last modification, since 1970-01-01T00:00Z and not before.
  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws
  /// Returns when everything written to a file, or every change of a folder's names, is durable.
  func synchronize(_ descriptor: Descriptor) throws
  /// Gives a file another name in the same folder, in place of the file that has it, as one step.
  func rename(_ path: String, to newPath: String) throws
  /// Removes a file; a folder in its place stays.
  ///
  /// - Returns: Whether there was one.
  func remove(_ path: String) throws -> Bool
  /// Returns the names in a folder.
  func names(inFolder path: String) throws -> [String]
  /// Locks an open file or folder against other openings of it, in this and other processes.
  ///
  /// - Returns: Whether it is locked; `false` if another has locked it.
  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool
  /// Gives up a lock.
  func unlock(_ descriptor: Descriptor)
  /// Suspends for about a millisecond, also if the task is cancelled.
  func pause() async
  /// The wall clock: the time since 1970-01-01T00:00Z.
  func now() -> Duration
}

/// How a file or folder is opened.
enum OpenMode: Sendable {
  /// To be read.
  case reading
  /// To be read and written; created if there is none.
  case updating
  /// To be read and written; it fails if there is one.
  case creating
  /// A folder.
  case folder
}

/// Whether a lock admits others of its kind.
enum LockKind: Sendable {
  case shared
  case exclusive
}

/// An open file or folder.
struct Descriptor: Hashable, Sendable {
  let number: Int32
  /// The path at which it was opened, for errors.
  let path: String
}

/// What is known of a file or folder.
struct FileStatus: Hashable, Sendable {
  /// What tells two files apart, whatever they are called.
  struct Identity: Hashable, Sendable {
    let device: UInt64
    let number: UInt64
  }

  var identity: Identity
  var isRegular: Bool
  var size: Int
  /// The time of last modification, which storage sets to the time of the entry.
  var modified: Duration
  /// The time at which anything of the file was last changed, which nobody can set.
  var changed: Duration
}

extension FileSystem {
  /// Locks an open file or folder, waiting for others up to about ten seconds.
  ///
  /// Other operations of the calling actor run meanwhile.
  ///
  /// - Throws: ``StorageError/locked(path:)`` if they do not give it up.
  func lock(_ descriptor: Descriptor, _ kind: LockKind) async throws {
    for _ in 0..<10_000 {
      if try tryLock(descriptor, kind) { return }
      await pause()
    }
    throw StorageError.locked(path: descriptor.path)
  }

  /// Creates a folder and those above it, durably.
  func makeFolders(_ path: String) throws {
    guard try status(atPath: path) == nil else { return }
    let parent = parentPath(of: path)
    if parent != path { try makeFolders(parent) }
    if try makeFolder(path) { try synchronizeFolder(parent) }
  }

  /// Opens a folder, creating it if there is none.
  func openOrMakeFolder(_ path: String) throws -> Descriptor {
    if let descriptor = try open(path, .folder) { return descriptor }
    try makeFolders(path)
    guard let descriptor = try open(path, .folder) else { throw vanished(path) }
    return descriptor
  }

  /// Returns when every change of a folder's names is durable.
  func synchronizeFolder(_ path: String) throws {
    guard let descriptor = try open(path, .folder) else { throw vanished(path) }
    defer { close(descriptor) }
    try synchronize(descriptor)
  }

  /// Reads a regular file.
  ///
  /// - Returns: `nil` if there is none, or something else is in its place.
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
