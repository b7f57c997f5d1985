// The only file with system calls. They are unsafe because they take pointers: to strings and buffers that
// outlive the call, and to structures on the stack that the call fills.

internal import Dispatch

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif
#if !canImport(Darwin) && canImport(SwiftOverlayShims)
// In whole-module builds, the compiler attributes `timespec` to this module.
internal import SwiftOverlayShims
#endif

/// The POSIX implementation of the file system.
struct POSIXFileSystem: FileSystem {
  func makeFolder(_ path: String) throws -> Bool {
    if unsafe mkdir(path, 0o700) == 0 { return true }
    guard errno == EEXIST else { throw failure("mkdir", path) }
    return false
  }

  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor? {
    // Without O_NONBLOCK, opening a named pipe could block forever.
    let common = O_CLOEXEC | O_NONBLOCK
    let flags =
      switch mode {
      case .reading: O_RDONLY | O_NOFOLLOW
      case .updating: O_RDWR | O_CREAT | O_NOFOLLOW
      case .creating: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
      case .folder: O_RDONLY | O_DIRECTORY
      }
    while true {
      let number = unsafe systemOpen(path, flags | common, 0o600)
      if number >= 0 { return Descriptor(number: number, path: path) }
      switch (errno, mode) {
      case (EINTR, _): continue
      case (ENOENT, .reading), (ENOENT, .folder): return nil
      default: throw failure("open", path)
      }
    }
  }

  func close(_ descriptor: Descriptor) {
    _ = systemClose(descriptor.number)
  }

  func status(of descriptor: Descriptor) throws -> FileStatus {
    var status = stat()
    guard unsafe fstat(descriptor.number, &status) == 0 else {
      throw failure("fstat", descriptor.path)
    }
    return FileStatus(status)
  }

  func status(atPath path: String) throws -> FileStatus? {
    var status = stat()
    guard unsafe lstat(path, &status) != 0 else { return FileStatus(status) }
    guard errno == ENOENT else { throw failure("lstat", path) }
    return nil
  }

  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8] {
    try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let rest = unsafe UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...]
        )
        guard let start = rest.baseAddress else { return }
        let result = unsafe pread(
          descriptor.number,
          start,
          rest.count,
          off_t(offset + filled)
        )
        if result < 0 && errno == EINTR { continue }
        guard result >= 0 else { throw failure("pread", descriptor.path) }
        guard result > 0 else { return }
        filled += result
      }
    }
  }

  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws {
    try unsafe bytes.withUnsafeBytes { buffer in
      var written = 0
      while written < buffer.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
        guard let start = rest.baseAddress else { return }
        let result = unsafe pwrite(
          descriptor.number,
          start,
          rest.count,
          off_t(offset + written)
        )
        if result < 0 && errno == EINTR { continue }
        guard result > 0 else { throw failure("pwrite", descriptor.path) }
        written += result
      }
    }
  }

  func setLength(of descriptor: Descriptor, to length: Int) throws {
    guard ftruncate(descriptor.number, off_t(length)) == 0 else {
      throw failure("ftruncate", descriptor.path)
    }
  }

  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws {
    let (seconds, attoseconds) = time.components
    let value = timespec(
      tv_sec: time_t(clamping: seconds),
      tv_nsec: Int(attoseconds / 1_000_000_000)
    )
    guard unsafe futimens(descriptor.number, [value, value]) == 0 else {
      throw failure("futimens", descriptor.path)
    }
  }

  func synchronize(_ descriptor: Descriptor) throws {
    #if canImport(Darwin)
    // On Darwin, fsync does not flush the drive's cache. Not every volume supports F_FULLFSYNC.
    if fcntl(descriptor.number, F_FULLFSYNC) == 0 { return }
    #endif
    while fsync(descriptor.number) != 0 {
      guard errno == EINTR else { throw failure("fsync", descriptor.path) }
    }
  }

  func rename(_ path: String, to newPath: String) throws {
    guard unsafe systemRename(path, newPath) == 0 else { throw failure("rename", newPath) }
  }

  func remove(_ path: String) throws -> Bool {
    if unsafe unlink(path) == 0 { return true }
    guard errno != ENOENT else { return false }
    let failure = failure("unlink", path)
    // Systems have different codes for a folder.
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.isOfKind(S_IFDIR) else {
      throw failure
    }
    return false
  }

  func names(inFolder path: String) throws -> [String] {
    guard let folder = unsafe opendir(path) else { throw failure("opendir", path) }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(folder) else {
        guard errno == 0 else { throw failure("readdir", path) }
        return names
      }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
        unsafe String(cString: UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self))
      }
      if name != "." && name != ".." { names.append(name) }
    }
  }

  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool {
    while flock(descriptor.number, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 {
      switch errno {
      case EINTR: continue
      case EWOULDBLOCK: return false
      default: throw failure("flock", descriptor.path)
      }
    }
    return true
  }

  func unlock(_ descriptor: Descriptor) {
    _ = flock(descriptor.number, LOCK_UN)
  }

  func pause() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) {
        continuation.resume()
      }
    }
  }

  func now() -> Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Duration(time)
  }

  private func failure(_ operation: String, _ path: String) -> StorageError {
    .system(operation: operation, path: path, code: errno)
  }
}

/// Returns the error for a file or folder that was removed just after it was found or created.
func vanished(_ path: String) -> StorageError {
  .system(operation: "open", path: path, code: ENOENT)
}

/// Returns the error for a path that is not a regular file.
func notAFile(_ path: String) -> StorageError {
  .system(operation: "open", path: path, code: EINVAL)
}

/// Returns whether an error code means a full disk or an exhausted quota.
func lacksSpace(_ code: Int32) -> Bool {
  code == ENOSPC || code == EDQUOT
}

/// Returns whether an error code means that a file or its folder does not exist.
func isMissingCode(_ code: Int32) -> Bool { code == ENOENT }

/// Returns the system's message for an error code.
func systemMessage(for code: Int32) -> String {
  unsafe String(cString: strerror(code))
}

extension stat {
  /// Returns whether the file is of a kind.
  fileprivate func isOfKind(_ kind: mode_t) -> Bool {
    // On Android, `st_mode` can have another type.
    mode_t(truncatingIfNeeded: st_mode) & S_IFMT == kind
  }
}

extension Duration {
  fileprivate init(_ time: timespec) {
    self = .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

extension FileStatus {
  fileprivate init(_ status: stat) {
    #if canImport(Darwin)
    let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
    #else
    let (modified, changed) = (status.st_mtim, status.st_ctim)
    #endif
    self.init(
      identity: Identity(
        device: UInt64(truncatingIfNeeded: status.st_dev),
        number: UInt64(truncatingIfNeeded: status.st_ino)
      ),
      isRegular: status.isOfKind(S_IFREG),
      size: Int(clamping: status.st_size),
      modified: Duration(modified),
      changed: Duration(changed)
    )
  }
}

// Within the type above, these names would resolve to its own methods.

private func systemOpen(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  unsafe open(path, flags, mode)
}

private func systemClose(_ number: Int32) -> Int32 {
  close(number)
}

private func systemRename(_ old: UnsafePointer<CChar>, _ new: UnsafePointer<CChar>) -> Int32 {
  unsafe rename(old, new)
}
