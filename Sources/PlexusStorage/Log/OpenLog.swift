/// A log file, open until this is released.
final class OpenLog: Sendable {
  let descriptor: Descriptor
  let identity: FileStatus.Identity
  private let fileSystem: any FileSystem

  private init(_ descriptor: Descriptor, identity: FileStatus.Identity, fileSystem: any FileSystem)
  {
    self.descriptor = descriptor
    self.identity = identity
    self.fileSystem = fileSystem
  }

  deinit {
    fileSystem.close(descriptor)
  }

  /// Opens a file, or creates it and the folders in which it lies.
  static func open(
    _ path: String,
    folder: String,
    fileSystem: any FileSystem
  ) throws -> OpenLog {
    try fileSystem.makeFolders(folder)
    guard let descriptor = try fileSystem.open(path, .updating) else { throw vanished(path) }
    return try adopt(descriptor, fileSystem: fileSystem)
  }

  /// Takes over an open file, and closes it if it is none.
  static func adopt(_ descriptor: Descriptor, fileSystem: any FileSystem) throws -> OpenLog {
    do {
      let status = try fileSystem.status(of: descriptor)
      guard status.isRegular else { throw notAFile(descriptor.path) }
      return OpenLog(descriptor, identity: status.identity, fileSystem: fileSystem)
    } catch {
      fileSystem.close(descriptor)
      throw error
    }
  }
}
