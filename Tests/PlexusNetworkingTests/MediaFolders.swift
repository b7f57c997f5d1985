import Foundation

/// A folder of a test, removed with it.
final class MediaTestFolder: Sendable {
  let url: URL

  init() {
    url = FileManager.default.temporaryDirectory
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

  /// The permissions of a file or folder below.
  func permissions(_ path: String = "") throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path + "/" + path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue
  }
}
