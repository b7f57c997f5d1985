// The only file of the module that calls the system. The calls are unsafe because they take pointers: to
// paths and buffers that outlive the call, and to structures on the stack that the call fills.

internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open file that is being written, which nobody else of this or another process has open as one.
///
/// The lock goes with the file: it is given up when the last reference is released, or the process ends.
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
  /// - Returns: The file; `nil` if somebody has taken it for one that was left, and removes it.
  /// - Throws: A `POSIXError`, also if there is one.
  static func creating(_ path: String) throws -> PartFile? {
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure() }
    return locked(path, descriptor)
  }

  /// Opens a file that is there.
  ///
  /// - Returns: `nil` if there is none, or somebody else is writing it.
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

  /// Writes bytes.
  func write(_ data: Data, at offset: Int64) throws {
    for region in data.regions {
      let start = offset + Int64(region.startIndex - data.startIndex)
      try unsafe region.withUnsafeBytes { bytes in
        var written = 0
        while written < bytes.count {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
          let count = unsafe pwrite(
            descriptor,
            rest.baseAddress,
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

  /// Returns when everything written is durable.
  func synchronize() throws {
    while fsync(descriptor) != 0 {
      guard errno == EINTR else { throw Self.failure() }
    }
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

  /// Returns the length of a file.
  ///
  /// - Parameters:
  ///   - path: Its path.
  ///   - followsLinks: Whether a symbolic link stands for what it leads to.
  /// - Returns: The bytes; `nil` if there is none, or it is no plain file.
  static func length(of path: String, followsLinks: Bool) -> Int64? {
    // The system would take the path to end there.
    guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
    var status = stat()
    let result = unsafe followsLinks ? stat(path, &status) : lstat(path, &status)
    guard result == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int64(status.st_size)
  }

  /// Removes the name of the file.
  func remove() {
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
