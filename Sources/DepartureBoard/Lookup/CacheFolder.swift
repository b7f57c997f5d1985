import Foundation
import PlexusStorage

/// Where copies of what was looked up outlive the program.
struct CacheFolder: Sendable {
  let url: URL

  /// The program's folder among the user's caches; `nil` if there are none.
  static var standard: CacheFolder? {
    FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first.map {
      CacheFolder(url: $0.appending(path: "DepartureBoard", directoryHint: .isDirectory))
    }
  }

  /// Where files are kept that were downloaded as they are.
  var media: URL {
    url.appending(path: "media", directoryHint: .isDirectory)
  }

  /// Opens what keeps the values of one map: many small ones, so all of them in one file.
  ///
  /// - Parameter name: The name of the map.
  /// - Returns: The cacher.
  /// - Throws: A `StorageError` if there is no file and none can be created.
  func cacher<Value: Codable & Sendable>(_ name: String) throws -> JSONLogCacher<Value> {
    try JSONLogCacher(
      directory: url.appending(path: name, directoryHint: .isDirectory),
      byteLimit: 4 << 20,
      schema: "\(name) 1"
    )
  }
}
