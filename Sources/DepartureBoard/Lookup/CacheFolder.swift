import Foundation
import PlexusStorage

/// The folder for persistent copies of fetched values.
struct CacheFolder: Sendable {
  let url: URL

  /// The program's folder in the user's caches directory, or `nil` if there is no such directory.
  static var standard: CacheFolder? {
    FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first.map {
      CacheFolder(url: $0.appending(path: "DepartureBoard", directoryHint: .isDirectory))
    }
  }

  /// The folder for downloaded files.
  var media: URL {
    url.appending(path: "media", directoryHint: .isDirectory)
  }

  /// Opens the cacher of a map, which keeps its many small values in one file.
  ///
  /// - Parameter name: The name of the map.
  /// - Returns: The cacher.
  /// - Throws: A `StorageError` if the file cannot be opened or created.
  func cacher<Value: Codable & Sendable>(_ name: String) throws -> JSONLogCacher<Value> {
    try JSONLogCacher(
      directory: url.appending(path: name, directoryHint: .isDirectory),
      byteLimit: 4 << 20,
      schema: "\(name) 1"
    )
  }
}
