// The pointers are to local variables and to the storage of arrays, and none outlives its call.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// The file that keeps the token of a fixed port, so that an open page finds the process after a restart.
///
/// The file belongs to the user, who alone can read it, and is used for a day. Where it cannot be kept, or is not as it
/// should be, the token is a new one.
struct TokenFile {
  /// The age at which a token is replaced, in seconds.
  static let lifetime = 86_400

  private let folder: String
  private let path: String

  /// Creates a file for a port.
  ///
  /// - Parameters:
  ///   - port: The port.
  ///   - folder: The folder, which is created if its parent exists.
  init(port: UInt16, in folder: String) {
    self.folder = folder
    path = "\(folder)/\(port)"
  }

  /// Returns the kept token, or a new one, which is then kept.
  func token() -> AccessToken {
    if let token = load() { return token }
    let token = AccessToken()
    keep(token)
    return token
  }

  private func load() -> AccessToken? {
    let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_uid == geteuid(),
      // A file, which its owner reads and writes.
      status.st_mode == 0o100600, status.st_nlink == 1, Self.age(of: status) < Self.lifetime
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: AccessToken.length + 1)
    let count = unsafe read(descriptor, &bytes, bytes.count)
    return AccessToken(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))
  }

  private func keep(_ token: AccessToken) {
    _ = unsafe mkdir(folder, 0o700)
    // Not through a file that has been put there.
    _ = unsafe unlink(path)
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let bytes = Array(token.text.utf8)
    _ = unsafe write(descriptor, bytes, bytes.count)
  }

  /// The seconds since the file was written; the lifetime for a file of the future.
  private static func age(of status: stat) -> Int {
    #if canImport(Darwin)
    let written = status.st_mtimespec.tv_sec
    #else
    let written = status.st_mtim.tv_sec
    #endif
    var now = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &now)
    let age = Int(now.tv_sec) - Int(written)
    return age < 0 ? lifetime : age
  }
}
