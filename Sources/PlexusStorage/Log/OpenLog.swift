/// An open log file, which is closed when this object is released.
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

  /// Opens a file; creates it and its parent folders if necessary.
  static func open(
    _ path: String,
    folder: String,
    fileSystem: any FileSystem
  ) throws -> OpenLog {
    try fileSystem.makeFolders(folder)
    guard let descriptor = try fileSystem.open(path, .updating) else { throw vanished(path) }
    return try adopt(descriptor, fileSystem: fileSystem)
  }

  /// Takes ownership of a descriptor and closes it if it is not a regular file.
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
