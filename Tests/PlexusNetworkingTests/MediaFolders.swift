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

  var parts: [String] {
    let path = url.path + "/parts"
    let names = try? FileManager.default.contentsOfDirectory(atPath: path)
    return (names ?? []).filter { $0.hasSuffix(".part") }.map { "parts/" + $0 }.sorted()
  }

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

/// A folder of a test by another path, whose loaders are like those of another process.
///
/// The loaders of one process share what they know of a folder by its path.
final class MediaTestAlias: Sendable {
  let url: URL
  private let link: URL

  init(of folder: MediaTestFolder) throws {
    let parent = folder.url.deletingLastPathComponent()
    link = parent.appending(path: "alias-\(UUID().uuidString)", directoryHint: .notDirectory)
    url = link.appending(path: folder.url.lastPathComponent, directoryHint: .isDirectory)
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: parent)
  }

  deinit {
    try? FileManager.default.removeItem(at: link)
  }
}
