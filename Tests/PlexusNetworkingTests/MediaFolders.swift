import Foundation

/// A folder of a test, removed with it.
final class MediaTestFolder: Sendable {
  let url: URL

  init(parent: URL = FileManager.default.temporaryDirectory) {
    url =
      parent
      .appending(path: "media-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  /// The paths of all files below the folder, sorted.
  var files: [String] {
    let found = FileManager.default.enumerator(atPath: url.path)?.allObjects as? [String] ?? []
    return found.filter { !$0.hasSuffix("files") && !$0.hasSuffix("parts") }.sorted()
  }

  var parts: [String] { files.filter { $0.hasSuffix(".part") } }

  /// Whether nobody is writing a part.
  func isFree(_ part: String) -> Bool {
    let descriptor = open(url.appending(path: part).path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { return true }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0
  }

  /// The permissions of a file or folder below.
  func permissions(_ path: String = "") throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path + "/" + path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue
  }
}
