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

  /// The paths of all files and parts below the folder, sorted.
  var files: [String] {
    all.filter { !$0.hasPrefix("records") && $0 != "files" && $0 != "parts" }
  }

  /// The paths of all records below the folder, sorted.
  var records: [String] { all.filter { $0.hasPrefix("records/") } }

  private var all: [String] {
    let found = FileManager.default.enumerator(atPath: url.path)?.allObjects as? [String] ?? []
    return found.sorted()
  }

  var parts: [String] { files.filter { $0.hasSuffix(".part") } }

  /// Whether no download is writing a part.
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
