import Foundation

/// A folder that does not exist yet, inside one that is removed at the end of a test.
final class TemporaryFolder: Sendable {
  private let root: URL
  let url: URL

  init() throws {
    root = FileManager.default.temporaryDirectory
      .appending(path: "plexus-\(UInt64.random(in: 0 ... .max))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    url = root.appending(path: "cache", directoryHint: .isDirectory)
  }

  deinit {
    try? FileManager.default.removeItem(at: root)
  }

  var path: String { url.path(percentEncoded: false) }

  /// The path of a file beside the folder.
  var notesPath: String { root.appending(path: "notes").path(percentEncoded: false) }

  /// The names of the files in the folder; none if it does not exist.
  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  var files: [URL] { names.map { url.appending(path: $0) } }

  var byteCount: Int { files.reduce(0) { $0 + ((try? Data(contentsOf: $1).count) ?? 0) } }

  func permissions(of url: URL) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))[
      .posixPermissions
    ] as? Int
  }
}
