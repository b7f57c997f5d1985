internal import Foundation

/// A folder for temporary files that is removed with the last reference, or after the process by a later one.
///
/// The folder has a file that its process keeps locked. A folder whose file is not locked was left by a process that
/// was killed, or that ended without releasing its loaders.
final class SpareFolder: Sendable {
  private static let prefix = "plexus-media-"
  private static let lockName = "lock"

  let root: URL
  private let lock: PartFile?

  /// Creates the lock of an existing folder, and removes the folders of processes that have ended.
  init(locking root: URL) {
    self.root = root
    lock = try? PartFile.creating(Self.lockPath(in: root))
    let parent = root.deletingLastPathComponent()
    let names = try? FileManager.default.contentsOfDirectory(atPath: parent.path)
    for name in names ?? [] where name.hasPrefix(Self.prefix) && name != root.lastPathComponent {
      let other = parent.appending(path: name, directoryHint: .isDirectory)
      if let left = PartFile.opening(Self.lockPath(in: other)) {
        try? FileManager.default.removeItem(at: other)
        withExtendedLifetime(left) {}
      }
    }
  }

  deinit {
    try? FileManager.default.removeItem(at: root)
  }

  /// Returns a name for a folder that is not there yet.
  static func newRoot() -> URL {
    FileManager.default.temporaryDirectory.appending(
      path: "\(prefix)\(UInt64.random(in: 0...UInt64.max))",
      directoryHint: .isDirectory
    )
  }

  private static func lockPath(in root: URL) -> String {
    root.appending(path: lockName, directoryHint: .notDirectory).path(percentEncoded: false)
  }
}
