// The only file of the module that calls the system. The calls are unsafe because they take pointers: to
// paths and buffers that outlive the call, and to structures on the stack that the call fills.

internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// An open file that one download writes, and no other download of this or another process.
///
/// The lock belongs to the open file: it ends when the last reference is released, or with the process.
final class PartFile: Sendable {
  let path: String
  private let descriptor: Int32

  private init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Creates a file.
  ///
  /// - Returns: The file; `nil` if another process has taken it for an abandoned one, and removes it.
  /// - Throws: A `POSIXError`, also if there is one.
  static func creating(_ path: String) throws -> PartFile? {
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure() }
    return locked(path, descriptor)
  }

  /// Opens an existing file.
  ///
  /// - Returns: `nil` if there is none, or another download is writing it.
  static func opening(_ path: String) -> PartFile? {
    let descriptor = unsafe open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    return descriptor < 0 ? nil : locked(path, descriptor)
  }

  private static func locked(_ path: String, _ descriptor: Int32) -> PartFile? {
    let file = PartFile(path: path, descriptor: descriptor)
    // Between being opened and being locked it may have been removed.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, file.status()?.isLinked == true else {
      return nil
    }
    return file
  }

  /// The number of bytes.
  var size: Int64 { status()?.size ?? 0 }

  /// The properties of the file.
  var properties: FileProperties? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return nil }
    return FileProperties(status)
  }

  /// Writes bytes.
  func write(_ data: Data, at offset: Int64) throws {
    for region in data.regions {
      let start = offset + Int64(region.startIndex - data.startIndex)
      try unsafe region.withUnsafeBytes { bytes in
        var written = 0
        while written < bytes.count {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
          guard let first = rest.baseAddress else { return }
          let count = unsafe pwrite(
            descriptor,
            first,
            rest.count,
            off_t(start) + off_t(written)
          )
          if count < 0 && errno == EINTR { continue }
          guard count > 0 else { throw Self.failure() }
          written += count
        }
      }
    }
  }

  /// Gives the content a time of modification of its own.
  ///
  /// The system's time of modification advances in steps of milliseconds: two files of one length that were written
  /// within a step would look like one version.
  func stamp() {
    var now = timespec()
    guard unsafe clock_gettime(CLOCK_REALTIME, &now) == 0 else { return }
    _ = unsafe futimens(descriptor, [now, now])
  }

  /// Gives the file another name, as one step.
  func move(to newPath: String) throws {
    try Self.move(path, to: newPath)
  }

  /// Gives a file or folder another name, as one step.
  ///
  /// - Throws: A `POSIXError`; `ENOENT` if there is none.
  static func move(_ path: String, to newPath: String) throws {
    guard unsafe rename(path, newPath) == 0 else { throw failure() }
  }

  /// Gives a file another name, unless there is one of that name.
  static func restore(_ path: String, to newPath: String) {
    _ = unsafe link(path, newPath)
    remove(path)
  }

  /// Returns the properties of a file.
  ///
  /// - Parameters:
  ///   - path: Its path.
  ///   - followsLinks: Whether a symbolic link stands for its destination.
  /// - Returns: The properties; `nil` if there is no file, or it is not a regular one.
  static func properties(of path: String, followsLinks: Bool = false) -> FileProperties? {
    // The system would take the path to end there.
    guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
    var status = stat()
    let result = unsafe followsLinks ? stat(path, &status) : lstat(path, &status)
    guard result == 0, status.isRegular else { return nil }
    return FileProperties(status)
  }

  /// Notes that a file is used now; only its time of access changes.
  static func touch(_ path: String, _ properties: FileProperties) {
    var now = timespec()
    guard unsafe clock_gettime(CLOCK_REALTIME, &now) == 0 else { return }
    let nanoseconds = Int(truncatingIfNeeded: properties.modified % 1_000_000_000)
    let modified = timespec(
      tv_sec: time_t(truncatingIfNeeded: properties.modified / 1_000_000_000),
      tv_nsec: nanoseconds
    )
    _ = unsafe utimensat(AT_FDCWD, path, [now, modified], AT_SYMLINK_NOFOLLOW)
  }

  /// When the system was started, in nanoseconds since 1970-01-01T00:00Z; `nil` if that is not known.
  static var bootTime: Int64? {
    var (now, uptime) = (timespec(), timespec())
    #if canImport(Darwin)
    // It advances while the system sleeps.
    let clock = CLOCK_MONOTONIC
    #else
    let clock = CLOCK_BOOTTIME
    #endif
    guard unsafe clock_gettime(CLOCK_REALTIME, &now) == 0,
      unsafe clock_gettime(clock, &uptime) == 0
    else { return nil }
    return FileProperties.nanoseconds(now) - FileProperties.nanoseconds(uptime)
  }

  /// Whether there is anything at a path, of whatever kind.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0
  }

  /// Creates a file with its whole content.
  ///
  /// - Throws: A `POSIXError`; `EEXIST` if there is anything at the path.
  static func write(_ data: Data, toNewFileAt path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure() }
    try PartFile(path: path, descriptor: descriptor).write(data, at: 0)
  }

  /// Removes the name of the file.
  func remove() {
    Self.remove(path)
  }

  /// Removes the name of a file.
  static func remove(_ path: String) {
    _ = unsafe unlink(path)
  }

  private func status() -> (size: Int64, isLinked: Bool)? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return nil }
    return (Int64(status.st_size), status.st_nlink > 0)
  }

  private static func failure() -> POSIXError {
    POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
  }
}

extension stat {
  /// Whether the file is a regular one.
  fileprivate var isRegular: Bool {
    // On Android, `st_mode` can have another type.
    mode_t(truncatingIfNeeded: st_mode) & S_IFMT == S_IFREG
  }
}

/// The properties of a regular file.
struct FileProperties: Hashable, Sendable {
  let length: Int64
  /// When the content was last changed, in nanoseconds since 1970-01-01T00:00Z.
  let modified: Int64
  /// When the file was last used, likewise.
  let used: Int64
  fileprivate init(_ status: stat) {
    length = Int64(status.st_size)
    #if canImport(Darwin)
    modified = Self.nanoseconds(status.st_mtimespec)
    used = Self.nanoseconds(status.st_atimespec)
    #else
    modified = Self.nanoseconds(status.st_mtim)
    used = Self.nanoseconds(status.st_atim)
    #endif
  }

  /// The version of the content: it changes with the file and not with its use.
  var version: FileVersion {
    FileVersion(length: length, modified: modified)
  }

  fileprivate static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

/// The identity of the content of a file that is replaced and never changed.
struct FileVersion: Codable, Hashable, Sendable {
  let length: Int64
  let modified: Int64
}
