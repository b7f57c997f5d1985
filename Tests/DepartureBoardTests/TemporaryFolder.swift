import Foundation

/// The path of a new folder, in a folder that is removed at the end of a test.
final class TemporaryFolder: Sendable {
  private let root: URL
  let url: URL

  init() throws {
    root = FileManager.default.temporaryDirectory
      .appending(path: "departures-\(UInt64.random(in: 0 ... .max))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    url = root.appending(path: "cache", directoryHint: .isDirectory)
  }

  deinit {
    try? FileManager.default.removeItem(at: root)
  }

  var path: String { url.path(percentEncoded: false) }

  /// The bytes of all files in the folder and those below it.
  var byteCount: Int {
    names.reduce(0) { sum, name in
      var status = stat()
      let isFile = stat(path + name, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      return sum + (isFile ? Int(status.st_size) : 0)
    }
  }

  /// Whether there is a log with entries that is not locked by a writer.
  var hasLog: Bool {
    names.contains { name in
      guard name.hasSuffix(".log") else { return false }
      let descriptor = open(path + name, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return false }
      defer { close(descriptor) }
      var status = stat()
      return flock(descriptor, LOCK_SH | LOCK_NB) == 0 && fstat(descriptor, &status) == 0
        && status.st_size > 500
    }
  }

  private var names: [String] {
    (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
  }
}
